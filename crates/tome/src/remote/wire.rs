//! The messages of proto/tome.proto in Rust, field by field.
//!
//! Not here: what their bytes mean ([`crate::remote::encoding`]).

use prost::Message;

/// No content.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Nothing {}

/// A message from one tome to another.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Letter {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) set: Vec<u8>,
    #[prost(uint32, tag = "2")]
    pub(crate) from: u32,
    #[prost(uint32, tag = "3")]
    pub(crate) to: u32,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) body: Vec<u8>,
}

/// A message from a set to a tome, with one field set.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FromSet {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) introduction: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) token: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    pub(crate) letter: Option<Letter>,
}

/// A message from a tome to its set, with one field set; a greeting comes with its session.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ToSet {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) greeting: Vec<u8>,
    #[prost(uint64, tag = "2")]
    pub(crate) session: u64,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) token: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub(crate) letter: Option<Letter>,
}

/// A part of an object that is put; the first one announces it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutPart {
    #[prost(uint64, tag = "1")]
    pub(crate) session: u64,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(uint64, tag = "3")]
    pub(crate) length: u64,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) bytes: Vec<u8>,
    #[prost(uint32, repeated, tag = "5")]
    pub(crate) avoided: Vec<u32>,
}

/// Location of a put object; empty if the tome does not state it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutReply {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) placed: Vec<u8>,
}

/// The name of an object.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Named {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    /// For reads: a read-back by the writer.
    #[prost(bool, tag = "2")]
    pub(crate) is_own: bool,
}

/// A part of an object that is read.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Bytes {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) bytes: Vec<u8>,
}

/// Status of a tome.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusReply {
    #[prost(uint32, tag = "1")]
    pub(crate) power: u32,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) token: Option<u32>,
    #[prost(uint64, tag = "3")]
    pub(crate) objects: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) unprotected_bytes: u64,
    #[prost(uint64, tag = "5")]
    pub(crate) unprotected_ns: u64,
    #[prost(uint64, tag = "6")]
    pub(crate) scrub_next: u64,
    #[prost(uint64, tag = "7")]
    pub(crate) scrub_spent_ns: u64,
    #[prost(uint64, tag = "8")]
    pub(crate) scrub_passes: u64,
    #[prost(uint64, tag = "9")]
    pub(crate) wakes: u64,
    #[prost(uint64, tag = "10")]
    pub(crate) healed: u64,
    #[prost(string, optional, tag = "11")]
    pub(crate) trouble: Option<String>,
    #[prost(string, repeated, tag = "12")]
    pub(crate) alarms: Vec<String>,
    #[prost(uint64, tag = "13")]
    pub(crate) to_scrub: u64,
    #[prost(uint64, tag = "14")]
    pub(crate) blocks: u64,
    #[prost(uint64, repeated, tag = "15")]
    pub(crate) wakes_by: Vec<u64>,
    #[prost(uint64, tag = "16")]
    pub(crate) wakes_of_a_day: u64,
    #[prost(uint64, optional, tag = "17")]
    pub(crate) scrub_began: Option<u64>,
    #[prost(uint64, tag = "18")]
    pub(crate) bad: u64,
    #[prost(message, optional, tag = "19")]
    pub(crate) spending: Option<Spending>,
}

/// State of a spin-up budget.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Spending {
    #[prost(uint32, tag = "1")]
    pub(crate) per_day: u32,
    #[prost(uint32, tag = "2")]
    pub(crate) left: u32,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) put_off_ns: Option<u64>,
    #[prost(uint64, tag = "4")]
    pub(crate) overdrawn: u64,
}

/// Request for a page of names.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListRequest {
    #[prost(string, optional, tag = "1")]
    pub(crate) after: Option<String>,
    #[prost(uint32, tag = "2")]
    pub(crate) max: u32,
}

/// A page; a short one is the last.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListReply {
    #[prost(message, repeated, tag = "1")]
    pub(crate) objects: Vec<Listed>,
}

/// An object in a page.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Listed {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(uint64, tag = "2")]
    pub(crate) blocks: u64,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) placed: Vec<u8>,
}

/// Details of an error.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Failure {
    #[prost(uint32, tag = "1")]
    pub(crate) kind: u32,
    #[prost(uint32, tag = "2")]
    pub(crate) reason: u32,
    #[prost(string, tag = "3")]
    pub(crate) text: String,
}
