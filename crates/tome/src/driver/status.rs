//! Status of a tome.

use fulgurite_disks::{CauseKind, Power};
use fulgurite_tome_core::metadata::Scrubbed;
use fulgurite_tome_core::token::TokenId;
use fulgurite_tome_core::{Spending, TomeId, Unprotected};
use fulgurite_units::{ByteCount, Duration, UnixTime};

use crate::piece_store::ObjectLocation;

/// State of one tome, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TomeStatus {
    /// The tome.
    pub tome: TomeId,
    /// Power state of its disk.
    pub power: Power,
    /// The token under which it spins, if it does.
    pub token: Option<TokenId>,
    /// Number of its objects.
    pub objects: u64,
    /// Data that its groups do not protect yet.
    pub unprotected: Unprotected,
    /// Progress of the full scrub.
    pub scrubbed: Scrubbed,
    /// When the present pass of the full scrub began; `None` if unknown.
    pub scrub_began: Option<UnixTime>,
    /// Places left of a requested scrub.
    pub to_scrub: u64,
    /// Places of its disk; zero when it is not here.
    pub blocks: u64,
    /// Spin-ups of its disk.
    pub spin_ups: u64,
    /// Spin-ups by cause, in the order of [`CauseKind::ALL`].
    pub spin_ups_by_cause: [u64; CauseKind::ALL.len()],
    /// Spin-ups of the last day as budgets count them: by hours, so it covers up to an hour more.
    pub spin_ups_last_day: u64,
    /// State of its spin-up budget, if it has one.
    pub spending: Option<Spending>,
    /// Bad blocks rebuilt since it was opened.
    pub healed: u64,
    /// Bad blocks not rebuilt yet.
    pub bad: u64,
    /// Why it is given up, until it works again.
    pub failure: Option<String>,
    /// Why its state is unknown, until it answers again by itself.
    pub away: Option<String>,
    /// Alarms for the operator, the latest last.
    pub alarms: Vec<String>,
}

impl TomeStatus {
    /// Returns the status of a tome that could not be opened.
    pub(crate) fn lost(tome: TomeId, why: String) -> Self {
        let unprotected = Unprotected { bytes: ByteCount::ZERO, age: Duration::ZERO };
        Self {
            tome,
            power: Power::Absent,
            token: None,
            objects: 0,
            unprotected,
            scrubbed: Scrubbed::default(),
            scrub_began: None,
            to_scrub: 0,
            blocks: 0,
            spin_ups: 0,
            spin_ups_by_cause: Default::default(),
            spin_ups_last_day: 0,
            spending: None,
            healed: 0,
            bad: 0,
            failure: Some(why),
            away: None,
            alarms: Vec::new(),
        }
    }

    /// Returns the status of a tome in another process that does not answer.
    pub(crate) fn away(tome: TomeId, why: String) -> Self {
        Self { failure: None, away: Some(why), ..Self::lost(tome, String::new()) }
    }

    /// Returns why it is not healthy; empty when it is.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let given_up = self.failure.iter().map(|why| format!("given up: {why}"));
        let all = given_up.chain(self.away.iter().cloned()).chain(self.alarms.iter().cloned());
        all.map(|why| format!("tome {}: {why}", self.tome)).collect()
    }
}

/// A page of a tome's objects, with its capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectPage {
    /// Data blocks of its regions, used and free.
    pub data_blocks: u64,
    /// Regions that are or were members of a group.
    pub regions: usize,
    /// Objects by name; fewer than requested means the end.
    pub objects: Vec<ListedObject>,
}

/// An object that a tome has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// Its name.
    pub name: String,
    /// Data blocks that it takes.
    pub blocks: u64,
    /// Where its blocks are, and their signatures.
    pub placed: Option<ObjectLocation>,
}
