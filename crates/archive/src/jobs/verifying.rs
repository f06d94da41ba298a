//! Verifies platters, restored copies and bodies in tiers of objects by reading them whole, on
//! order.
//!
//! An order is processed piece by piece: its copies, its tiers, then platter after platter. Among
//! several orders the one with the fewest remaining pieces goes first, so that a single platter
//! does not wait for a full verification.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use fulgurite_platters::{Progress, Stored};
use fulgurite_units::PlatterId;

use super::{Failed, Job, Next, Pace, Reply, Turn};
use crate::bodies::copies;
use crate::ground::Ground;
use crate::limits::{JOB_REST_MAX, JOB_TICK};
use crate::status::VerifyReport;
use crate::{Result, tiers};

/// What to verify.
#[derive(Debug)]
pub(crate) struct VerifyOrder {
    /// `None` verifies all platters, the restored copies and the tiers.
    pub(crate) platter: Option<PlatterId>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) reply: Reply<VerifyReport>,
}

/// An order in progress.
#[derive(Debug)]
struct Begun {
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
pub(super) struct Verifying {
    ground: Arc<Ground>,
    orders: Receiver<VerifyOrder>,
    begun: Vec<Begun>,
}

impl Begun {
    fn left(&self) -> usize {
        let others = [self.copies, self.tiers].into_iter().flatten().count();
        self.platters.len() + others
    }

    /// Verifies the next piece.
    fn piece(&mut self, ground: &Ground, turn: &Turn<'_>) -> Result<()> {
        let progress = &self.order.progress;
        progress.set(self.done, self.total);
        if let Some(bytes) = self.copies.take() {
            turn.doing("verifying restored copies");
            copies::verify_all(ground, progress, &mut self.report)?;
            self.done += bytes;
        } else if let Some(bytes) = self.tiers.take() {
            turn.doing("verifying what is in tiers of objects");
            self.report.tiers = tiers::verify_all(ground, progress)?;
            self.done += bytes;
        } else if let Some(platter) = self.platters.pop_front() {
            turn.doing(format!("verifying a platter, {} to come", self.platters.len()));
            self.report.platters.push(ground.platters.verify(&platter, progress)?);
            self.done += platter.bytes;
        }
        progress.set(self.done, self.total);
        Ok(())
    }
}

impl Verifying {
    pub(super) fn new(ground: &Arc<Ground>, orders: Receiver<VerifyOrder>) -> Self {
        Self { ground: Arc::clone(ground), orders, begun: Vec::new() }
    }

    /// Determines what to read; a failure goes to the caller of the order.
    fn begin(&self, order: VerifyOrder) -> Option<Begun> {
        let ground = &self.ground;
        let look = || -> Result<(VecDeque<Stored>, Option<u64>, Option<u64>)> {
            let platters = ground.platters.stored(order.platter)?.into();
            if order.platter.is_some() {
                return Ok((platters, None, None));
            }
            Ok((platters, Some(copies::bytes_of_all(ground)?), tiers::bytes_of_all(ground)?))
        };
        match ground.panics.run("verifying", look) {
            Ok((platters, copies, tiers)) => {
                let of_platters = platters.iter().map(|platter| platter.bytes).sum::<u64>();
                let total = copies.unwrap_or(0) + tiers.unwrap_or(0) + of_platters;
                let report = VerifyReport::default();
                Some(Begun { order, copies, tiers, platters, done: 0, total, report })
            }
            Err(error) => {
                order.reply.send(Err(error));
                None
            }
        }
    }
}

impl Job for Verifying {
    fn name(&self) -> String {
        "verifying".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: None, rest: JOB_TICK, rest_max: JOB_REST_MAX }
    }

    fn failing(&self) -> &'static str {
        "nothing is verified"
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed> {
        while let Some(order) = self.orders.try_iter().find(|order| order.reply.is_awaited()) {
            self.begun.extend(self.begin(order));
        }
        let fewest = (0..self.begun.len()).min_by_key(|&at| self.begun[at].left());
        let Some(at) = fewest else { return Ok(Next::Tick) };
        let mut begun = self.begun.swap_remove(at);
        // A failure goes only to the caller that ordered the verification.
        match self.ground.panics.run("verifying", || begun.piece(&self.ground, turn)) {
            Ok(()) if begun.left() > 0 => self.begun.push(begun),
            ended => {
                let Begun { order, report, .. } = begun;
                turn.afterwards(move || order.reply.send(ended.map(|()| report)));
            }
        }
        self.ground.check_stopping()?;
        Ok(Next::Again)
    }
}
