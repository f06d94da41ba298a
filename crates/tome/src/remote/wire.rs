//! The calls of tomes and their messages, in the notation of protobuf (`fulgurite_rpc::protobuf`).
//! A second implementation can start from it, and from docs/tomes-network.md.
//!
//! Not here: what is in fields with a version ([`crate::remote::encoding`]).

fulgurite_rpc::protobuf! {
package fulgurite.tome.v1;

service Tome {
  // From one tome to others. No message is answered.
  rpc Letters(stream Letter) returns (Nothing) => letters;
  // Between the process of a set and a tome. The first message of the set has an introduction, the
  // first of the tome a greeting. Then come tokens, and messages between the tome and the tomes in
  // the process of the set.
  rpc Session(stream FromSet) returns (stream ToSet) => session;
  // Only the set may make the other calls.
  rpc Put(stream PutPart) returns (PutReply) => put;
  rpc Get(Named) returns (stream Chunk) => get;
  rpc Delete(Named) returns (Nothing) => delete;
  rpc Protected(Named) returns (Nothing) => protected;
  rpc Status(Nothing) returns (StatusReply) => status;
  rpc List(ListRequest) returns (ListReply) => list;
  // Any other query of a set: a query and its reply, in parts; each begins with its version.
  rpc Ask(stream QueryPart) returns (stream Chunk) => ask;
}

// No content.
message Nothing {}

// A message from one tome to another; `body` begins with its version.
message Letter {
  bytes set = 1;
  uint32 from = 2;
  uint32 to = 3;
  bytes body = 4;
}

// From a set to a tome, with one field set. Introduction and token begin with their version.
message FromSet {
  bytes introduction = 1;
  bytes token = 2;
  Letter letter = 3;
}

// From a tome to its set, with one field set; the number of the session comes with a greeting.
message ToSet {
  bytes greeting = 1;
  uint64 session = 2;
  bytes token = 3;
  Letter letter = 4;
}

// A part of an object that is put. The first one announces the object, and has no bytes.
message PutPart {
  uint64 session = 1;
  string name = 2;
  uint64 length = 3;
  bytes bytes = 4;
  // Lost tomes: the object goes to no group that has one of them.
  repeated uint32 avoided = 5;
}

// Location of an object that was put.
message PutReply {
  bytes placed = 1;
}

// The name of an object.
message Named {
  string name = 1;
  // For reads: the writer reads its object back.
  bool is_own = 2;
  // For removals.
  uint64 session = 3;
}

// A part of a query. The first one has the session, and no bytes.
message QueryPart {
  uint64 session = 1;
  bytes bytes = 2;
}

// A part of an object or a reply.
message Chunk {
  bytes bytes = 1;
}

// Status of a tome.
message StatusReply {
  // Index of the power state of its disk.
  uint32 power = 1;
  optional uint32 token = 2;
  uint64 objects = 3;
  uint64 unprotected_bytes = 4;
  uint64 unprotected_ns = 5;
  uint64 scrub_next = 6;
  uint64 scrub_spent_ns = 7;
  uint64 scrub_passes = 8;
  // Spin-ups.
  uint64 spin_ups = 9;
  uint64 healed = 10;
  optional string failure = 11;
  repeated string alarms = 12;
  uint64 to_scrub = 13;
  uint64 blocks = 14;
  // Spin-ups by cause, in the order of the ledger's causes.
  repeated uint64 spin_ups_by = 15;
  uint64 spin_ups_of_a_day = 16;
  // Milliseconds since 1970.
  optional uint64 scrub_began = 17;
  uint64 bad = 18;
  // State of the spin-up budget, if there is one.
  Spending spending = 19;
}

// State of a spin-up budget.
message Spending {
  uint32 per_day = 1;
  uint32 left = 2;
  optional uint64 put_off_ns = 3;
  uint64 overdrawn = 4;
}

// Request for a page of names.
message ListRequest {
  optional string after = 1;
  uint32 max = 2;
}

// A page of names; a short one is the last.
message ListReply {
  repeated Listed objects = 1;
}

// An object in a page.
message Listed {
  string name = 1;
  uint64 blocks = 2;
  bytes placed = 3;
}

// An error, in the details of the status of a call.
message Failure {
  // 1 not found, 2 conflict, 3 unavailable, 4 corrupt, 5 invalid, 6 internal.
  uint32 kind = 1;
  // 1 no object, 2 object exists, 3 given up, 4 not sent, 5 sent without an answer, 6 busy,
  // 7 full for now, 8 full; 0 any other.
  uint32 reason = 2;
  string text = 3;
}
}
