//! When the disk spins: its token, what it is needed for, and when it spins down.
//!
//! Not here: what is done while it spins.

use fulgurite_units::{Duration, Instant, Outbox};

use super::{Command, Tome, tell_keeper};
use crate::limits::{IDLE_WANTED, YIELD_AFTER, YIELD_AFTER_MAX};
use crate::token::{Need, ToKeeper};

/// The power state of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Still,
    Rising,
    Turning,
    Sinking,
}

/// Idle times of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rest {
    /// Since when it stands still; `None` if it never spun.
    pub(super) still: Option<Instant>,
    /// Since when it has been idle while spinning.
    pub(super) idle: Option<Instant>,
    /// Since when it waits for a token.
    waits: Option<Instant>,
    /// End of its turn, while another tome waits to read.
    turn_ends: Option<Instant>,
    /// It spins down for such a tome, and releases its token.
    yields: bool,
}

impl Tome {
    /// Handles the disk's report of a new power state; one that answers no pending command is
    /// ignored.
    pub(super) fn came<T>(&mut self, from: Phase, to: Phase) -> Option<T> {
        if self.phase == from {
            self.phase = to;
            self.rest.idle = None;
            match to {
                Phase::Still => self.rest.still = Some(self.now),
                Phase::Turning => {
                    self.is_probed = false;
                    let waits = self.rest.waits.take();
                    let waited = waits.map_or(Duration::ZERO, |since| self.now.since(since));
                    let turn = waited.clamp(YIELD_AFTER, YIELD_AFTER_MAX);
                    self.rest.turn_ends = Some(self.now + turn);
                    self.scrub.begin();
                }
                Phase::Rising | Phase::Sinking => {}
            }
        }
        None
    }

    /// Releases the token when the tome is stopping and its disk stands still, so that no other
    /// tome waits for the lease to expire. Returns the message for the token manager.
    pub fn lets_go(&mut self) -> Option<ToKeeper> {
        self.holder.release()
    }

    /// Continues with everything that can proceed.
    pub(super) fn advance(&mut self, out: &mut Outbox<Command>) {
        self.ask_others(out);
        self.go_on_checking(out);
        self.go_on_mending(out);
        self.tell_of_seats(out);
        self.go_on_building(out);
        match self.phase {
            Phase::Still => self.still(out),
            Phase::Turning => self.turning(out),
            Phase::Rising | Phase::Sinking => {}
        }
    }

    fn still(&mut self, out: &mut Outbox<Command>) {
        if std::mem::take(&mut self.rest.yields) {
            tell_keeper(self.holder.release(), out);
        }
        match self.need().filter(|_| self.may_wake()) {
            Some(need) => {
                self.rest.waits.get_or_insert(self.now);
                let asks = self.holder.want(self.now, need);
                tell_keeper(asks, out);
                if let Some((token, epoch)) = self.holder.held(self.now) {
                    self.phase = Phase::Rising;
                    self.budget.woken(self.now);
                    out.push(Command::SpinUp { token, epoch });
                }
            }
            None => {
                self.rest.waits = None;
                tell_keeper(self.holder.release(), out);
            }
        }
    }

    /// Returns whether to spin down for a tome that waits to read.
    fn yields(&self) -> bool {
        let is_over = self.rest.turn_ends.is_none_or(|until| self.now >= until);
        let reads = || self.tasks.iter().any(|(_, task)| task.reads());
        // A rebuild has priority.
        self.holder.is_wanted_to_read() && is_over && !reads() && !self.has_piece()
    }

    fn turning(&mut self, out: &mut Outbox<Command>) {
        if self.holder.held(self.now).is_none() {
            if self.job.is_none() {
                self.sink(out);
            }
            return;
        }
        if self.job.is_none() && self.yields() {
            self.rest.yields = true;
            self.sink(out);
            return;
        }
        while self.job.is_none() {
            let Some(task) = self.next_task() else { break };
            if self.begin(task, out) {
                self.rest.idle = None;
            }
        }
        if self.job.is_some() {
            let need = self.need().unwrap_or_default();
            tell_keeper(self.holder.want(self.now, need), out);
            return;
        }
        let idle = *self.rest.idle.get_or_insert(self.now);
        if self.deltas.has_unsent() {
            // Messages without an answer are resent while the disk spins.
            tell_keeper(self.holder.want(self.now, Need::default()), out);
        } else if self.now.since(idle) >= self.patience() {
            self.sink(out);
        }
    }

    fn sink(&mut self, out: &mut Outbox<Command>) {
        self.phase = Phase::Sinking;
        out.push(Command::SpinDown);
    }

    /// Returns when an idle disk spins down.
    pub(super) fn idle_ends(&self) -> Option<Instant> {
        self.rest.idle.filter(|_| self.phase == Phase::Turning).map(|since| since + self.patience())
    }

    /// Returns the idle timeout: shorter when others wait for its token.
    fn patience(&self) -> Duration {
        if self.holder.is_wanted() { self.idle.min(IDLE_WANTED) } else { self.idle }
    }

    /// Returns why the disk is needed, if it is.
    fn need(&self) -> Option<Need> {
        let folds = self.folds();
        let sends = self.deltas.to_send();
        let pending = self.tasks.len() + folds + sends + usize::from(self.job.is_some());
        let pending = pending + self.mends.pending() + usize::from(self.has_piece());
        let is_late = || self.scrub.is_late(self.now, self.awake.scrubbed(), self.blocks());
        if pending == 0 && !self.is_probed && !is_late() {
            return None;
        }
        let oldest_task = self.tasks.front().map(|(since, _)| self.now.since(*since));
        let oldest_change = (folds + sends > 0).then(|| self.unprotected_age());
        Some(Need {
            age: oldest_task.max(oldest_change).unwrap_or(Duration::ZERO),
            rebuild: self.has_piece(),
            read: self.tasks.iter().any(|(_, task)| task.reads()),
            pending: u32::try_from(pending).unwrap_or(u32::MAX),
            still: self.rest.still.map(|still| self.now.since(still)),
        })
    }
}
