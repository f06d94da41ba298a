//! S3: checks on a request before s3s sees it, S3's operations, and the completion of responses.
//!
//! ```text
//!  request -> refuse -> signature -> parameters -> inbound -> documents -> s3s -> adapter
//!             4xx       403          integers      chunks,    plain XML    URLs    archive
//!                                                  digests
//!                                         `----- raw_headers -----^
//!  answer  <- answers: ids, status, full XML
//! ```

mod adapter;
mod answers;
mod chunks;
mod digests;
mod documents;
mod door;
mod framing;
mod inbound;
mod parameters;
mod raw_headers;
mod refuse;
pub(crate) mod signature;
mod xml;

pub(crate) use self::answers::{Finisher, Refusal};
pub(crate) use self::chunks::ChunkDecoder;
pub(crate) use self::documents::DOCUMENTS;
pub(crate) use self::door::Door;
