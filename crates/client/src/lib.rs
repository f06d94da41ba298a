//! The client side of an archive: finds the server and the credentials, and makes the S3 calls that
//! the commands need.
//!
//! ```text
//!   flags, data directory, environment --> remote --> s3::Client --> any S3 endpoint
//! ```

pub mod credentials;
pub mod file_time;
pub mod limits;
pub mod names;
pub mod remote;
pub mod s3;
pub mod server_file;
