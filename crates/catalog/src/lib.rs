//! The catalog: which objects exist, where their bytes are and what work is pending, as rows in an
//! ordered key-value store.
//!
//! ```text
//!   rows and tables        typed, written once over `ReadView` and `Transaction`
//!        |
//!   Committer              closures run serially; all that wait become one synced batch
//!        |
//!   KeyValue / ReadView    ordered spaces, consistent snapshots, atomic durable batches
//!        |
//!   FjallStore | MemoryStore
//! ```
//!
//! The engine knows nothing of objects: it stores bytes under byte keys, and rows as versioned
//! bytes. The catalog is not the only source of truth: a lost one can always be rebuilt from
//! platters and logs, together with what can be salvaged of a damaged one.

mod batch;
mod committer;
mod error;
mod fjall_store;
mod key_range;
pub mod keys;
mod kv;
pub mod limits;
mod memory_store;
mod metrics;
pub mod row;
mod space;
mod transaction;

pub use fulgurite_units::ErrorKind;

pub use batch::Batch;
pub use committer::{BeforeReopen, Committer, Ticket};
pub use error::{CatalogError, Cause};
pub use fjall_store::{CutBatch, Damage, FjallConfig, FjallStore, SalvageReport, SalvageVisitor};
pub use key_range::KeyRange;
pub use kv::{Direction, Entry, KeyValue, ReadView, Visitor};
pub use memory_store::MemoryStore;
pub use metrics::{CommitterCounts, CommitterMetrics};
pub use space::Space;
pub use transaction::Transaction;

#[cfg(test)]
mod tests;
