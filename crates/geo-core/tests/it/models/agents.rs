//! Actions of agents in a state, and the states they lead to.

use fulgurite_geo_core::{Change, Verdict, Version};
use fulgurite_units::UnixTime;

use super::table::{Ask, Attempt, Pick, RowId, SentRequest, Table, Ver};
use super::world::{Action, Agent, Mutant, Phase, Reply, Role, State, Violation, World};

impl World {
    /// Adds every action that an agent may take.
    pub(super) fn actions_of(&self, state: &State, agent_index: usize, actions: &mut Vec<Action>) {
        let agent = &state.agents[agent_index];
        let sites = 0..state.sites.len();
        let reply = |site: usize| state.sites[site].replies[agent_index];
        if let Some(sent) = agent.request {
            let open = sites.clone().filter(|site| reply(*site) == Reply::Nothing);
            let restores = matches!(sent.ask, Ask::Restore(..));
            let targets = open.filter(|site| !restores || state.sites[*site].lost);
            actions.extend(targets.map(|site| Action::Deliver(agent_index, site)));
            let decided = sites.clone().filter(|site| matches!(reply(*site), Reply::Decided(_)));
            actions.extend(decided.map(|site| Action::Hear(agent_index, site)));
        }
        self.write_actions(state, agent_index, actions);
        match agent.phase {
            Phase::Idle => {
                // Readers and healers start without a row.
                let begins = match self.roles[agent_index] {
                    Role::Writer(_) | Role::Collector(_) => sites,
                    Role::Reader(_) | Role::Healer => 0..1,
                };
                actions.extend(begins.map(|site| Action::Begin(agent_index, site)));
            }
            Phase::Fast(_) | Phase::Accepting(..) | Phase::Restoring => {
                actions.push(Action::Conclude(agent_index, 0));
                actions.push(Action::Retry(agent_index));
            }
            Phase::Preparing(version, _) => {
                actions.push(Action::Retry(agent_index));
                for mask in masks(state, agent_index, self.promises(agent_index)) {
                    let picks = self.table.picks(version, rows(state, agent_index, mask));
                    actions.extend(
                        picks.into_iter().map(|pick| Action::Propose(agent_index, mask, pick)),
                    );
                }
            }
            Phase::Reading => {
                let local = self.mutant == Mutant::LocalRead;
                let needed = if local { 1 } else { self.table.quorums.read() };
                let masks = masks(state, agent_index, needed);
                actions.extend(masks.into_iter().map(|mask| Action::Conclude(agent_index, mask)));
            }
            Phase::Fetching(version) => self.fetch_actions(state, agent_index, version, actions),
            Phase::Removing(_) => {
                actions.push(Action::Settle(agent_index));
                actions.extend(sites.map(|site| Action::Remove(agent_index, site)));
            }
            Phase::Writing(_) => actions.push(Action::Settle(agent_index)),
            Phase::Done => {}
        }
    }

    /// Adds the missing fragments of the write that a writer has begun, and of its earlier ones.
    fn write_actions(&self, state: &State, agent_index: usize, actions: &mut Vec<Action>) {
        let (Role::Writer(vals), Some(_)) = (&self.roles[agent_index], self.fragments) else {
            return;
        };
        let agent = &state.agents[agent_index];
        let started = usize::from(agent.done) + usize::from(agent.phase != Phase::Idle);
        for val in vals.iter().take(started).filter(|val| self.table.is_put(**val)) {
            let missing =
                (0..state.sites.len()).filter(|site| state.sites[*site].fragments >> val & 1 == 0);
            actions.extend(missing.map(|site| Action::Write(*val, site)));
        }
    }

    fn fetch_actions(
        &self,
        state: &State,
        agent_index: usize,
        version: Ver,
        actions: &mut Vec<Action>,
    ) {
        let val = self.val_of(&state.agents[agent_index], version);
        actions.push(Action::Settle(agent_index));
        for (index, site) in state.sites.iter().enumerate() {
            let stored = site.fragments >> val & 1 == 1;
            let missed = !stored || self.mutant == Mutant::UnavailableIsAbsent;
            if missed && !site.absent[agent_index] {
                actions.push(Action::Miss(agent_index, index));
            }
        }
    }

    /// Returns the value of a version, as an agent knows it.
    fn val_of(&self, agent: &Agent, version: Ver) -> u8 {
        let write =
            |known: &fulgurite_geo_core::KnownVersions| known.write(Version(u64::from(version)));
        Table::val(self.table.with_known(agent.known, write).unwrap())
    }

    /// Returns how many promises an agent needs.
    fn promises(&self, agent_index: usize) -> usize {
        let quorums = self.table.quorums;
        match (&self.roles[agent_index], self.mutant) {
            (Role::Healer, Mutant::RestoreByOne) => 1,
            (Role::Healer, _) => quorums.promise().max(quorums.read()),
            _ => quorums.promise(),
        }
    }

    /// Executes an action; none if it is impossible.
    pub(super) fn apply(&self, state: &mut State, action: &Action) -> Option<()> {
        match *action {
            Action::Begin(agent_index, site) => self.begin(state, agent_index, site)?,
            Action::Deliver(agent_index, site) => {
                let sent = state.agents[agent_index].request?;
                let reply = self.deliver(state, site, sent);
                state.sites[site].replies[agent_index] = reply;
                if self.prompt {
                    self.conclude_at_once(state, agent_index, site);
                }
            }
            Action::Late(agent_index, site) => {
                let sent = state.late[agent_index];
                self.deliver(state, site, sent);
            }
            Action::Hear(agent_index, site) => {
                let Reply::Decided(row) = state.sites[site].replies[agent_index] else {
                    return None;
                };
                let agent = &mut state.agents[agent_index];
                agent.known = self.table.merged(agent.known, row);
                self.go_on(state, agent_index);
            }
            Action::Conclude(agent_index, mask) => self.conclude(state, agent_index, mask)?,
            Action::Propose(agent_index, mask, pick) => {
                self.propose(state, agent_index, mask, pick)?
            }
            Action::Retry(agent_index) => self.retry(state, agent_index)?,
            Action::Write(val, site) => state.sites[site].fragments |= 1 << val,
            Action::Miss(agent_index, site) => state.sites[site].absent[agent_index] = true,
            Action::Settle(agent_index) => self.settle(state, agent_index)?,
            Action::Remove(agent_index, site) => {
                let Phase::Removing(version) = state.agents[agent_index].phase else { return None };
                let val = self.val_of(&state.agents[agent_index], version);
                state.sites[site].fragments &= !(1 << val);
            }
            Action::Lose(site) => {
                state.sites[site].row = None;
                state.sites[site].lost = true;
            }
            Action::RemoveRow(site) => state.sites[site].row = None,
        }
        self.drop_useless_requests(state);
        Some(())
    }

    /// Drops requests that change no row. As long as no row is lost, they never will.
    fn drop_useless_requests(&self, state: &mut State) {
        if self.loses || self.mutant == Mutant::RowRemoved {
            return;
        }
        let State { late, sites, .. } = state;
        late.retain(|sent| {
            sites.iter().any(|site| self.table.step(site.row, *sent, false).changed)
        });
    }

    /// Delivers a request to a site. Returns its answer, if the agent has a use for it.
    fn deliver(&self, state: &mut State, site_index: usize, sent: SentRequest) -> Reply {
        let site = &mut state.sites[site_index];
        let rebuilding = site.lost && self.mutant != Mutant::LostUnfenced;
        let answer = self.table.step(site.row, sent, rebuilding);
        if answer.changed {
            site.row = Some(answer.row);
        }
        match (sent.ask, answer.verdict) {
            (_, Verdict::Decided) => Reply::Decided(answer.decided),
            (Ask::PreAccept(version, val), Verdict::Ok) => {
                site.votes |= self.vote(version, None, val);
                Reply::Ok
            }
            (Ask::Accept(version, attempt, val), Verdict::Ok) => {
                site.votes |= self.vote(version, Some(attempt), val);
                Reply::Ok
            }
            (Ask::Prepare(..) | Ask::Read, Verdict::Ok) => Reply::Row(answer.row),
            (Ask::Learn | Ask::Restore(..), Verdict::Ok) => Reply::Ok,
            (_, Verdict::Rejected | Verdict::Forgotten | Verdict::OldMap) => Reply::Nothing,
        }
    }

    fn begin(&self, state: &mut State, agent_index: usize, site: usize) -> Option<()> {
        let row = state.sites[site].row;
        let agent = &mut state.agents[agent_index];
        agent.lower_bound = state.answered;
        match &self.roles[agent_index] {
            Role::Writer(_) => {
                agent.known = row.map_or(0, |row| self.table.merged(0, row));
                self.go_on(state, agent_index);
            }
            Role::Reader(_) => self.go_on(state, agent_index),
            Role::Healer => {
                state.sites.iter().any(|site| site.lost).then_some(())?;
                self.go_on(state, agent_index);
            }
            Role::Collector(keep) => {
                agent.known = self.table.merged(0, row?);
                let dead = self
                    .table
                    .with_known(agent.known, |known| known.dead(*keep, UnixTime::default()));
                (!dead.is_empty()).then_some(())?;
                self.collect(state, agent_index, *keep);
            }
        }
        Some(())
    }

    /// Sends another request.
    fn ask(&self, state: &mut State, agent_index: usize, phase: Phase, ask: Option<Ask>) {
        let epoch = u8::from(state.sites.iter().any(|site| site.lost));
        let agent = &mut state.agents[agent_index];
        let known = agent.known;
        let sent = ask.map(|ask| SentRequest { ask, known, epoch });
        if let Some(before) = std::mem::replace(&mut agent.request, sent)
            && before.ask != Ask::Read
        {
            state.late.push(before);
        }
        agent.phase = phase;
        if phase == Phase::Done {
            let done = agent.done;
            *agent = Agent { phase, done, ..Agent::new() };
        }
        for site in &mut state.sites {
            site.replies[agent_index] = Reply::Nothing;
            site.absent[agent_index] = false;
        }
    }

    /// Begins the next ballot.
    fn prepare(&self, state: &mut State, agent_index: usize, version: Ver) -> Option<()> {
        let epoch = u8::from(state.sites.iter().any(|site| site.lost));
        let agent = &mut state.agents[agent_index];
        let attempts = &mut agent.attempts[usize::from(version)];
        (*attempts < self.attempts).then_some(())?;
        *attempts += 1;
        let round = *attempts;
        let attempt = Attempt { epoch, round, agent: u8::try_from(agent_index).unwrap() };
        let reads =
            self.mutant == Mutant::RestoreUnpromised && self.roles[agent_index] == Role::Healer;
        let ask = if reads { Ask::Read } else { Ask::Prepare(version, attempt) };
        self.ask(state, agent_index, Phase::Preparing(version, attempt), Some(ask));
        Some(())
    }

    fn retry(&self, state: &mut State, agent_index: usize) -> Option<()> {
        let version = match state.agents[agent_index].phase {
            Phase::Fast(version) => version,
            Phase::Preparing(version, _) | Phase::Accepting(version, ..) => version,
            Phase::Idle
            | Phase::Writing(_)
            | Phase::Reading
            | Phase::Fetching(_)
            | Phase::Removing(_)
            | Phase::Restoring
            | Phase::Done => return None,
        };
        if let (Mutant::ProposeEarly, Role::Writer(vals)) = (self.mutant, &self.roles[agent_index])
            && version < self.versions
        {
            let val = vals[usize::from(state.agents[agent_index].done)];
            let (phase, ask) = (Phase::Fast(version + 1), Ask::PreAccept(version + 1, val));
            self.ask(state, agent_index, phase, Some(ask));
            return Some(());
        }
        self.prepare(state, agent_index, version)
    }

    fn conclude(&self, state: &mut State, agent_index: usize, mask: u16) -> Option<()> {
        let quorums = self.table.quorums;
        let oks = state.sites.iter().filter(|site| site.replies[agent_index] == Reply::Ok).count();
        match state.agents[agent_index].phase {
            Phase::Fast(version) if oks >= quorums.fast() => {
                let Role::Writer(vals) = &self.roles[agent_index] else { return None };
                let val = vals[usize::from(state.agents[agent_index].done)];
                self.decided(state, agent_index, version, val);
            }
            Phase::Accepting(version, _, val) if oks >= quorums.classic() => {
                self.decided(state, agent_index, version, val);
            }
            Phase::Restoring if oks > 0 => self.ask(state, agent_index, Phase::Done, None),
            Phase::Reading => {
                let rows = rows(state, agent_index, mask);
                let agent = &mut state.agents[agent_index];
                if self.reads_naively() {
                    for row in rows {
                        agent.known = self.table.merged(agent.known, row);
                    }
                } else {
                    let (known, open) = self.table.read(agent.known, rows);
                    agent.known = known;
                    if let Some(version) = open {
                        return self.prepare(state, agent_index, version);
                    }
                }
                self.seen(state, agent_index);
            }
            Phase::Fast(_)
            | Phase::Accepting(..)
            | Phase::Restoring
            | Phase::Idle
            | Phase::Preparing(..)
            | Phase::Writing(_)
            | Phase::Fetching(_)
            | Phase::Removing(_)
            | Phase::Done => return None,
        }
        Some(())
    }

    /// Continues with an agent that a site just answered, if it has no choice to make.
    fn conclude_at_once(&self, state: &mut State, agent_index: usize, site: usize) {
        match (state.agents[agent_index].phase, state.sites[site].replies[agent_index]) {
            (_, Reply::Decided(row)) => {
                let agent = &mut state.agents[agent_index];
                agent.known = self.table.merged(agent.known, row);
                self.go_on(state, agent_index);
            }
            (Phase::Reading, Reply::Row(_)) if !self.reads_naively() => {
                let rows = rows(state, agent_index, u16::MAX);
                let agent = &mut state.agents[agent_index];
                if rows.len() >= self.table.quorums.read()
                    && let (known, None) = self.table.read(agent.known, rows)
                {
                    agent.known = known;
                    self.seen(state, agent_index);
                }
            }
            (Phase::Fast(_) | Phase::Accepting(..) | Phase::Restoring, Reply::Ok) => {
                self.conclude(state, agent_index, 0);
            }
            _ => {}
        }
    }

    fn reads_naively(&self) -> bool {
        matches!(self.mutant, Mutant::LocalRead | Mutant::IgnoreAccepted)
    }

    fn propose(&self, state: &mut State, agent_index: usize, mask: u16, pick: Pick) -> Option<()> {
        let Phase::Preparing(version, attempt) = state.agents[agent_index].phase else {
            return None;
        };
        let heals = self.roles[agent_index] == Role::Healer;
        let open = heals && self.mutant == Mutant::RestoreOpen;
        let val = match (pick, &self.roles[agent_index]) {
            (Pick::Decided, _) => {
                for row in rows(state, agent_index, mask) {
                    let agent = &mut state.agents[agent_index];
                    agent.known = self.table.merged(agent.known, row);
                }
                self.go_on(state, agent_index);
                return Some(());
            }
            (Pick::Forced(_), Role::Healer) if self.mutant == Mutant::RestoreUnpromised => {
                return None;
            }
            (Pick::Forced(val), _) if !open => val,
            (_, Role::Writer(vals)) => vals[usize::from(state.agents[agent_index].done)],
            (_, Role::Reader(_)) => {
                self.seen(state, agent_index);
                return Some(());
            }
            (_, Role::Healer | Role::Collector(_)) => {
                let ask = Ask::Restore(version, attempt);
                self.ask(state, agent_index, Phase::Restoring, Some(ask));
                return Some(());
            }
        };
        if version > self.versions {
            return None;
        }
        let ask = Ask::Accept(version, attempt, val);
        self.ask(state, agent_index, Phase::Accepting(version, attempt, val), Some(ask));
        Some(())
    }

    /// Continues with an agent that had a version decided.
    fn decided(&self, state: &mut State, agent_index: usize, version: Ver, val: u8) {
        let agent = &mut state.agents[agent_index];
        agent.known = self.table.learn(agent.known, version, val, false);
        if self.commits {
            self.send_decisions(state, agent_index);
        }
        self.go_on(state, agent_index);
    }

    /// Sends what an agent knows.
    fn send_decisions(&self, state: &mut State, agent_index: usize) {
        let known = state.agents[agent_index].known;
        state.late.push(SentRequest { ask: Ask::Learn, known, epoch: 1 });
    }

    /// Continues with what an agent knows.
    fn go_on(&self, state: &mut State, agent_index: usize) {
        let agent = &state.agents[agent_index];
        let (known, done) = (agent.known, usize::from(agent.done));
        let last = self.table.with_known(known, |known| known.last().0);
        let next = Ver::try_from(last + 1).unwrap();
        match &self.roles[agent_index] {
            Role::Writer(vals) => {
                let id = Table::id(vals[done]);
                let version = self.table.with_known(known, |known| known.version_of(id));
                let version = version.map(|version| Ver::try_from(version.0).unwrap());
                match version {
                    Some(version) if self.fragments.is_some() && self.table.is_put(vals[done]) => {
                        self.ask(state, agent_index, Phase::Writing(version), None);
                    }
                    Some(version) => self.acknowledge(state, agent_index, version),
                    None if next > self.versions => self.ask(state, agent_index, Phase::Done, None),
                    None => {
                        let ask = Ask::PreAccept(next, vals[done]);
                        self.ask(state, agent_index, Phase::Fast(next), Some(ask));
                    }
                }
            }
            Role::Reader(_) => self.ask(state, agent_index, Phase::Reading, Some(Ask::Read)),
            Role::Healer => {
                let begun = self.prepare(state, agent_index, next);
                assert!(begun.is_some(), "a world without ballots");
            }
            Role::Collector(_) => unreachable!("a collector sends no requests"),
        }
    }

    fn acknowledge(&self, state: &mut State, agent_index: usize, version: Ver) {
        if version <= state.agents[agent_index].lower_bound {
            state.violation = Some(Violation::WriteBefore);
        }
        state.answered = state.answered.max(version);
        self.end(state, agent_index);
    }

    /// Ends a write or a read.
    fn end(&self, state: &mut State, agent_index: usize) {
        let agent = &mut state.agents[agent_index];
        agent.done += 1;
        let all = match &self.roles[agent_index] {
            Role::Writer(vals) => usize::from(agent.done) == vals.len(),
            Role::Reader(reads) => agent.done == *reads,
            Role::Collector(_) | Role::Healer => true,
        };
        agent.known = 0;
        *agent = Agent { skipped: 0, missing: 0, rechecked: 0, lower_bound: 0, ..*agent };
        self.ask(state, agent_index, if all { Phase::Done } else { Phase::Idle }, None);
    }

    /// Continues with a reader that knows the last version: the object is the last version whose
    /// bytes exist.
    fn seen(&self, state: &mut State, agent_index: usize) {
        let agent = &mut state.agents[agent_index];
        let known = self.table.known(agent.known);
        let mut version = known.last();
        while version > known.floor {
            let Some(decided) = known.decided.get(&version) else { break };
            let number = Ver::try_from(version.0).unwrap();
            let is_put = matches!(*decided.value.change, Change::Put(_));
            if is_put && agent.missing == number {
                // If it became durable since then, it exists now.
                agent.skipped |= u8::from(!decided.durable) << number;
            }
            if is_put && agent.skipped >> number & 1 == 0 {
                if self.fragments.is_none() {
                    return self.answer(state, agent_index, number);
                }
                agent.missing = 0;
                return self.ask(state, agent_index, Phase::Fetching(number), None);
            }
            if matches!(*decided.value.change, Change::Delete) {
                break;
            }
            version = Version(version.0 - 1);
        }
        self.answer(state, agent_index, Ver::try_from(version.0).unwrap());
    }

    /// Records a reader's answer: the object at a version.
    fn answer(&self, state: &mut State, agent_index: usize, version: Ver) {
        if version < state.agents[agent_index].lower_bound {
            state.violation = Some(Violation::Stale);
        }
        state.answered = state.answered.max(version);
        self.end(state, agent_index);
    }

    /// Continues once enough fragments are written, read, absent or removed.
    fn settle(&self, state: &mut State, agent_index: usize) -> Option<()> {
        let agent = &state.agents[agent_index];
        let stored = |version: Ver| {
            let val = self.val_of(agent, version);
            state.sites.iter().filter(|site| site.fragments >> val & 1 == 1).count()
        };
        match agent.phase {
            Phase::Writing(version) => {
                (stored(version) >= self.fragments?.acknowledged).then_some(())?;
                let val = self.val_of(agent, version);
                let known = self.table.learn(agent.known, version, val, true);
                state.agents[agent_index].known = known;
                self.send_decisions(state, agent_index);
                self.acknowledge(state, agent_index, version);
            }
            Phase::Removing(version) => {
                (stored(version) == 0).then_some(())?;
                let Role::Collector(keep) = self.roles[agent_index] else { return None };
                self.mark_gone(state, agent_index, version);
                self.collect(state, agent_index, keep);
            }
            Phase::Fetching(version) => return self.settle_fetching(state, agent_index, version),
            Phase::Idle
            | Phase::Fast(_)
            | Phase::Preparing(..)
            | Phase::Accepting(..)
            | Phase::Reading
            | Phase::Restoring
            | Phase::Done => return None,
        }
        Some(())
    }

    fn settle_fetching(&self, state: &mut State, agent_index: usize, version: Ver) -> Option<()> {
        let fragments = self.fragments?;
        let val = self.val_of(&state.agents[agent_index], version);
        let absent = state.sites.iter().filter(|site| site.absent[agent_index]).count();
        let eager = self.mutant == Mutant::EagerFallback && absent > 0;
        // A fragment that was found stays, so it does not matter when: no world writes fragments of
        // a value while it removes others of it.
        let found = state.sites.iter().filter(|site| !site.absent[agent_index]);
        let found = found.filter(|site| site.fragments >> val & 1 == 1).count();
        if found >= fragments.data && !eager {
            self.answer(state, agent_index, version);
            return Some(());
        }
        (eager || absent > state.sites.len() - fragments.data).then_some(())?;
        let agent = &mut state.agents[agent_index];
        let number = Version(u64::from(version));
        let durable = self.table.with_known(agent.known, |known| known.decided[&number].durable);
        if durable && (agent.rechecked == version || !fragments.confirm) {
            state.violation = Some(Violation::Lost);
        } else if durable {
            // Removed since the rows were read, or lost. Versions that were passed over may exist
            // by now.
            (agent.rechecked, agent.missing, agent.skipped) = (version, 0, 0);
            self.ask(state, agent_index, Phase::Reading, Some(Ask::Read));
        } else if fragments.confirm && self.mutant != Mutant::FallbackUnconfirmed {
            agent.missing = version;
            self.ask(state, agent_index, Phase::Reading, Some(Ask::Read));
        } else {
            agent.skipped |= 1 << version;
            self.seen(state, agent_index);
        }
        Some(())
    }

    /// Continues with the collector's next dead version.
    fn collect(&self, state: &mut State, agent_index: usize, keep: Option<usize>) {
        loop {
            let agent = &state.agents[agent_index];
            let dead =
                self.table.with_known(agent.known, |known| known.dead(keep, UnixTime::default()));
            let Some(version) = dead.first().map(|version| Ver::try_from(version.0).unwrap())
            else {
                return self.ask(state, agent_index, Phase::Done, None);
            };
            let put = self.table.is_put(self.val_of(agent, version));
            if put {
                if self.mutant == Mutant::GoneFirst {
                    let known = agent.known;
                    self.mark_gone(state, agent_index, version);
                    state.agents[agent_index].known = known;
                }
                return self.ask(state, agent_index, Phase::Removing(version), None);
            }
            self.mark_gone(state, agent_index, version);
        }
    }

    fn mark_gone(&self, state: &mut State, agent_index: usize, version: Ver) {
        let mut known = self.table.known(state.agents[agent_index].known);
        known.mark_gone(Version(u64::from(version)));
        state.agents[agent_index].known = self.table.intern_known(&known);
        self.send_decisions(state, agent_index);
    }
}

/// Returns the rows that these sites answered to an agent.
fn rows(state: &State, agent_index: usize, mask: u16) -> Vec<RowId> {
    let chosen = state.sites.iter().enumerate().filter(|(site, _)| mask >> site & 1 == 1);
    let row = |site: &super::world::Site| match site.replies[agent_index] {
        Reply::Row(row) => Some(row),
        Reply::Nothing | Reply::Ok | Reply::Decided(_) => None,
    };
    chosen.filter_map(|(_, site)| row(site)).collect()
}

/// Returns every set of at least so many of the sites that answered with their rows.
fn masks(state: &State, agent_index: usize, lower_bound: usize) -> Vec<u16> {
    let answered = |site: &super::world::Site| matches!(site.replies[agent_index], Reply::Row(_));
    let sites = state.sites.iter().enumerate().filter(|(_, site)| answered(site));
    let all: u16 = sites.map(|(site, _)| 1 << site).sum();
    let fits = |mask: &u16| mask & !all == 0 && mask.count_ones() as usize >= lower_bound;
    (1..=all).filter(fits).collect()
}
