//! The S3 front end: HTTP in, calls on the archive, HTTP out.
//!
//! ```text
//!  socket -> server -+-> page                        health, metrics, what a browser sees
//!            TLS,    +-> admin -----------> archive  the operator's calls, each signed
//!            HTTP/1, +-> s3 -> s3s -------> archive  SigV4, chunks, XML; both ways
//!            limits
//! ```
//!
//! Nothing here knows about glass, staging or keys: every decision about objects is the archive's.
//! `docs/s3-compatibility.md` lists which S3 features are served and which are refused.

mod admin;
mod credentials;
mod error;
pub mod fuzz_api;
mod limits;
mod page;
mod percent;
mod request;
mod s3;
mod server;
mod status;
mod tiers;

pub use fulgurite_units::ErrorKind;

pub use admin::{Nonce, OperatorCall};
pub use credentials::Credentials;
pub use error::{GatewayError, Result};
pub use limits::Limits;
pub use server::{BoundAddress, Server, ServerConfig, TlsConfig, bind, check, listen};
pub use status::{FullStatus, ServerStatus};
pub use tiers::{ObjectsTier, TierSummary, Tiers};
