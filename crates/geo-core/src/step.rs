//! The acceptor: computes a site's new row and the answer from a request.
//!
//! ```text
//! row + request --step--> row' + verdict     pure; the row's store reads one, steps, and writes it
//!                                            back if it is still the one that was read
//!
//!              version v of a row
//!     (nothing) --PreAccept x--> accepted x, fast
//!         |  \                        |
//!         |   '--Prepare b--> promised b (what was accepted stays)
//!         |                           |
//!         '-------- Accept b x ------>'--> accepted x in b, when b is not below what was seen
//!     and from any state: learns that v is decided -> decided, and no longer open
//! ```
//!
//! The same function serves rows at sites, the models, the simulation and the twin. A failed
//! conditional write is not an answer of the protocol: the row is read and stepped again.

use serde::{Deserialize, Serialize};

use crate::{Accepted, Ballot, Epoch, KnownVersions, Row, Value, Version};

/// A request to a site.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// Epoch of the sender's site map.
    pub epoch: Epoch,
    /// What the sender knows to be decided; sent along so that rows that lag behind catch up.
    pub known: KnownVersions,
    /// The command.
    pub command: Command,
}

/// A command to a site about an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Command {
    /// To return its row.
    Read,
    /// To learn what is decided, and nothing else.
    Learn,
    /// To accept a value in the fast round, if nothing was promised or accepted for the version.
    PreAccept {
        /// The version.
        version: Version,
        /// The value.
        value: Value,
    },
    /// To promise to reject earlier ballots.
    Prepare {
        /// The version.
        version: Version,
        /// The ballot.
        ballot: Ballot,
    },
    /// To accept a value in a ballot.
    Accept {
        /// The version.
        version: Version,
        /// The ballot.
        ballot: Ballot,
        /// The value.
        value: Value,
    },
    /// To vote again, at a site that had lost its rows. Enough other sites promised to reject
    /// ballots before this one for the version after the last known one, for which nothing may have
    /// been chosen then. Rejected while an earlier version is not known.
    Restore {
        /// That version.
        next: Version,
        /// The ballot that they promised.
        ballot: Ballot,
    },
}

/// Current state of a site, as the site map states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SiteState {
    /// The epoch of the map.
    pub epoch: Epoch,
    /// Whether its rows were lost and are being rebuilt: a missing row may have existed.
    pub rebuilding: bool,
}

/// The answer to a command; the row comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// Done.
    Ok,
    /// Not done: another ballot or value came first.
    Rejected,
    /// The version was decided before: the row has its value, or says that it is gone.
    Decided,
    /// The site lost its promises and does not vote on this object yet.
    Forgotten,
    /// The sender's map is out of date.
    OldMap,
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepResult {
    /// The new row.
    pub row: Row,
    /// Whether it changed and must be written before the site answers.
    pub changed: bool,
    /// The answer.
    pub verdict: Verdict,
}

/// Applies a request to a row, or to none.
#[must_use]
pub fn step(row: Option<&Row>, request: &Request, site_state: SiteState) -> StepResult {
    let missing = Row { silent: site_state.rebuilding, ..Row::default() };
    let mut row = row.cloned().unwrap_or(missing);
    if request.epoch < site_state.epoch {
        return StepResult { row, changed: false, verdict: Verdict::OldMap };
    }
    let learned = row.learn(&request.known);
    let (applied, verdict) = apply(&mut row, &request.command);
    StepResult { row, changed: learned || applied, verdict }
}

/// Applies a command. Returns whether that changed the row, and the verdict.
fn apply(row: &mut Row, command: &Command) -> (bool, Verdict) {
    match command {
        Command::Learn => (false, Verdict::Ok),
        Command::Restore { next, ballot } => restore(row, *next, *ballot),
        Command::Read if row.silent => (false, Verdict::Forgotten),
        Command::Read => (false, Verdict::Ok),
        Command::PreAccept { version, value } => match refusal(row, *version) {
            Some(verdict) => (false, verdict),
            None => pre_accept(row, *version, value),
        },
        Command::Prepare { version, ballot } => match refusal(row, *version) {
            Some(verdict) => (false, verdict),
            None => prepare(row, *version, *ballot),
        },
        Command::Accept { version, ballot, value } => match refusal(row, *version) {
            Some(verdict) => (false, verdict),
            None => accept(row, *version, *ballot, value),
        },
    }
}

/// Returns why a row cannot vote on a version, if it cannot.
fn refusal(row: &Row, version: Version) -> Option<Verdict> {
    if row.known.has(version) {
        return Some(Verdict::Decided);
    }
    row.silent.then_some(Verdict::Forgotten)
}

fn pre_accept(row: &mut Row, version: Version, value: &Value) -> (bool, Verdict) {
    let instance = row.open.entry(version).or_default();
    match &instance.accepted {
        // A repeat. It was accepted when nothing else had been, whatever was promised since.
        Some(accepted) if accepted.ballot.is_fast() && accepted.value == *value => {
            (false, Verdict::Ok)
        }
        Some(_) => (false, Verdict::Rejected),
        // A promise alone is reason to reject: its holder may propose another value.
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

/// Makes a row vote again. It makes the same promise as the sites that restored it.
fn restore(row: &mut Row, next: Version, ballot: Ballot) -> (bool, Verdict) {
    if !row.silent {
        return (false, Verdict::Ok);
    }
    // If it does not know what was decided for a version, it has also forgotten what it accepted:
    // it would promise that it had accepted nothing, and help to choose another value.
    if (row.known.floor.0 + 1..next.0).map(Version).any(|before| !row.known.has(before)) {
        return (false, Verdict::Rejected);
    }
    row.silent = false;
    // If `next` was decided meanwhile, that was after the others promised: no proposer that counts
    // on what this site accepted before the loss can know of a version after that.
    if !row.known.has(next) {
        let (_, verdict) = prepare(row, next, ballot);
        assert_eq!(verdict, Verdict::Ok, "a row that does not vote promises nothing");
    }
    (true, Verdict::Ok)
}
