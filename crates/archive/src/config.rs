//! What an archive is told when it is opened.

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use crate::classes::{Access, Classes, Home, TierName};
pub use crate::space::SpaceOptions;
pub use crate::tiers::TierOptions;
pub use fulgurite_glass::Geometry;
pub use fulgurite_platters::config::{
    AnalogOptions, EngineChoice, Fidelity, HOURS, InjectedDamage, InjectedRead, InjectedWrite,
    LibraryOptions, LibraryShape, MediumOptions, Policy, QueueAddress, Tariff,
};
use fulgurite_units::{ByteCount, Duration};

/// The shard size to take when nobody says otherwise. The paper gives none. On its Volume workload
/// the twin's reads are complete sooner the smaller shards are (`docs/design/0005-placement.md`);
/// 4 GB is the smallest that was tried.
pub const SHARD_SIZE_DEFAULT: ByteCount = ByteCount::new(4_000_000_000);

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
    /// Platter geometry of new archives, and of new sets of an old one.
    pub geometry: Geometry,
    /// Seal policy.
    pub seal: SealPolicy,
    /// Which tier the objects of a class go to.
    pub classes: Classes,
    /// Tiers of objects, by name.
    pub tiers: BTreeMap<TierName, TierOptions>,
    /// A larger object is shared out to several platters of its set, to be read by several drives
    /// at the same time (Silica section 6). A shard is whole tracks, and never more than a quarter
    /// of a platter.
    pub shard_size: ByteCount,
    /// The simulated medium.
    pub medium: MediumOptions,
    /// The simulated library.
    pub library: LibraryOptions,
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
