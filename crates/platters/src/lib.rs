//! The glass tier: platters in files, the simulated medium, who decodes it, and the library that
//! moves platters.
//!
//! It knows bodies by their ids. What a body is of - object, bucket, class - and what opens it is
//! not known here, nor is anything of S3.

mod error;
mod panics;
pub mod progress;

pub use error::{PlattersError, Result};
pub use panics::Panics;
pub use progress::Progress;
