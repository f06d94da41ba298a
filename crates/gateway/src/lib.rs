//! The S3 front end: HTTP in, calls on the archive, HTTP out.
//!
//! ```text
//!  socket -> server -> outer ------------------> s3s -----> adapter -> archive
//!            TLS,      health, admin, limits,    XML, URLs  S3 words
//!            HTTP/1    SigV4, ids, error XML                <-> archive words
//! ```
//!
//! Nothing here knows about glass, staging or keys: every decision about objects is the archive's.
//! What S3 features are served, and which are refused, is told in `docs/s3-compatibility.md`.

mod adapter;
mod chain;
mod credentials;
mod error;
mod limits;
mod operator;
mod outer;
pub mod outside;
mod percent;
mod server;
mod status;

pub use credentials::Credentials;
pub use error::{ErrorKind, GatewayError, Result};
pub use limits::Limits;
pub use operator::{Nonce, OperatorCall};
pub use server::{Server, ServerConfig, TlsConfig, bind};
pub use status::{ServerStatus, WholeStatus};
