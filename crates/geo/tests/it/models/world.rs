//! A world of sites and agents as a model: who may do what in a state, and what may never be.
//!
//! ```text
//! agent --question--> kept for good: delivered to any site at any time, again too, or never
//! site  --answer----> kept until the agent asks something else: it goes on with any, or none
//! ```
//!
//! Sites are alike, so a state lists them in order: states that differ by which site is which are
//! one. Agents are sketches of the proposer (design note 0031): what they ask and conclude is what
//! it does, but they wait for nothing, give up at any moment and stop at any moment. What sites do
//! and what is concluded is the code's own.

use fulgurite_geo::limits::VOTING_SITES_MAX;
use fulgurite_geo::{Known, Quorums, Row, Version};
use stateright::{Model, Property};

use super::table::{Ask, Attempt, KnownId, Pick, RowId, Sent, Table, Val, Ver, What};

pub(super) const AGENTS_MAX: usize = 4;
/// Classic ballots of a world, at most: a bit of [`Site::votes`] each, beside the fast one.
const BALLOTS_MAX: usize = 6;
const VALUES_MAX: usize = 3;
pub(super) const VERSIONS_MAX: usize = 3;

/// Votes of fast rounds, of all versions.
const FAST_VOTES: u64 = {
    let (version, values) = ((BALLOTS_MAX + 1) * VALUES_MAX, (1 << VALUES_MAX) - 1);
    values | values << version | values << (2 * version)
};

/// What an agent is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It writes these values, one after the other.
    Writer(Vec<Val>),
    /// It reads so often.
    Reader(u8),
    /// It removes what nobody can ask for, of puts all but so many.
    Collector(Option<usize>),
    /// It has a site vote that lost its rows.
    Healer,
}

/// What is done otherwise than it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    Nothing,
    /// A site that lost its rows votes as if it had not.
    LostUnfenced,
    /// A reader reads one row.
    LocalRead,
    /// A reader takes no heed of what is accepted after the last version that was decided.
    IgnoreAccepted,
    /// A reader takes the version before at the first fragment that is missing.
    EagerFallback,
    /// A reader takes fragments for absent whose site does not answer.
    UnavailableIsAbsent,
    /// A reader takes the version before without reading the rows again.
    FallbackUnconfirmed,
    /// A writer proposes for the next version while this one is open.
    ProposeEarly,
    /// What is gone is said before its fragments are removed.
    GoneFirst,
    /// Rows of which all is gone are removed.
    RowRemoved,
    /// A site votes again though the others promised nothing for it.
    RestoreUnpromised,
    /// A site votes again though only one other promised for it.
    RestoreByOne,
    /// A site votes again though what may have been chosen is not decided again.
    RestoreOpen,
}

/// Fragments of every put.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragments {
    /// How many give it back.
    pub(super) data: usize,
    /// How many must be written before it is acknowledged.
    pub(super) acknowledged: usize,
    /// Whether a reader reads the rows again before it takes the version before.
    pub(super) confirm: bool,
}

/// A model.
#[derive(Debug)]
pub(super) struct World {
    pub(super) table: Table,
    pub(super) mutant: Mutant,
    pub(super) roles: Vec<Role>,
    /// Versions that are written, at most.
    pub(super) versions: Ver,
    /// Classic ballots of an agent, at most.
    pub(super) attempts: u8,
    pub(super) fragments: Option<Fragments>,
    /// Whether agents go on at once when they can. That leaves out nothing: an answer that comes
    /// late is like a question that does, or that was given up before, and who answers or is
    /// acknowledged at once binds more of those who begin later.
    pub(super) prompt: bool,
    /// Whether a site loses its rows.
    pub(super) loses: bool,
    /// Whether who decided a version says so.
    pub(super) commits: bool,
    /// What every row knows in the beginning.
    pub(super) known: Known,
    /// Whether that was acknowledged, fragments and all.
    pub(super) acknowledged: Ver,
    /// What is under way in the beginning.
    pub(super) late: Vec<Ask>,
}

/// What a site answered to an agent's question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Reply {
    #[default]
    Nothing,
    Ok,
    /// With its row.
    Row(RowId),
    /// The version was decided, as its row says.
    Decided(RowId),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Site {
    pub(super) row: Option<RowId>,
    /// Whether it lost its rows.
    pub(super) lost: bool,
    /// What it ever accepted, forgotten or not: a bit each version, ballot and value.
    pub(super) votes: u64,
    /// Whose fragments it has: a bit each value.
    pub(super) fragments: u8,
    pub(super) replies: [Reply; AGENTS_MAX],
    /// Which agents found that a fragment is not there.
    pub(super) absent: [bool; AGENTS_MAX],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Phase {
    Idle,
    Fast(Ver),
    Preparing(Ver, Attempt),
    Accepting(Ver, Attempt, Val),
    /// Decided; not enough fragments are written yet.
    Writing(Ver),
    Reading,
    Fetching(Ver),
    /// Fragments of a version are removed.
    Removing(Ver),
    Restoring,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Agent {
    pub(super) phase: Phase,
    pub(super) known: KnownId,
    /// The question at hand.
    pub(super) asks: Option<Sent>,
    /// Classic ballots that it began, of each version.
    pub(super) attempts: [u8; VERSIONS_MAX + 2],
    /// How much of what it is for is done.
    pub(super) done: u8,
    /// The last version that somebody had seen or written when it began.
    pub(super) least: Ver,
    /// The version whose fragments were not there when the rows were read last.
    pub(super) missing: Ver,
    /// The version that was known to be durable, and whose fragments were not there once before.
    pub(super) doubted: Ver,
    /// Versions that were never there, a bit each.
    pub(super) skipped: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) sites: Vec<Site>,
    pub(super) agents: Vec<Agent>,
    /// Questions that nobody waits for any more.
    pub(super) late: Vec<Sent>,
    /// The last version that somebody has seen, or whose write was acknowledged.
    pub(super) answered: Ver,
    /// What was answered that must not be.
    pub(super) wrong: Option<Wrong>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wrong {
    /// An older version than somebody knew before.
    Stale,
    /// A write came before another one that had ended when it began.
    WriteBefore,
    /// Bytes of a version that was acknowledged are not there.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// An agent begins, with what a site knows.
    Begin(usize, usize),
    /// A site is asked what an agent asks.
    Deliver(usize, usize),
    /// A site is asked what was asked long ago.
    Late(usize, usize),
    /// An agent learns from an answer that a version was decided.
    Hear(usize, usize),
    /// An agent goes on with these answers.
    Conclude(usize, u16),
    /// An agent that has these promises goes on with a value.
    Propose(usize, u16, Pick),
    /// An agent tries the next ballot.
    Retry(usize),
    /// A fragment is written.
    Write(Val, usize),
    /// A fragment is asked for and is not there.
    Miss(usize, usize),
    /// A reader has what it needs, or knows that it cannot.
    Settle(usize),
    /// A fragment is removed.
    Remove(usize, usize),
    /// A site loses its rows.
    Lose(usize),
    /// A row is removed.
    RemoveRow(usize),
}

impl Agent {
    /// One that has not begun.
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Idle,
            known: 0,
            asks: None,
            attempts: [0; VERSIONS_MAX + 2],
            done: 0,
            least: 0,
            missing: 0,
            doubted: 0,
            skipped: 0,
        }
    }
}

impl State {
    pub(super) fn is_gone(&self, world: &World, val: Val) -> bool {
        let gone = |row: &Row| {
            let gone = row.known.gone.values();
            gone.into_iter().any(|id| Table::val(*id) == val)
        };
        self.sites.iter().any(|site| site.row.is_some_and(|row| world.table.of_row(row, gone)))
    }
}

impl World {
    /// Writers of these values, in which nothing is wrong.
    pub(super) fn of(quorums: Quorums, roles: &[Role], values: &[What]) -> Self {
        Self {
            table: Table::new(quorums, values),
            mutant: Mutant::Nothing,
            roles: roles.to_vec(),
            versions: 1,
            attempts: 1,
            fragments: None,
            prompt: false,
            loses: false,
            commits: false,
            known: Known::default(),
            acknowledged: 0,
            late: Vec::new(),
        }
    }

    /// The bit of a vote.
    pub(super) fn vote(&self, version: Ver, attempt: Option<Attempt>, val: Val) -> u64 {
        let ballot =
            attempt.map_or(0, |attempt| usize::from(attempt.agent * self.attempts + attempt.round));
        assert!(ballot <= BALLOTS_MAX && usize::from(val) < VALUES_MAX, "too many to count");
        assert!((1..=VERSIONS_MAX).contains(&usize::from(version)), "too many versions");
        let bit = (usize::from(version - 1) * (BALLOTS_MAX + 1) + ballot) * VALUES_MAX;
        1 << (bit + usize::from(val))
    }

    /// What was ever chosen: a bit each version, ballot and value.
    fn chosen(&self, state: &State) -> u64 {
        // For each number of votes, which bits have as many at least.
        let mut by_count = [0; VOTING_SITES_MAX + 1];
        by_count[0] = u64::MAX;
        for (before, site) in state.sites.iter().enumerate() {
            for count in (0..=before).rev() {
                by_count[count + 1] |= by_count[count] & site.votes;
            }
        }
        let quorums = self.table.quorums;
        by_count[quorums.fast()] & FAST_VOTES | by_count[quorums.classic()] & !FAST_VOTES
    }

    /// What was ever chosen: of each version, which values.
    pub(super) fn chosen_values(&self, state: &State) -> [u64; VERSIONS_MAX] {
        let chosen = self.chosen(state);
        std::array::from_fn(|version| {
            let ballots = (0..=BALLOTS_MAX).map(|ballot| version * (BALLOTS_MAX + 1) + ballot);
            let values = ballots.map(|bit| chosen >> (bit * VALUES_MAX) & ((1 << VALUES_MAX) - 1));
            values.fold(0, |all, values| all | values)
        })
    }

    /// Whether nothing is wrong in a state.
    pub(super) fn holds(&self, state: &State) -> bool {
        is_agreed(self, state)
            && is_once(self, state)
            && is_right(self, state)
            && has_no_orphan(self, state)
    }
}

/// One value a version.
fn is_agreed(world: &World, state: &State) -> bool {
    world.chosen_values(state).iter().all(|values| values.count_ones() <= 1)
}

/// One version a value.
fn is_once(world: &World, state: &State) -> bool {
    let mut before = 0;
    world.chosen_values(state).iter().all(|values| {
        let again = before & values != 0;
        before |= values;
        !again
    })
}

fn is_right(_: &World, state: &State) -> bool {
    state.wrong.is_none()
}

/// What is said to be gone left no fragments.
fn has_no_orphan(world: &World, state: &State) -> bool {
    let there = state.sites.iter().fold(0, |all, site| all | site.fragments);
    let collects = world.roles.iter().any(|role| matches!(role, Role::Collector(_)));
    let mut vals = (0..8).filter(|val| there >> val & 1 == 1);
    !collects || !vals.any(|val| state.is_gone(world, val))
}

fn is_over(_: &World, state: &State) -> bool {
    state.agents.iter().all(|agent| agent.phase == Phase::Done)
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        assert!(self.roles.len() <= AGENTS_MAX && usize::from(self.versions) <= VERSIONS_MAX);
        let row = Row { known: self.known.clone(), ..Row::default() };
        let there = (self.known != Known::default()).then(|| self.table.keep(&row));
        let puts = self.known.decided.values().filter(|decided| decided.value.put().is_some());
        let fragments = puts.map(|put| 1 << Table::val(put.value.id)).sum();
        let site = Site { row: there, fragments, ..Site::default() };
        let late = self.late.iter().map(|ask| Sent { ask: *ask, known: 0, epoch: 0 });
        vec![State {
            sites: vec![site; self.table.quorums.sites()],
            agents: vec![Agent::new(); self.roles.len()],
            late: late.collect(),
            answered: self.acknowledged,
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if !self.holds(state) {
            return;
        }
        for agent in 0..state.agents.len() {
            self.actions_of(state, agent, actions);
        }
        for site in 0..state.sites.len() {
            actions.extend((0..state.late.len()).map(|at| Action::Late(at, site)));
            if self.loses && !state.sites.iter().any(|site| site.lost) {
                actions.push(Action::Lose(site));
            }
            if self.mutant == Mutant::RowRemoved && self.all_gone(state, site) {
                actions.push(Action::RemoveRow(site));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.apply(&mut state, &action)?;
        state.sites.sort_unstable();
        state.late.sort_unstable();
        state.late.dedup();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one value a version", is_agreed),
            Property::always("one version a value", is_once),
            Property::always("answers in order", is_right),
            Property::always("no fragments without a row", has_no_orphan),
            Property::sometimes("all is done", is_over),
        ]
    }
}

impl World {
    /// Whether a row says of all that is known that it is gone.
    fn all_gone(&self, state: &State, site: usize) -> bool {
        let gone = |row: &Row| {
            row.known.floor > Version::NONE && row.known.decided.is_empty() && row.open.is_empty()
        };
        state.sites[site].row.is_some_and(|row| self.table.of_row(row, gone))
    }
}
