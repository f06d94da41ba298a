//! The messages of proto/node.proto in Rust, field by field.
//!
//! Not here: the meaning of their numbers ([`crate::remote::wire_errors`]).

use prost::Message;
use prost::bytes::Bytes;

/// An error.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Failure {
    #[prost(uint32, tag = "1")]
    pub(crate) kind: u32,
    #[prost(string, tag = "2")]
    pub(crate) what: String,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) number: Option<u64>,
    #[prost(message, optional, tag = "4")]
    pub(crate) row: Option<Row>,
}

/// A row.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Row {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) bytes: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) tag: Bytes,
}

/// Success or an error.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Done {
    #[prost(message, optional, tag = "1")]
    pub(crate) failure: Option<Failure>,
}

/// The key of a row or a blob.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Keyed {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
}

/// The store that a client wants to use.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OpenRequest {
    #[prost(uint32, tag = "1")]
    pub(crate) version: u32,
    #[prost(uint32, tag = "2")]
    pub(crate) part: u32,
    #[prost(bool, tag = "3")]
    pub(crate) may_create: bool,
}

/// What the node serves.
#[derive(Clone, PartialEq, Message)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct OpenReply {
    #[prost(uint32, tag = "1")]
    pub(crate) version: u32,
    #[prost(string, tag = "2")]
    pub(crate) program: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) failure: Option<Failure>,
    #[prost(uint64, tag = "4")]
    pub(crate) max_row: u64,
    #[prost(bool, tag = "5")]
    pub(crate) cond_delete: bool,
    #[prost(bool, tag = "6")]
    pub(crate) reply_on_conflict: bool,
    #[prost(bool, tag = "7")]
    pub(crate) tag_reuse: bool,
    #[prost(bool, tag = "8")]
    pub(crate) scan_order: bool,
}

/// A transaction on a row.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StepRequest {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) question: Bytes,
}

/// Its result.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StepReply {
    #[prost(uint32, tag = "1")]
    pub(crate) ended: u32,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) answer: Bytes,
    #[prost(message, optional, tag = "3")]
    pub(crate) failure: Option<Failure>,
}

/// A row, or none.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RowReply {
    #[prost(message, optional, tag = "1")]
    pub(crate) failure: Option<Failure>,
    #[prost(message, optional, tag = "2")]
    pub(crate) row: Option<Row>,
}

/// A conditional write of a row.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CasRequest {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) tag: Option<Bytes>,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) bytes: Bytes,
}

/// The new tag.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CasReply {
    #[prost(message, optional, tag = "1")]
    pub(crate) failure: Option<Failure>,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) tag: Bytes,
}

/// A conditional removal of a row.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RemoveRequest {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) tag: Bytes,
}

/// A scan of rows.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScanRequest {
    #[prost(string, optional, tag = "1")]
    pub(crate) prefix: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) after: Option<String>,
}

/// A row with its key.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyedRow {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) row: Option<Row>,
}

/// Some rows.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RowsReply {
    #[prost(message, repeated, tag = "1")]
    pub(crate) rows: Vec<KeyedRow>,
    #[prost(message, optional, tag = "2")]
    pub(crate) failure: Option<Failure>,
}

/// A part of a blob to write; the first one states its key and length.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CreatePart {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(uint64, tag = "2")]
    pub(crate) length: u64,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) bytes: Bytes,
}

/// A read of a blob, or of bytes of it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetRequest {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(uint64, tag = "2")]
    pub(crate) start: u64,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) end: Option<u64>,
}

/// A part of a blob that was read; the first one states the length.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetPart {
    #[prost(uint64, tag = "1")]
    pub(crate) length: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) bytes: Bytes,
    #[prost(message, optional, tag = "3")]
    pub(crate) failure: Option<Failure>,
}

/// Metadata of a blob.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Meta {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(uint64, tag = "2")]
    pub(crate) bytes: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) written_ms: u64,
}

/// Metadata of some blobs.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetasReply {
    #[prost(message, repeated, tag = "1")]
    pub(crate) metas: Vec<Meta>,
    #[prost(message, optional, tag = "2")]
    pub(crate) failure: Option<Failure>,
}

/// A listing of blobs.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListRequest {
    #[prost(string, optional, tag = "1")]
    pub(crate) prefix: Option<String>,
    #[prost(uint64, tag = "2")]
    pub(crate) before_ms: u64,
}
