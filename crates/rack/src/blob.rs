//! A blob over all of its stacks: writes it stripe by stripe, reads it from any stacks that are
//! enough, and rebuilds lost stacks.
//!
//! Each of these holds one stripe in memory, that is `k + r` fragments, whatever the size of the
//! blob (Pelican, OSDI 2014, section 3.1).

mod buffers;
mod reader;
mod rebuild;
mod writer;

pub use reader::{BlobReader, Expected, Located, ReadMode};
pub use rebuild::rebuild;
pub use writer::{BlobWriter, Written};
