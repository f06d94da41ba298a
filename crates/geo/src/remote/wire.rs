//! The calls of nodes and their messages, in the notation of protobuf (`fulgurite_rpc::protobuf`).
//! A second implementation can start from it, and from docs/geo.md, "A node at each site".
//!
//! If the store reports an error, the reply contains a `Failure`. A call that ends with a gRPC
//! status was not answered by the store: the outcome of a write is unknown then. One exception:
//! UNIMPLEMENTED means that the call does not exist.
//!
//! Not here: encoding and decoding of errors ([`crate::remote::wire_errors`]).

fulgurite_rpc::protobuf! {
package fulgurite.site.v1;

service Node {
  // The first call on each connection: the store to use, and the protocol version.
  rpc Open(OpenRequest) returns (OpenReply) => open;
  // A whole transaction on one row, in one round trip.
  rpc Step(StepRequest) returns (StepReply) => step;
  // One call of the table.
  rpc Read(Keyed) returns (RowReply) => read;
  rpc Cas(CasRequest) returns (CasReply) => cas;
  rpc Remove(RemoveRequest) returns (Done) => remove;
  rpc Erase(Keyed) returns (Done) => erase;
  rpc Scan(ScanRequest) returns (stream RowsReply) => scan;
  // One call of the blobs.
  rpc Create(stream CreatePart) returns (Done) => create;
  rpc Get(GetRequest) returns (stream GetPart) => get;
  rpc Head(Keyed) returns (MetasReply) => head;
  rpc Delete(Keyed) returns (Done) => delete;
  rpc List(ListRequest) returns (stream MetasReply) => list;
}

// An error. `kind` is one of
//   1 conflict         `row`: the current row, if the table returns it
//   2 unknown          the outcome is unknown
//   3 unavailable      not executed
//   4 throttled        not executed; `number`: milliseconds until a retry
//   5 too large        `number`: bytes
//   6 denied
//   7 unsupported
//   8 corrupt
//   9 not found        the blob does not exist
//  10 exists           another blob exists under this key
//  11 missing          the store does not exist, and was not to be created
//  12 foreign          the place holds something else
//  13 not served       this node does not serve this store
message Failure {
  uint32 kind = 1;
  string what = 2;
  optional uint64 number = 3;
  optional Row row = 4;
}

message Row {
  bytes bytes = 1;
  bytes tag = 2;
}

message Done {
  optional Failure failure = 1;
}

message Keyed {
  string key = 1;
}

// `part` is 1 for the table and 2 for the blobs.
message OpenRequest {
  uint32 version = 1;
  uint32 part = 2;
  bool may_create = 3;
}

// `version` is the version that the node speaks. If it differs from the requested one, nothing was
// opened. The other fields are the capabilities of a table.
message OpenReply {
  uint32 version = 1;
  string program = 2;
  optional Failure failure = 3;
  uint64 max_row = 4;
  bool cond_delete = 5;
  bool reply_on_conflict = 6;
  bool tag_reuse = 7;
  bool scan_order = 8;
}

// `question` is an encoded query (docs/formats/geo-step.md).
message StepRequest {
  string key = 1;
  bytes question = 2;
}

// `ended` is 0 if there is an answer. Otherwise `failure` is set: 1 unknown outcome, 2 the table is
// unavailable, 3 other writers won in all of `number` tries, 4 the table refused. Something was
// written only for 0 and, perhaps, 1.
message StepReply {
  uint32 ended = 1;
  bytes answer = 2;
  optional Failure failure = 3;
}

message RowReply {
  optional Failure failure = 1;
  optional Row row = 2;
}

// Without `tag`, the row must not exist.
message CasRequest {
  string key = 1;
  optional bytes tag = 2;
  bytes bytes = 3;
}

message CasReply {
  optional Failure failure = 1;
  bytes tag = 2;
}

message RemoveRequest {
  string key = 1;
  bytes tag = 2;
}

message ScanRequest {
  optional string prefix = 1;
  optional string after = 2;
}

message KeyedRow {
  string key = 1;
  optional Row row = 2;
}

// Some rows. A failure ends the stream.
message RowsReply {
  repeated KeyedRow rows = 1;
  optional Failure failure = 2;
}

// The first part states key and length, and has no bytes.
message CreatePart {
  string key = 1;
  uint64 length = 2;
  bytes bytes = 3;
}

// The whole blob without `end`.
message GetRequest {
  string key = 1;
  uint64 start = 2;
  optional uint64 end = 3;
}

// The first part states the length and has no bytes, or has the failure.
message GetPart {
  uint64 length = 1;
  bytes bytes = 2;
  optional Failure failure = 3;
}

message Meta {
  string key = 1;
  uint64 bytes = 2;
  uint64 written_ms = 3;
}

// Some blobs, one for Head. A failure ends the stream.
message MetasReply {
  repeated Meta metas = 1;
  optional Failure failure = 2;
}

message ListRequest {
  optional string prefix = 1;
  uint64 before_ms = 2;
}
}
