//! When the disk spins: its token, what it is needed for, and when it spins down.
//!
//! Not here: what is done while it spins.

use fulgurite_units::{Duration, Instant, Outbox};

use super::{Command, Tome, send_to_token_manager};
use crate::limits::{IDLE_CONTENDED, YIELD_AFTER, YIELD_AFTER_MAX};
use crate::token::{Need, ToTokenManager};

/// The power state of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Standby,
    SpinningUp,
    Spinning,
    SpinningDown,
}

/// Idle times of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IdleTimes {
    /// Since when it stands still; `None` if it never spun.
    pub(super) still: Option<Instant>,
    /// Since when it has been idle while spinning.
    pub(super) idle: Option<Instant>,
    /// Since when it waits for a token.
    waiting_since: Option<Instant>,
    /// End of its turn, while another tome waits to read.
    yield_after: Option<Instant>,
    /// It spins down for such a tome, and releases its token.
    yields: bool,
}

impl Tome {
    /// Handles the disk's report of a new power state; one that answers no pending command is
    /// ignored.
    pub(super) fn power_changed<T>(&mut self, from: Phase, to: Phase) -> Option<T> {
        if self.phase == from {
            self.phase = to;
            self.idle_times.idle = None;
            match to {
                Phase::Standby => self.idle_times.still = Some(self.now),
                Phase::Spinning => {
                    self.probe_requested = false;
                    let waiting_since = self.idle_times.waiting_since.take();
                    let waited =
                        waiting_since.map_or(Duration::ZERO, |since| self.now.since(since));
                    let turn = waited.clamp(YIELD_AFTER, YIELD_AFTER_MAX);
                    self.idle_times.yield_after = Some(self.now + turn);
                    self.scrub.begin();
                }
                Phase::SpinningUp | Phase::SpinningDown => {}
            }
        }
        None
    }

    /// Releases the token when the tome is stopping and its disk stands still, so that no other
    /// tome waits for the lease to expire. Returns the message for the token manager.
    pub fn release_token(&mut self) -> Option<ToTokenManager> {
        self.holder.release()
    }

    /// Continues with everything that can proceed.
    pub(super) fn advance(&mut self, out: &mut Outbox<Command>) {
        self.query_parities(out);
        self.continue_check(out);
        self.continue_repair(out);
        self.repeat_move_messages(out);
        self.continue_rebuild(out);
        match self.phase {
            Phase::Standby => self.still(out),
            Phase::Spinning => self.while_spinning(out),
            Phase::SpinningUp | Phase::SpinningDown => {}
        }
    }

    fn still(&mut self, out: &mut Outbox<Command>) {
        if std::mem::take(&mut self.idle_times.yields) {
            send_to_token_manager(self.holder.release(), out);
        }
        match self.need().filter(|_| self.may_spin_up()) {
            Some(need) => {
                self.idle_times.waiting_since.get_or_insert(self.now);
                let asks = self.holder.want(self.now, need);
                send_to_token_manager(asks, out);
                if let Some((token, epoch)) = self.holder.current_token(self.now) {
                    self.phase = Phase::SpinningUp;
                    self.budget.record_spin_up(self.now);
                    out.push(Command::SpinUp { token, epoch });
                }
            }
            None => {
                self.idle_times.waiting_since = None;
                send_to_token_manager(self.holder.release(), out);
            }
        }
    }

    /// Returns whether to spin down for a tome that waits to read.
    fn yields(&self) -> bool {
        let is_over = self.idle_times.yield_after.is_none_or(|until| self.now >= until);
        let reads = || self.tasks.iter().any(|(_, task)| task.reads());
        // A rebuild has priority.
        self.holder.is_wanted_to_read() && is_over && !reads() && !self.has_buffered_segment()
    }

    fn while_spinning(&mut self, out: &mut Outbox<Command>) {
        if self.holder.current_token(self.now).is_none() {
            if self.job.is_none() {
                self.spin_down(out);
            }
            return;
        }
        if self.job.is_none() && self.yields() {
            self.idle_times.yields = true;
            self.spin_down(out);
            return;
        }
        while self.job.is_none() {
            let Some(task) = self.next_task() else { break };
            if self.begin(task, out) {
                self.idle_times.idle = None;
            }
        }
        if self.job.is_some() {
            let need = self.need().unwrap_or_default();
            send_to_token_manager(self.holder.want(self.now, need), out);
            return;
        }
        let idle = *self.idle_times.idle.get_or_insert(self.now);
        if self.deltas.has_unsent() {
            // Messages without an answer are resent while the disk spins.
            send_to_token_manager(self.holder.want(self.now, Need::default()), out);
        } else if self.now.since(idle) >= self.idle_timeout() {
            self.spin_down(out);
        }
    }

    fn spin_down(&mut self, out: &mut Outbox<Command>) {
        self.phase = Phase::SpinningDown;
        out.push(Command::SpinDown);
    }

    /// Returns when an idle disk spins down.
    pub(super) fn idle_deadline(&self) -> Option<Instant> {
        self.idle_times
            .idle
            .filter(|_| self.phase == Phase::Spinning)
            .map(|since| since + self.idle_timeout())
    }

    /// Returns the idle timeout: shorter when others wait for its token.
    fn idle_timeout(&self) -> Duration {
        if self.holder.is_wanted() { self.idle.min(IDLE_CONTENDED) } else { self.idle }
    }

    /// Returns why the disk is needed, if it is.
    fn need(&self) -> Option<Need> {
        let pending_applies = self.pending_applies();
        let sends = self.deltas.unsent_count();
        let pending = self.tasks.len() + pending_applies + sends + usize::from(self.job.is_some());
        let pending = pending + self.repairs.pending() + usize::from(self.has_buffered_segment());
        let is_late = || self.scrub.is_late(self.now, self.metadata.scrubbed(), self.blocks());
        if pending == 0 && !self.probe_requested && !is_late() {
            return None;
        }
        let oldest_task = self.tasks.front().map(|(since, _)| self.now.since(*since));
        let oldest_change = (pending_applies + sends > 0).then(|| self.unprotected_age());
        Some(Need {
            age: oldest_task.max(oldest_change).unwrap_or(Duration::ZERO),
            rebuild: self.has_buffered_segment(),
            read: self.tasks.iter().any(|(_, task)| task.reads()),
            pending: u32::try_from(pending).unwrap_or(u32::MAX),
            still: self.idle_times.still.map(|still| self.now.since(still)),
        })
    }
}
