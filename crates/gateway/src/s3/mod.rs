//! S3: checks on a request before s3s sees it, S3's operations, and the completion of responses.
//!
//! ```text
//!  request -> request_checks -> signature -> parameters -> inbound -> documents -> s3s -> adapter
//!             4xx               403          integers      chunks,    plain XML    URLs   archive
//!                                                          digests
//!                                                 `----- raw_headers -----^
//!  response <- responses: ids, status, full XML
//! ```

mod adapter;
mod chunks;
mod digests;
mod documents;
mod endpoint;
mod framing;
mod inbound;
mod parameters;
mod raw_headers;
mod request_checks;
mod responses;
pub(crate) mod signature;
mod xml;

pub(crate) use self::chunks::ChunkDecoder;
pub(crate) use self::documents::DOCUMENTS;
pub(crate) use self::endpoint::Endpoint;
pub(crate) use self::responses::{Finisher, Refusal};
use crate::Result;

/// Refuses a domain that is not a host name.
pub(crate) fn check_domain(domain: Option<&str>) -> Result<()> {
    adapter::Hosts::new(domain).map(drop)
}
