//! The straw man of section 2.2.2 (Pelican, OSDI 2014): each blob lies on 18 random disks of which
//! no two share a tray or a column. Two blobs are read at the same time only if none of their disks
//! share one either.
//!
//! Disks stay spun up after a read until another read needs one of their domains. That read waits
//! until they are unmounted, and until its own disks are spun up and mounted. The disks of a blob
//! are drawn when it is read, because all choices are equally likely.

use std::collections::VecDeque;

use fulgurite_units::Seed;

use super::latencies::{OrderStatistic, seconds, stream};
use super::run::{Common, Observation, PendingEvent, Rack, ScheduledEvent};
use super::scenario::Disks;
use super::shape::STACKS_OF_BLOB;
use super::transfers::OpIndex;
use crate::engine::{Context, Observer};
use crate::workload::Draws;

/// Positions of disks in the paper's rack along its width, depth and height.
const PLACES: [u64; 3] = [6, 16, 12];

/// A rack with the straw man's layout.
#[derive(Debug)]
pub(crate) struct Random {
    waiting: VecDeque<(OpIndex, Domains)>,
    look_ahead: usize,
    /// Blobs that are being read, or whose disks are spinning up.
    busy: Vec<(OpIndex, Domains)>,
    /// Disks that are spun up and idle.
    idle: Vec<Domains>,
    disks: u32,
    latencies: [OrderStatistic; 3],
    places: Draws,
    times: Draws,
}

/// Domains of a blob's disks: a bit for each tray (x, z) and for each column (x, d).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Domains {
    trays: u128,
    columns: u128,
}

impl Domains {
    const fn overlaps(self, other: Self) -> bool {
        self.trays & other.trays != 0 || self.columns & other.columns != 0
    }
}

impl Random {
    pub(crate) fn new(disks: &Disks, look_ahead: u32, seed: &Seed) -> Self {
        let slowest = |law| OrderStatistic::new(law, STACKS_OF_BLOB, STACKS_OF_BLOB);
        Self {
            waiting: VecDeque::new(),
            look_ahead: look_ahead as usize,
            busy: Vec::new(),
            idle: Vec::new(),
            disks: STACKS_OF_BLOB,
            latencies: [disks.unmount, disks.spin_up, disks.mount].map(slowest),
            places: stream(seed, b"straw-man"),
            times: stream(seed, b"times"),
        }
    }

    /// Returns the number of waiting reads.
    pub(crate) fn queued(&self) -> u32 {
        u32::try_from(self.waiting.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn handle_arrival<O: Observer<Rack>>(
        &mut self,
        index: OpIndex,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let domains = self.draw();
        self.waiting.push_back((index, domains));
        self.begin(common, ctx);
    }

    pub(crate) fn ended<O: Observer<Rack>>(
        &mut self,
        index: OpIndex,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let place = self.busy.iter().position(|(busy, _)| *busy == index);
        assert!(place.is_some(), "only a read in progress can end");
        if let Some(place) = place {
            let (_, domains) = self.busy.swap_remove(place);
            self.idle.push(domains);
        }
        self.begin(common, ctx);
    }

    /// Handles the end of a spin-up: the disks of a read are mounted.
    pub(crate) fn spun_up<O: Observer<Rack>>(
        &mut self,
        index: OpIndex,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        common.stats.power.spun_up(ctx.now(), self.disks);
        let mount = self.latencies[2].draw_s(&mut self.times);
        let seek = common.transfers.seek();
        ctx.put(ctx.now() + seconds(mount) + seek, ScheduledEvent(PendingEvent::SeekDone(index)));
    }

    /// Spins up the disks of a read: those that were in their way are in standby.
    pub(crate) fn unmounted<O: Observer<Rack>>(
        &mut self,
        index: OpIndex,
        common: &mut Common,
        ctx: &mut Context<'_, Rack, O>,
    ) {
        let busy = self.busy.iter().find(|(busy, _)| *busy == index);
        let domains = busy.map_or_else(Domains::default, |(_, domains)| *domains);
        let before = self.idle.len();
        self.idle.retain(|idle| !idle.overlaps(domains));
        let asleep = u32::try_from(before - self.idle.len()).unwrap_or(0) * self.disks;
        common.stats.power.stop(ctx.now(), asleep);
        let spin_up = self.latencies[1].draw_s(&mut self.times);
        let together = self.latencies[1].total_s(spin_up);
        common.stats.spun_up(ctx.now(), None, self.disks);
        common.stats.power.spin_up(ctx.now(), self.disks, together);
        ctx.put(ctx.now() + seconds(spin_up), ScheduledEvent(PendingEvent::SpunUp(index)));
    }

    fn begin<O: Observer<Rack>>(&mut self, common: &mut Common, ctx: &mut Context<'_, Rack, O>) {
        let mut place = 0;
        while place < self.waiting.len().min(self.look_ahead) {
            let (index, domains) = self.waiting[place];
            if self.busy.iter().any(|(_, busy)| busy.overlaps(domains)) {
                place += 1;
                continue;
            }
            self.waiting.remove(place);
            self.busy.push((index, domains));
            let op = common.ops.get_mut(index);
            op.times.dequeued = ctx.now();
            ctx.notify(Observation::ServiceStarted { group: op.group });
            let is_in_the_way = self.idle.iter().any(|idle| idle.overlaps(domains));
            let unmount =
                if is_in_the_way { self.latencies[0].draw_s(&mut self.times) } else { 0.0 };
            ctx.put(ctx.now() + seconds(unmount), ScheduledEvent(PendingEvent::Unmounted(index)));
        }
    }

    /// Draws disks one by one, skipping those that share a domain with an earlier one.
    fn draw(&mut self) -> Domains {
        let mut all = Domains::default();
        let mut drawn = 0;
        while drawn < self.disks {
            let [x, d, z] = PLACES.map(|places| self.places.below(places));
            let disk = Domains { trays: 1 << (x * 12 + z), columns: 1 << (x * 16 + d) };
            if !disk.overlaps(all) {
                all =
                    Domains { trays: all.trays | disk.trays, columns: all.columns | disk.columns };
                drawn += 1;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use fulgurite_units::Seed;

    use super::Random;
    use crate::rack::scenario::Disks;

    #[test]
    fn random_blobs_nearly_always_share_a_domain() {
        let mut straw = Random::new(&Disks::default(), 1, &Seed::new(1));
        let blobs: Vec<_> = (0..2_000).map(|_| straw.draw()).collect();
        for blob in &blobs {
            assert_eq!((blob.trays.count_ones(), blob.columns.count_ones()), (18, 18));
            assert!(blob.trays < 1 << 72 && blob.columns < 1 << 96);
        }
        let apart = blobs.windows(2).filter(|pair| !pair[0].overlaps(pair[1])).count();
        assert!(apart < 10, "{apart} of 2,000 pairs");
    }
}
