//! What stores of objects by key have in common: `object_store`'s words for conditions, attributes,
//! listings and errors, in terms of an index that says a page of keys at a time.
//!
//! ```text
//! mode         on what condition an object is put
//! condition    what a put says of that
//! attributes   what its writer says of it, as names
//! entry        what an index knows of an object, as `ObjectMeta`
//! removal      objects one after the other
//! listing      pages of an index, as listings with and without folders
//! told         an error of the store, as one of `object_store`
//! ```
//!
//! A store brings an index of its own, and where its bytes are. Not here: bytes, and what is on
//! stable storage.

mod attributes;
mod condition;
mod entry;
mod listing;
mod mode;
mod removal;
mod told;

pub use attributes::{attributes, names};
pub use condition::mode;
pub use entry::{Entry, put_result};
pub use listing::{From, Keys, list, list_with_delimiter};
pub use mode::Mode;
pub use removal::remove_all;
pub use told::{Failure, Sort, generic, told, told_of_none};
