//! What a tome says of itself.

use fulgurite_disks::{CauseKind, Power};
use fulgurite_tome::awake::Scrubbed;
use fulgurite_tome::token::TokenId;
use fulgurite_tome::{Spending, TomeId, Unprotected};
use fulgurite_units::{ByteCount, Duration, UnixTime};

use crate::piece_store::Placed;

/// What one tome does, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TomeStatus {
    /// Which.
    pub tome: TomeId,
    /// What its disk does.
    pub power: Power,
    /// The token under which it does, if it turns.
    pub token: Option<TokenId>,
    /// Objects that it has.
    pub objects: u64,
    /// What of them its groups do not protect yet.
    pub unprotected: Unprotected,
    /// How far its disk was read to see whether it can be.
    pub scrubbed: Scrubbed,
    /// When the present pass of the full scrub began; none where nobody says.
    pub scrub_began: Option<UnixTime>,
    /// Places that are left of what somebody wants read now.
    pub to_scrub: u64,
    /// Places of its disk; none when it is not here.
    pub blocks: u64,
    /// Times that its disk was woken.
    pub wakes: u64,
    /// Those of each cause, in the order of [`CauseKind::ALL`].
    pub wakes_by: [u64; CauseKind::ALL.len()],
    /// Those of the last day, as budgets count: by hours, so it looks back an hour more.
    pub wakes_of_a_day: u64,
    /// How its budget of spin-ups stands, if it has one.
    pub spending: Option<Spending>,
    /// Blocks that were bad and were made anew, since it was opened.
    pub healed: u64,
    /// Blocks that are bad and were not made anew yet.
    pub bad: u64,
    /// Why it is given up, until it works again.
    pub trouble: Option<String>,
    /// Why nothing is known of it, until it answers again by itself.
    pub away: Option<String>,
    /// What somebody should look at, the latest last.
    pub alarms: Vec<String>,
}

impl TomeStatus {
    /// Of a tome that could not be opened.
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
            wakes: 0,
            wakes_by: Default::default(),
            wakes_of_a_day: 0,
            spending: None,
            healed: 0,
            bad: 0,
            trouble: Some(why),
            away: None,
            alarms: Vec::new(),
        }
    }

    /// Of a tome in another process that does not answer.
    pub(crate) fn away(tome: TomeId, why: String) -> Self {
        Self { trouble: None, away: Some(why), ..Self::lost(tome, String::new()) }
    }

    /// Why it is not well; nothing when it is.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let given_up = self.trouble.iter().map(|why| format!("given up: {why}"));
        let all = given_up.chain(self.away.iter().cloned()).chain(self.alarms.iter().cloned());
        all.map(|why| format!("tome {}: {why}", self.tome)).collect()
    }
}

/// What a tome has, as far as one answer goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Data blocks of its regions, those of objects and others.
    pub data_blocks: u64,
    /// Regions that it has or had a seat of a group with.
    pub regions: usize,
    /// Objects by name; fewer than were asked for are the last.
    pub objects: Vec<Listed>,
}

/// An object that a tome has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Data blocks that it takes.
    pub blocks: u64,
    /// Where they lie, and what they are known by.
    pub placed: Option<Placed>,
}
