//! What a set is opened with, and what a tome by itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fulgurite_disks::Backend;
use fulgurite_tome::{Layout, Split, TomeId};
use fulgurite_units::{Clock, Duration, TomeSetId};

use super::remotes::RemoteSeat;
use crate::fail_point::FailPoints;
use crate::injected::Injected;
use crate::network::Network;

/// Draws 16 bytes that nobody can guess: ids and the seeds of each start are made of them.
#[derive(Clone)]
pub struct Entropy(Arc<dyn Fn() -> [u8; 16] + Send + Sync>);

impl Entropy {
    /// What draws them.
    #[must_use]
    pub fn new(draw: impl Fn() -> [u8; 16] + Send + Sync + 'static) -> Self {
        Self(Arc::new(draw))
    }

    /// Draws.
    #[must_use]
    pub fn draw(&self) -> [u8; 16] {
        (self.0)()
    }
}

impl std::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Entropy")
    }
}

/// What a set is opened with.
#[derive(Debug)]
pub struct SetOptions {
    /// Which set it is, where others have to know before it is made; if none, its id is drawn.
    pub set: Option<TomeSetId>,
    /// Where awake stores, ledgers and what the set knows of itself are: storage that does not
    /// sleep.
    pub directory: PathBuf,
    /// Where the disk of each tome has its files. Tomes are numbered from zero.
    pub roots: BTreeMap<TomeId, PathBuf>,
    /// Tomes in other processes; numbered with those that are here.
    pub remotes: BTreeMap<TomeId, Arc<dyn RemoteSeat>>,
    /// How each disk is divided.
    pub layout: Layout,
    /// How many of each group have data and parity.
    pub split: Split,
    /// What turns the disks, each in the place of its tome's number.
    pub backend: Arc<dyn Backend>,
    /// How often each disk of this process is woken in any 24 hours, as far as that can wait.
    pub spin_ups_a_day: Option<u32>,
    /// How long each disk of this process turns for nothing before it is put down.
    pub idle: Duration,
    /// The one clock.
    pub clock: Clock,
    /// What ids and seeds are made of.
    pub entropy: Entropy,
    /// Where the process may be killed, for tests.
    pub fail: FailPoints,
    /// Faults that tests want.
    pub injected: Injected,
}

/// What a tome by itself is opened with.
#[derive(Debug)]
pub struct LoneOptions {
    /// Its set.
    pub set: TomeSetId,
    /// Which tome of it.
    pub tome: TomeId,
    /// Where its folder of what is awake is, named by its number as in the directory of a set.
    pub directory: PathBuf,
    /// Where its disk has its files.
    pub root: PathBuf,
    /// What turns the disk, in the place of its number.
    pub backend: Arc<dyn Backend>,
    /// How often it is woken in any 24 hours, as far as that can wait.
    pub spin_ups_a_day: Option<u32>,
    /// How long its disk turns for nothing before it is put down.
    pub idle: Duration,
    /// What carries messages to other tomes and to the keeper of tokens.
    pub network: Arc<dyn Network>,
    /// The one clock.
    pub clock: Clock,
    /// What seeds are made of.
    pub entropy: Entropy,
    /// Where the process may be killed, for tests.
    pub fail: FailPoints,
    /// Faults that tests want.
    pub injected: Injected,
}
