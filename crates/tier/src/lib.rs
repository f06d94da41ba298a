//! What the tiers share: what an operator sees and does of them, `object_store`'s trait over a
//! store of objects by key, the thread of a controller, live events, fail points, and the source
//! of random bytes.
//!
//! ```text
//! tier                    the trait of a tier for its operator: state, operations, events
//! metrics                 metrics of tiers
//! objects                 the trait of a store by key, and `object_store`'s over it
//! upload                  uploads in parts, likewise
//! mode                    the precondition of a put
//! condition               how object_store states that
//! attributes              object attributes, as names with values
//! entry                   an object in the index, as `ObjectMeta`
//! listing                 pages of an index, as listings with and without folders
//! to_object_store_error   converts a store's errors to those of `object_store`
//! conformance             the suite that tiers pass
//! fail_points             where a test may kill the process
//! progress                bytes done of a long operation
//! entropy                 random bytes, injected
//! watch                   live events for subscribers that nothing waits for
//! driver                  the thread of a controller: inbox, alarms, stop, panics
//! ```
//!
//! Each store brings its own index and decides where its bytes live. Not here: bytes, and
//! durability.

mod attributes;
mod condition;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod driver;
mod entropy;
mod entry;
mod fail_points;
mod listing;
mod metrics;
mod mode;
mod objects;
mod progress;
mod tier;
mod to_object_store_error;
mod upload;
pub mod watch;

use attributes::{attribute_pairs, attributes};
use condition::mode;
pub use entropy::Entropy;
pub use entry::{Entry, put_result};
pub use fail_points::FailPoints;
pub use listing::{Cursor, Keys, list, list_with_delimiter};
pub use metrics::{MetricFamilies, TierMetrics};
pub use mode::Mode;
pub use objects::{KeyedStore, NewObject, ReadOptions, adapter};
pub use progress::{Part, Progress};
pub use tier::{
    Operation, OperationArgs, Target, Tier, TierError, TierEvent, TierKind, TierOperation,
};
pub use to_object_store_error::{ObjectStoreError, ObjectStoreErrorKind, to_generic_error};
use to_object_store_error::{generic_error, to_object_store_error};
pub use upload::KeyedUpload;
