//! What key-value object stores share: `object_store`'s preconditions, attributes, listings and
//! errors, in terms of an index that returns a page of keys at a time.
//!
//! ```text
//! mode                    the precondition of a put
//! condition               how object_store states that
//! attributes              object attributes, as names with values
//! entry                   an object in the index, as `ObjectMeta`
//! removal                 removes a stream of objects
//! listing                 pages of an index, as listings with and without folders
//! to_object_store_error   converts a store's errors to those of `object_store`
//! ```
//!
//! Each store brings its own index and decides where its bytes live. Not here: bytes, and
//! durability.

mod attributes;
mod condition;
mod entry;
mod listing;
mod mode;
mod removal;
mod to_object_store_error;

pub use attributes::{attribute_pairs, attributes};
pub use condition::mode;
pub use entry::{Entry, put_result};
pub use listing::{Cursor, Keys, list, list_with_delimiter};
pub use mode::Mode;
pub use removal::remove_all;
pub use to_object_store_error::{
    ObjectStoreError, ObjectStoreErrorKind, generic_error, to_generic_error, to_object_store_error,
};
