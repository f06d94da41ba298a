//! Configuration of an archive, passed when it is opened.

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use crate::model::classes::{Access, Classes, Home, TierName};
pub use crate::shared::{
    SharedBytes, SharedCondition, SharedError, SharedObjectMeta, SharedOptions, SharedPut,
    SharedStore,
};
pub use crate::space::SpaceOptions;
pub use crate::tiers::{Calm, MovePolicy, TierOptions};
pub use fulgurite_glass::config::{
    AnalogOptions, EngineChoice, Fidelity, Geometry, GlassConfig, HOURS, InjectedDamage,
    InjectedRead, InjectedWrite, LibraryOptions, LibraryShape, MediumOptions, Policy, QueueAddress,
    SHARD_SIZE_DEFAULT, Tariff,
};
use fulgurite_units::{ByteCount, Duration};

/// When staged bodies are packed into a platter-set without an order.
#[derive(Clone, Copy, Debug)]
pub struct SealPolicy {
    /// As soon as this much is staged.
    pub staged_bytes: ByteCount,
    /// As soon as the oldest staged body is this old.
    pub age: Duration,
}

/// How Expedited restores of `DEEP_ARCHIVE` objects are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpeditedPolicy {
    /// Refuse it, as AWS does.
    Refuse,
    /// Serve it as Standard (some clients hard-code Expedited).
    Standard,
}

/// Everything an archive needs to know to open.
#[derive(Clone, Debug)]
pub struct ArchiveConfig {
    /// The data directory.
    pub data: PathBuf,
    /// The glass tier.
    pub glass: GlassConfig,
    /// When staged bodies are sealed.
    pub seal: SealPolicy,
    /// Which tier the objects of a class go to.
    pub classes: Classes,
    /// Tiers of objects, by name.
    pub tiers: BTreeMap<TierName, TierOptions>,
    /// The tier that gets a copy of staged bodies before their put is acknowledged, until they are
    /// in their home; `None` acknowledges when they are staged.
    pub acknowledged_at: Option<TierName>,
    /// Tiers that are far libraries: they keep redundancy platters, `glass.far_redundancy` of each
    /// set.
    pub far_libraries: Vec<TierName>,
    /// Buckets shared with other archives, if any.
    pub shared: Option<SharedOptions>,
    /// Maximum bytes in the staging, online and restored logs together; more is refused with
    /// `Full`.
    pub log_capacity: ByteCount,
    /// Free space to keep on the disk, and how soon deleted names are purged.
    pub space: SpaceOptions,
    /// Master key file; `None` is `DATA/keys/master.key`, created on first use.
    pub master_key: Option<PathBuf>,
    /// Files of the key table, all with the same content; empty means `DATA/keys/table` and
    /// `DATA/keys/table.copy`.
    pub key_tables: Vec<PathBuf>,
    /// How Expedited restores of `DEEP_ARCHIVE` are handled.
    pub expedited: ExpeditedPolicy,
    /// Event log of the restore controller, for replay; `None` writes none. The log of the previous
    /// start is renamed to the same path with `.1` appended.
    pub restore_log: Option<PathBuf>,
    /// Length of a restore day. Only tests shorten it; the status shows that.
    pub day: Duration,
    /// Name of a fail point, and how many passages succeed before the process is killed.
    pub fail_point: Option<(String, u32)>,
}
