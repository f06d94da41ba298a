//! Model of a world of sites and agents: the actions in a state, and the forbidden states.
//!
//! ```text
//! agent --request--> stored for good: delivered to any site, at any time, repeatedly, or never
//! site  --answer---> stored until the agent's next request: it continues with any of them, or none
//! ```
//!
//! Sites are alike, so a state keeps them sorted: states that differ only in the order of sites are
//! one. Agents are sketches of the proposer (design note 0031): they send the same requests and
//! draw the same conclusions, but wait for nothing, and may give up or stop at any moment. The
//! behavior of sites and the conclusions are the real code.

use fulgurite_geo_core::limits::VOTING_SITES_MAX;
use fulgurite_geo_core::{KnownVersions, Quorums, Row, Version};
use stateright::{Model, Property};

use super::table::{Ask, Attempt, KnownId, Pick, RowId, SentRequest, Table, Val, ValueKind, Ver};

pub(super) const AGENTS_MAX: usize = 4;
/// Maximum number of classic ballots of a world: a bit of [`Site::votes`] each, besides the fast
/// one.
const BALLOTS_MAX: usize = 6;
const VALUES_MAX: usize = 3;
pub(super) const VERSIONS_MAX: usize = 3;

/// Votes of fast rounds, of all versions.
const FAST_VOTES: u64 = {
    let (version, values) = ((BALLOTS_MAX + 1) * VALUES_MAX, (1 << VALUES_MAX) - 1);
    values | values << version | values << (2 * version)
};

/// Role of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It writes these values, one after the other.
    Writer(Vec<Val>),
    /// It reads so many times.
    Reader(u8),
    /// It removes dead versions and keeps so many puts.
    Collector(Option<usize>),
    /// It makes a site that lost its rows vote again.
    Healer,
}

/// A fault in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    Nothing,
    /// A site that lost its rows votes as if it had not lost them.
    LostUnfenced,
    /// A reader reads one row.
    LocalRead,
    /// A reader ignores values that were accepted after the last decided version.
    IgnoreAccepted,
    /// A reader falls back to the previous version at the first missing fragment.
    EagerFallback,
    /// A reader counts fragments as absent if their site does not answer.
    UnavailableIsAbsent,
    /// A reader falls back to the previous version without reading the rows again.
    FallbackUnconfirmed,
    /// A writer proposes for the next version while this one is open.
    ProposeEarly,
    /// A version is marked gone before its fragments are removed.
    GoneFirst,
    /// Rows with only gone versions are removed.
    RowRemoved,
    /// A site votes again although no other site promised.
    RestoreUnpromised,
    /// A site votes again although only one other site promised.
    RestoreByOne,
    /// A site votes again although a value that may have been chosen is not decided again.
    RestoreOpen,
}

/// Fragments of every put.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragments {
    /// How many decode it.
    pub(super) data: usize,
    /// How many must be written before it is acknowledged.
    pub(super) acknowledged: usize,
    /// Whether a reader reads the rows again before it falls back to the previous version.
    pub(super) confirm: bool,
}

/// A model.
#[derive(Debug)]
pub(super) struct World {
    pub(super) table: Table,
    pub(super) mutant: Mutant,
    pub(super) roles: Vec<Role>,
    /// Maximum number of versions.
    pub(super) versions: Ver,
    /// Maximum number of classic ballots per agent and version.
    pub(super) attempts: u8,
    pub(super) fragments: Option<Fragments>,
    /// Whether agents continue as soon as they can. That loses no behavior: a late answer is like a
    /// late request, or like one given up before; and an operation that answers or is acknowledged
    /// at once constrains more of the later ones.
    pub(super) prompt: bool,
    /// Whether a site loses its rows.
    pub(super) loses: bool,
    /// Whether an agent that had a version decided sends the decision to the sites.
    pub(super) commits: bool,
    /// ValueKind every row knows at the start.
    pub(super) known: KnownVersions,
    /// How many of those versions were acknowledged, with all fragments.
    pub(super) acknowledged: Ver,
    /// Requests in flight at the start.
    pub(super) late: Vec<Ask>,
}

/// A site's answer to an agent's request.
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
    /// All values it ever accepted, forgotten or not: a bit per version, ballot and value.
    pub(super) votes: u64,
    /// The values of which it has a fragment: a bit each.
    pub(super) fragments: u8,
    pub(super) replies: [Reply; AGENTS_MAX],
    /// Which agents found its fragment missing.
    pub(super) absent: [bool; AGENTS_MAX],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Phase {
    Idle,
    Fast(Ver),
    Preparing(Ver, Attempt),
    Accepting(Ver, Attempt, Val),
    /// Decided; waiting for enough fragments.
    Writing(Ver),
    Reading,
    Fetching(Ver),
    /// Removing the fragments of a version.
    Removing(Ver),
    Restoring,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Agent {
    pub(super) phase: Phase,
    pub(super) known: KnownId,
    /// The current request.
    pub(super) request: Option<SentRequest>,
    /// Number of classic ballots it started, per version.
    pub(super) attempts: [u8; VERSIONS_MAX + 2],
    /// Number of its operations that are done.
    pub(super) done: u8,
    /// The last version that was seen or acknowledged when it began.
    pub(super) lower_bound: Ver,
    /// The version whose fragments were missing when the rows were read last.
    pub(super) missing: Ver,
    /// The version that was known to be durable, and whose fragments were missing once before.
    pub(super) rechecked: Ver,
    /// Versions that never had their fragments, a bit each.
    pub(super) skipped: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) sites: Vec<Site>,
    pub(super) agents: Vec<Agent>,
    /// Requests in flight whose answers nobody waits for.
    pub(super) late: Vec<SentRequest>,
    /// The last version that was seen, or whose write was acknowledged.
    pub(super) answered: Ver,
    /// A forbidden answer.
    pub(super) violation: Option<Violation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Violation {
    /// A version older than one seen before.
    Stale,
    /// A write got a version before that of a write which had ended when it began.
    WriteBefore,
    /// The bytes of an acknowledged version are missing.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// An agent begins, with what a site knows.
    Begin(usize, usize),
    /// An agent's current request is delivered to a site.
    Deliver(usize, usize),
    /// An old request is delivered to a site.
    Late(usize, usize),
    /// An agent learns from an answer that a version was decided.
    Hear(usize, usize),
    /// An agent continues with these answers.
    Conclude(usize, u16),
    /// An agent with these promises proposes a value.
    Propose(usize, u16, Pick),
    /// An agent tries the next ballot.
    Retry(usize),
    /// A fragment is written.
    Write(Val, usize),
    /// A fragment is requested and is missing.
    Miss(usize, usize),
    /// A reader has what it needs, or knows that it cannot have it.
    Settle(usize),
    /// A fragment is removed.
    Remove(usize, usize),
    /// A site loses its rows.
    Lose(usize),
    /// A row is removed.
    RemoveRow(usize),
}

impl Agent {
    /// Creates an idle agent.
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Idle,
            known: 0,
            request: None,
            attempts: [0; VERSIONS_MAX + 2],
            done: 0,
            lower_bound: 0,
            missing: 0,
            rechecked: 0,
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
        self.sites.iter().any(|site| site.row.is_some_and(|row| world.table.with_row(row, gone)))
    }
}

impl World {
    /// Creates a world without faults, with these roles and values.
    pub(super) fn new(quorums: Quorums, roles: &[Role], values: &[ValueKind]) -> Self {
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
            known: KnownVersions::default(),
            acknowledged: 0,
            late: Vec::new(),
        }
    }

    /// Returns the bit of a vote.
    pub(super) fn vote(&self, version: Ver, attempt: Option<Attempt>, val: Val) -> u64 {
        let ballot =
            attempt.map_or(0, |attempt| usize::from(attempt.agent * self.attempts + attempt.round));
        assert!(ballot <= BALLOTS_MAX && usize::from(val) < VALUES_MAX, "too many to count");
        assert!((1..=VERSIONS_MAX).contains(&usize::from(version)), "too many versions");
        let bit = (usize::from(version - 1) * (BALLOTS_MAX + 1) + ballot) * VALUES_MAX;
        1 << (bit + usize::from(val))
    }

    /// Returns everything that was ever chosen: a bit per version, ballot and value.
    fn chosen(&self, state: &State) -> u64 {
        // For each number of votes: the bits that have at least that many.
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

    /// Returns the values that were ever chosen, for each version.
    pub(super) fn chosen_values(&self, state: &State) -> [u64; VERSIONS_MAX] {
        let chosen = self.chosen(state);
        std::array::from_fn(|version| {
            let ballots = (0..=BALLOTS_MAX).map(|ballot| version * (BALLOTS_MAX + 1) + ballot);
            let values = ballots.map(|bit| chosen >> (bit * VALUES_MAX) & ((1 << VALUES_MAX) - 1));
            values.fold(0, |all, values| all | values)
        })
    }

    /// Whether a state is correct.
    pub(super) fn holds(&self, state: &State) -> bool {
        has_agreement(self, state)
            && has_one_version(self, state)
            && has_no_violation(self, state)
            && has_no_orphan(self, state)
    }
}

/// At most one value per version.
fn has_agreement(world: &World, state: &State) -> bool {
    world.chosen_values(state).iter().all(|values| values.count_ones() <= 1)
}

/// At most one version per value.
fn has_one_version(world: &World, state: &State) -> bool {
    let mut before = 0;
    world.chosen_values(state).iter().all(|values| {
        let again = before & values != 0;
        before |= values;
        !again
    })
}

fn has_no_violation(_: &World, state: &State) -> bool {
    state.violation.is_none()
}

/// Versions marked gone have no fragments.
fn has_no_orphan(world: &World, state: &State) -> bool {
    let stored = state.sites.iter().fold(0, |all, site| all | site.fragments);
    let collects = world.roles.iter().any(|role| matches!(role, Role::Collector(_)));
    let mut vals = (0..8).filter(|val| stored >> val & 1 == 1);
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
        let initial = (self.known != KnownVersions::default()).then(|| self.table.intern_row(&row));
        let puts = self.known.decided.values().filter(|decided| decided.value.put().is_some());
        let fragments = puts.map(|put| 1 << Table::val(put.value.id)).sum();
        let site = Site { row: initial, fragments, ..Site::default() };
        let late = self.late.iter().map(|ask| SentRequest { ask: *ask, known: 0, epoch: 0 });
        vec![State {
            sites: vec![site; self.table.quorums.sites()],
            agents: vec![Agent::new(); self.roles.len()],
            late: late.collect(),
            answered: self.acknowledged,
            violation: None,
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
            actions.extend((0..state.late.len()).map(|index| Action::Late(index, site)));
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
            Property::always("one value a version", has_agreement),
            Property::always("one version a value", has_one_version),
            Property::always("answers in order", has_no_violation),
            Property::always("no fragments without a row", has_no_orphan),
            Property::sometimes("all is done", is_over),
        ]
    }
}

impl World {
    /// Whether a row has only gone versions.
    fn all_gone(&self, state: &State, site: usize) -> bool {
        let gone = |row: &Row| {
            row.known.floor > Version::NONE && row.known.decided.is_empty() && row.open.is_empty()
        };
        state.sites[site].row.is_some_and(|row| self.table.with_row(row, gone))
    }
}
