//! The S3 half: what a request says before s3s sees it, S3's operations, and answers in S3's words.
//!
//! ```text
//!  request -> refuse -> signature -> inbound -> s3s -> adapter -> archive
//!             4xx       403          chunks,    XML,
//!                                    digests    URLs        -> answers: ids, status, full XML
//! ```

mod adapter;
mod answers;
mod chunks;
mod digests;
mod door;
mod inbound;
mod refuse;
pub(crate) mod signature;

pub(crate) use self::answers::{Finisher, Refusal};
pub(crate) use self::chunks::ChunkDecoder;
pub(crate) use self::door::Door;
