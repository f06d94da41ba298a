//! The fully provisioned rack: every disk always spins, and each group has its own
//! first-come-first-served queue (Pelican, OSDI 2014, section 4.1, FP). Waiting reads count for
//! their class as in a rack with standby, so that both reject at the same queue length.

use std::collections::VecDeque;

use super::run::{Common, Observation, PendingEvent, Rack, ScheduledEvent};
use super::shape::{CLASSES, DISKS, GROUPS, class_of};
use super::transfers::OpIndex;
use crate::engine::{Context, Observer};

/// Queues of a fully provisioned rack.
#[derive(Debug)]
pub(crate) struct Provisioned {
    groups: Vec<Queue>,
    /// Waiting reads per class.
    waiting: [u32; CLASSES],
}

#[derive(Clone, Debug, Default)]
struct Queue {
    waiting: VecDeque<OpIndex>,
    is_busy: bool,
}

impl Provisioned {
    pub(crate) fn new(common: &mut Common) -> Self {
        let start = fulgurite_units::Instant::ZERO;
        common.stats.power.spin_up(start, DISKS, 0.0);
        common.stats.power.spun_up(start, DISKS);
        Self { groups: vec![Queue::default(); GROUPS as usize], waiting: [0; CLASSES] }
    }

    /// Returns the number of waiting reads in the class of a group.
    pub(crate) fn queued(&self, group: u32) -> u32 {
        self.waiting[class_of(group)]
    }

    pub(crate) fn handle_arrival<O: Observer<Rack>>(
        &mut self,
        index: OpIndex,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let group = common.ops.get(index).group;
        self.waiting[class_of(group)] += 1;
        self.groups[group as usize].waiting.push_back(index);
        self.begin(group, common, ctx);
    }

    /// Ends a read of a group, and starts the next one.
    pub(crate) fn ended<O: Observer<Rack>>(
        &mut self,
        group: u32,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        self.groups[group as usize].is_busy = false;
        self.begin(group, common, ctx);
    }

    fn begin<O: Observer<Rack>>(
        &mut self,
        group: u32,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let queue = &mut self.groups[group as usize];
        if queue.is_busy {
            return;
        }
        let Some(index) = queue.waiting.pop_front() else { return };
        queue.is_busy = true;
        self.waiting[class_of(group)] -= 1;
        common.ops.get_mut(index).times.dequeued = ctx.now();
        ctx.notify(Observation::ServiceStarted { group });
        ctx.put(ctx.now() + common.transfers.seek(), ScheduledEvent(PendingEvent::SeekDone(index)));
    }
}
