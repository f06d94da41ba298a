//! Verifies platters, restored copies and bodies in tiers of objects by reading them whole, on
//! order.
//!
//! An order is processed piece by piece: its copies, its tiers, then platter after platter. Among
//! several orders the one with the fewest remaining pieces goes first, so that a single platter
//! does not wait for a full verification.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use fulgurite_glass::Stored;
use fulgurite_tier::Progress;
use fulgurite_units::PlatterId;

use super::{Failed, Job, JobRun, Next, Pace, Reply};
use crate::bodies::copies;
use crate::limits::{JOB_BACKOFF_MAX, JOB_TICK};
use crate::state::ArchiveState;
use crate::status::VerifyReport;
use crate::{Result, tiers};

/// What to verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VerifyScope {
    /// All platters, the restored copies and the tiers.
    All,
    /// All platters.
    Platters,
    /// One platter.
    Platter(PlatterId),
}

/// An order to verify.
#[derive(Debug)]
pub(crate) struct VerifyOrder {
    pub(crate) scope: VerifyScope,
    pub(crate) progress: Arc<Progress>,
    pub(crate) reply: Reply<VerifyReport>,
}

/// An order in progress.
#[derive(Debug)]
struct ActiveOrder {
    order: VerifyOrder,
    /// Bytes of copies still to be read.
    copies: Option<u64>,
    /// Bytes in tiers still to be read; `None` when tiers are empty.
    tiers: Option<u64>,
    platters: VecDeque<Stored>,
    done: u64,
    total: u64,
    report: VerifyReport,
}

#[derive(Debug)]
pub(super) struct VerifyJob {
    state: Arc<ArchiveState>,
    orders: Receiver<VerifyOrder>,
    active: Vec<ActiveOrder>,
}

impl ActiveOrder {
    fn remaining_pieces(&self) -> usize {
        let extra = [self.copies, self.tiers].into_iter().flatten().count();
        self.platters.len() + extra
    }

    /// Verifies the next piece.
    fn piece(&mut self, state: &ArchiveState, run: &JobRun<'_>) -> Result<()> {
        let progress = &self.order.progress;
        progress.set(self.done, self.total);
        if let Some(bytes) = self.copies.take() {
            run.doing("verifying restored copies");
            copies::verify_all(state, progress, &mut self.report)?;
            self.done += bytes;
        } else if let Some(bytes) = self.tiers.take() {
            run.doing("verifying bodies in tiers of objects");
            self.report.tiers = tiers::verify_all(state, progress)?;
            self.done += bytes;
        } else if let Some(platter) = self.platters.pop_front() {
            run.doing(format!("verifying a platter, {} left", self.platters.len()));
            self.report.platters.push(state.platters.verify(&platter, progress)?);
            self.done += platter.bytes;
        }
        progress.set(self.done, self.total);
        Ok(())
    }
}

impl VerifyJob {
    pub(super) fn new(state: &Arc<ArchiveState>, orders: Receiver<VerifyOrder>) -> Self {
        Self { state: Arc::clone(state), orders, active: Vec::new() }
    }

    /// Determines what to read; a failure goes to the caller of the order.
    fn begin(&self, order: VerifyOrder) -> Option<ActiveOrder> {
        let state = &self.state;
        let check = || -> Result<(VecDeque<Stored>, Option<u64>, Option<u64>)> {
            let stored = |platter| state.platters.stored(platter).map(VecDeque::from);
            Ok(match order.scope {
                VerifyScope::Platter(platter) => (stored(Some(platter))?, None, None),
                VerifyScope::Platters => (stored(None)?, None, None),
                VerifyScope::All => {
                    let in_tiers = tiers::bytes_of_all(state)?;
                    (stored(None)?, Some(copies::bytes_of_all(state)?), in_tiers)
                }
            })
        };
        match state.runtime.panics.run("verifying", check) {
            Ok((platters, copies, tiers)) => {
                let of_platters = platters.iter().map(|platter| platter.bytes).sum::<u64>();
                let total = copies.unwrap_or(0) + tiers.unwrap_or(0) + of_platters;
                let report = VerifyReport::default();
                Some(ActiveOrder { order, copies, tiers, platters, done: 0, total, report })
            }
            Err(error) => {
                order.reply.send(Err(error));
                None
            }
        }
    }
}

impl Job for VerifyJob {
    fn name(&self) -> String {
        "verifying".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: None, backoff: JOB_TICK, backoff_max: JOB_BACKOFF_MAX }
    }

    fn failing(&self) -> &'static str {
        "nothing is verified"
    }

    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
        while let Some(order) = self.orders.try_iter().find(|order| order.reply.is_awaited()) {
            self.active.extend(self.begin(order));
        }
        let fewest = (0..self.active.len()).min_by_key(|&at| self.active[at].remaining_pieces());
        let Some(at) = fewest else { return Ok(Next::Tick) };
        let mut active = self.active.swap_remove(at);
        // A failure goes only to the caller that ordered the verification.
        match self.state.runtime.panics.run("verifying", || active.piece(&self.state, run)) {
            Ok(()) if active.remaining_pieces() > 0 => self.active.push(active),
            ended => {
                let ActiveOrder { order, report, .. } = active;
                run.after_run(move || order.reply.send(ended.map(|()| report)));
            }
        }
        self.state.check_stopping()?;
        Ok(Next::Again)
    }
}
