//! A blob over all of its stacks: written stripe by stripe, read from any that are enough, and
//! stacks that are lost made anew.
//!
//! Memory of each is one stripe, that is `k + r` fragments, whatever the size of the blob
//! (Pelican, OSDI 2014, section 3.1).

mod buffers;
mod reader;
mod rebuild;
mod writer;

pub use reader::{BlobReader, Expected, How, Located};
pub use rebuild::rebuild;
pub use writer::{BlobWriter, Written};
