//! Options of a set, and of a standalone tome.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fulgurite_disks::Backend;
use fulgurite_tome_core::{CodeParams, Layout, TomeId};
use fulgurite_units::{Clock, Duration, TomeSetId};

use super::remotes::RemoteHandle;
use crate::faults::FaultInjector;
use crate::network::Network;
use crate::{Entropy, FailPoints};

/// Options of a set.
#[derive(Debug)]
pub struct SetOptions {
    /// Id of the set, if others must know it before it is created; otherwise it is drawn.
    pub set: Option<TomeSetId>,
    /// Folder of metadata stores, ledgers and the set's own state: on always-on storage.
    pub directory: PathBuf,
    /// Folder of each tome's disk. Tomes are numbered from zero.
    pub roots: BTreeMap<TomeId, PathBuf>,
    /// Tomes in other processes, in the same numbering.
    pub remotes: BTreeMap<TomeId, Arc<dyn RemoteHandle>>,
    /// Layout of each disk.
    pub layout: Layout,
    /// Code of the groups.
    pub split: CodeParams,
    /// Spins the disks up and down, each at the place of its tome's number.
    pub backend: Arc<dyn Backend>,
    /// Budget of deferrable spin-ups of each disk of this process in any 24 hours.
    pub spin_ups_a_day: Option<u32>,
    /// How long each disk of this process idles before it is spun down.
    pub idle: Duration,
    /// The set's clock.
    pub clock: Clock,
    /// Source of ids and seeds.
    pub entropy: Entropy,
    /// Fail point of a test.
    pub fail: FailPoints,
    /// Faults injected by tests.
    pub faults: FaultInjector,
}

/// Options of a standalone tome.
#[derive(Debug)]
pub struct StandaloneOptions {
    /// Its set.
    pub set: TomeSetId,
    /// Its number in the set.
    pub tome: TomeId,
    /// Folder that contains its metadata folder, which is named by its number as in a set.
    pub directory: PathBuf,
    /// Folder of its disk.
    pub root: PathBuf,
    /// Spins the disk up and down, at the place of its number.
    pub backend: Arc<dyn Backend>,
    /// Budget of deferrable spin-ups in any 24 hours.
    pub spin_ups_a_day: Option<u32>,
    /// How long its disk idles before it is spun down.
    pub idle: Duration,
    /// Carries messages to other tomes and the token manager.
    pub network: Arc<dyn Network>,
    /// The tome's clock.
    pub clock: Clock,
    /// Source of seeds.
    pub entropy: Entropy,
    /// Fail point of a test.
    pub fail: FailPoints,
    /// Faults injected by tests.
    pub faults: FaultInjector,
}
