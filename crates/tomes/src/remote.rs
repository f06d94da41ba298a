//! A tome in another process, as its set sees it.
//!
//! Whoever carries calls between processes implements [`RemoteSeat`]; nothing here knows how. Each
//! time that the tome answers again it is told of its set ([`Introduction`]) and says what it has,
//! so whatever became of either side meanwhile is known. Not here: a tome that runs by itself
//! ([`crate::LoneTome`]).

use std::fmt;

use fulgurite_tome::group::Group;
use fulgurite_tome::message::Message;
use fulgurite_tome::token::FromKeeper;
use fulgurite_tome::{Layout, TomeId};
use fulgurite_units::TomeSetId;
use serde::{Deserialize, Serialize};

use crate::driver::Ask;
use crate::set::Charge;

/// What a set says to a tome before anything else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Introduction {
    /// The set.
    pub set: TomeSetId,
    /// Which of its tomes is meant.
    pub tome: TomeId,
    /// How its disk is divided.
    pub layout: Layout,
    /// Groups in which it has a seat.
    pub groups: Vec<Group>,
    /// Whether an awake store and a disk may be made where there are none. Not so once they were:
    /// what was lost is not to come back empty.
    pub may_make: bool,
}

/// What a tome answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// Data blocks of its regions.
    pub data_blocks: u64,
    /// Names that are being put for a set that was there before: they come yet, or not.
    pub under_way: Vec<String>,
}

/// A tome in another process.
pub trait RemoteSeat: Send + Sync + fmt::Debug {
    /// Begins to ask for answers, and goes on until it is stopped. Each time that the tome answers,
    /// [`Charge::listed`] is to be told what it has before anything is asked of it.
    fn begin(&self, charge: Charge);

    /// Asks for something. It never waits: what cannot be asked for now is refused with
    /// [`crate::TomesError::Away`], and what ends without an answer with
    /// [`crate::TomesError::Unanswered`].
    fn ask(&self, ask: Ask);

    /// A message of a tome that is in this process; it never waits, and may lose it.
    fn tell(&self, from: TomeId, message: Message);

    /// A message of the keeper of tokens; it never waits, and may lose it.
    fn tell_holder(&self, message: FromKeeper);

    /// Why it does not answer; nothing while it does.
    fn away(&self) -> Option<String>;

    /// Ends what was begun, and lets go of what it was charged with.
    fn stop(&self);
}
