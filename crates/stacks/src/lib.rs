//! Blobs on the disks of a rack (Pelican, OSDI 2014, section 3): coded into stacks, one a disk,
//! that say what they are, so that any that are enough give the blob back, and all of them the
//! index.
//!
//! ```text
//! blob     BlobWriter, BlobReader, rebuild: one blob over its stacks
//! stack    StackWriter, StackReader: one file on one disk
//! format   header, fragments with their sums, trailer: docs/formats/stack.md
//! ```
//!
//! Not here: which disks a blob goes to and when they spin (`rack`), and what a disk is (`disks`).

pub mod blob;
mod error;
mod fault;
pub mod format;
pub mod limits;
pub mod stack;

pub use error::{LostStack, Result, StacksError};
pub use fault::Fault;

#[cfg(test)]
mod tests;
