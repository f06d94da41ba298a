//! What an archive is told when it is opened.

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use crate::objects::classes::{Access, Classes, Home, TierName};
pub use crate::shared::{
    SharedBytes, SharedCondition, SharedError, SharedFound, SharedOptions, SharedPut, SharedStore,
};
pub use crate::space::SpaceOptions;
pub use crate::tiers::{Calm, MoveWhen, TierOptions};
pub use fulgurite_platters::config::{
    AnalogOptions, EngineChoice, Fidelity, Geometry, GlassConfig, HOURS, InjectedDamage,
    InjectedRead, InjectedWrite, LibraryOptions, LibraryShape, MediumOptions, Policy, QueueAddress,
    SHARD_SIZE_DEFAULT, Tariff,
};
use fulgurite_units::{ByteCount, Duration};

/// When staged bodies are packed into a platter-set without being asked.
#[derive(Clone, Copy, Debug)]
pub struct SealPolicy {
    /// As soon as this much is staged.
    pub staged_bytes: ByteCount,
    /// As soon as the oldest staged body is this old.
    pub age: Duration,
}

/// What a restore of retrieval Expedited does for `DEEP_ARCHIVE`.
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
    /// Seal policy.
    pub seal: SealPolicy,
    /// Which tier the objects of a class go to.
    pub classes: Classes,
    /// Tiers of objects, by name.
    pub tiers: BTreeMap<TierName, TierOptions>,
    /// The tier in which a copy of what is staged lies before its put is acknowledged, until it is
    /// in its home; `None` acknowledges what is staged.
    pub acknowledged_at: Option<TierName>,
    /// Tiers that are far libraries: they keep redundancy platters, as many of each set as
    /// `glass.far_redundancy` says.
    pub far_libraries: Vec<TierName>,
    /// Buckets that this archive shares with others; none without.
    pub shared: Option<SharedOptions>,
    /// Most bytes staging, online and restored logs may hold together; more is refused with `Full`.
    pub log_capacity: ByteCount,
    /// What is kept free on the disk, and how soon deleted names are forgotten.
    pub space: SpaceOptions,
    /// Master key file; `None` is `DATA/keys/master.key`, made on first use.
    pub master_key: Option<PathBuf>,
    /// Files of the key table, all of which hold the same; none given means `DATA/keys/table` and
    /// `DATA/keys/table.copy`.
    pub key_tables: Vec<PathBuf>,
    /// Expedited on `DEEP_ARCHIVE`.
    pub expedited: ExpeditedPolicy,
    /// Where what the controller of restores is told and decides is written down, to be played
    /// again; nowhere without a path. A log of an earlier start goes to the same path with `.1`
    /// behind.
    pub restore_log: Option<PathBuf>,
    /// Length of a restore day; shorter only for tests, shown as such by status.
    pub day: Duration,
    /// Name of a fail point, and how many passages it lets through before the process is killed.
    pub fail_point: Option<(String, u32)>,
}
