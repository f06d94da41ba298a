//! The acceptor: what a site's row becomes by a request, and what is answered.
//!
//! ```text
//! row + request --step--> row' + verdict     pure; whoever keeps rows reads one, steps, and writes
//!                                            it back if it is still the one that was read
//!
//!              version v of a row
//!     (nothing) --PreAccept x--> accepted x, fast
//!         |  \                        |
//!         |   '--Prepare b--> promised b (what was accepted stays)
//!         |                           |
//!         '-------- Accept b x ------>'--> accepted x in b, when b is not below what was seen
//!     and from anywhere: told that v is decided -> decided, and no longer open
//! ```
//!
//! The same function serves rows at sites, the models, the simulation and the twin. A failed
//! condition of the store is no answer of the protocol: the row is read and stepped again.

use serde::{Deserialize, Serialize};

use crate::{Accepted, Ballot, Epoch, Known, Row, Value, Version};

/// What a site is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// The epoch of the map that the sender has.
    pub epoch: Epoch,
    /// What the sender knows to be decided: told along, so that rows that lag behind catch up.
    pub known: Known,
    /// What is asked.
    pub command: Command,
}

/// What can be asked of a site about an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Command {
    /// Its row.
    Read,
    /// Nothing: it is told what is decided.
    Learn,
    /// To accept a value in the fast round, if nothing was promised or accepted for the version.
    PreAccept {
        /// For which version.
        version: Version,
        /// What.
        value: Value,
    },
    /// To promise not to accept anything in earlier ballots.
    Prepare {
        /// For which version.
        version: Version,
        /// The ballot.
        ballot: Ballot,
    },
    /// To accept a value in a ballot.
    Accept {
        /// For which version.
        version: Version,
        /// In which ballot.
        ballot: Ballot,
        /// What.
        value: Value,
    },
    /// To vote from now on, at a site that had forgotten its rows: enough others promised not to
    /// accept anything in ballots before this one for the version after what is known, of which
    /// nothing may have been chosen then. Refused while a version before that one is not known.
    Restore {
        /// That version.
        next: Version,
        /// The ballot that they promised.
        ballot: Ballot,
    },
}

/// What a site is at the moment, as its keeper knows from the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Standing {
    /// The epoch of the map.
    pub epoch: Epoch,
    /// Whether its rows were lost and are being made again: a row that is not there may have been.
    pub rebuilding: bool,
}

/// What is answered; the row comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// Done.
    Ok,
    /// Not done: another ballot or value came first.
    Rejected,
    /// The version was decided before: the row says what, or that it is gone.
    Decided,
    /// The site does not know what it promised, and does not vote on this object yet.
    Forgotten,
    /// The sender's map is an old one.
    OldMap,
}

/// What a step led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stepped {
    /// The row as it is now.
    pub row: Row,
    /// Whether it is another than before and has to be written before anything is answered.
    pub changed: bool,
    /// What is answered.
    pub verdict: Verdict,
}

/// Applies a request to a row, or to none.
#[must_use]
pub fn step(row: Option<&Row>, request: &Request, standing: Standing) -> Stepped {
    let missing = Row { silent: standing.rebuilding, ..Row::default() };
    let mut row = row.cloned().unwrap_or(missing);
    if request.epoch < standing.epoch {
        return Stepped { row, changed: false, verdict: Verdict::OldMap };
    }
    let told = row.learn(&request.known);
    let (asked, verdict) = apply(&mut row, &request.command);
    Stepped { row, changed: told || asked, verdict }
}

/// Applies a command. Says whether that changed the row.
fn apply(row: &mut Row, command: &Command) -> (bool, Verdict) {
    match command {
        Command::Learn => (false, Verdict::Ok),
        Command::Restore { next, ballot } => restore(row, *next, *ballot),
        Command::Read if row.silent => (false, Verdict::Forgotten),
        Command::Read => (false, Verdict::Ok),
        Command::PreAccept { version, value } => match closed(row, *version) {
            Some(verdict) => (false, verdict),
            None => pre_accept(row, *version, value),
        },
        Command::Prepare { version, ballot } => match closed(row, *version) {
            Some(verdict) => (false, verdict),
            None => prepare(row, *version, *ballot),
        },
        Command::Accept { version, ballot, value } => match closed(row, *version) {
            Some(verdict) => (false, verdict),
            None => accept(row, *version, *ballot, value),
        },
    }
}

/// Why a row cannot vote on a version, if it cannot.
fn closed(row: &Row, version: Version) -> Option<Verdict> {
    if row.known.has(version) {
        return Some(Verdict::Decided);
    }
    row.silent.then_some(Verdict::Forgotten)
}

fn pre_accept(row: &mut Row, version: Version, value: &Value) -> (bool, Verdict) {
    let instance = row.open.entry(version).or_default();
    match &instance.accepted {
        // Told twice. It was accepted when nothing else had been, promise or not since then.
        Some(accepted) if accepted.ballot.is_fast() && accepted.value == *value => {
            (false, Verdict::Ok)
        }
        Some(_) => (false, Verdict::Rejected),
        // A promise alone is reason enough: whoever has it may propose something else.
        None if instance.seen.is_some() => (false, Verdict::Rejected),
        None => {
            instance.seen = Some(Ballot::FAST);
            instance.accepted = Some(Accepted { ballot: Ballot::FAST, value: value.clone() });
            (true, Verdict::Ok)
        }
    }
}

fn prepare(row: &mut Row, version: Version, ballot: Ballot) -> (bool, Verdict) {
    let instance = row.open.entry(version).or_default();
    if instance.seen.is_some_and(|seen| seen > ballot) {
        return (false, Verdict::Rejected);
    }
    let changed = instance.seen != Some(ballot);
    instance.seen = Some(ballot);
    (changed, Verdict::Ok)
}

fn accept(row: &mut Row, version: Version, ballot: Ballot, value: &Value) -> (bool, Verdict) {
    let instance = row.open.entry(version).or_default();
    if instance.seen.is_some_and(|seen| seen > ballot) {
        return (false, Verdict::Rejected);
    }
    let accepted = Accepted { ballot, value: value.clone() };
    let changed = instance.seen != Some(ballot) || instance.accepted.as_ref() != Some(&accepted);
    instance.seen = Some(ballot);
    instance.accepted = Some(accepted);
    (changed, Verdict::Ok)
}

/// Lets a row vote that did not. It promises what those promised who made it whole.
fn restore(row: &mut Row, next: Version, ballot: Ballot) -> (bool, Verdict) {
    if !row.silent {
        return (false, Verdict::Ok);
    }
    // Of a version of which it neither knows what was decided nor what it had accepted, it would
    // promise that it had accepted nothing, and help to choose something else.
    if (row.known.floor.0 + 1..next.0).map(Version).any(|before| !row.known.has(before)) {
        return (false, Verdict::Rejected);
    }
    row.silent = false;
    // When `next` was decided meanwhile, it was after the others promised: nobody who counts on
    // what this site had accepted before it forgot can know of a version after that.
    if !row.known.has(next) {
        let (_, verdict) = prepare(row, next, ballot);
        assert_eq!(verdict, Verdict::Ok, "a row that does not vote promises nothing");
    }
    (true, Verdict::Ok)
}
