//! Scrubs: some blocks are read at each spin-up, and everything within a year.
//!
//! (Pergamum (FAST 2008), section 4.3.2.) A limited scrub reads some random blocks at each spin-up.
//! The full scrub continues whenever the disk spins anyway, as far as is due by then; when it is
//! well behind, it spins the disk up. When a client requests a scrub, the full scrub continues at
//! once and at full speed, once around the disk. Not here: the disk's SMART data, which its driver
//! reads.

use fulgurite_units::{Duration, Instant, Outbox, RandomStream};

use super::jobs::{BlockAddress, Task};
use super::{Answer, Command, RequestId, Tome};
use crate::limits::{
    FULL_SCRUB, LIMITED_SCRUB_BLOCKS, SCRUB_BATCH, SCRUB_LAG_DIVISOR, SCRUB_REQUESTS_MAX,
    SCRUB_SCAN_BLOCKS,
};
use crate::metadata::{Row, Scrubbed};
use crate::{Offset, RegionIndex, TomeError};

/// The state of both scrubs.
#[derive(Clone, Debug)]
pub(super) struct Scrub {
    stream: RandomStream,
    /// Blocks left of the limited scrub.
    limited: usize,
    /// When this pass of the full scrub began.
    began: Instant,
    /// Places left of a requested scrub.
    wanted: u64,
    /// The requests for it.
    requests: Vec<RequestId>,
}

impl Scrub {
    pub(super) fn new(now: Instant, before: Scrubbed, stream: RandomStream) -> Self {
        let began = now.as_nanos().saturating_sub(before.spent.as_nanos());
        let began = Instant::from_nanos(began);
        Self { stream, limited: 0, began, wanted: 0, requests: Vec::new() }
    }

    /// Starts a limited scrub after a spin-up.
    pub(super) fn begin(&mut self) {
        self.limited = LIMITED_SCRUB_BLOCKS;
    }

    /// Returns the block that this pass should have reached by now.
    fn due(&self, now: Instant, next: u64, blocks: u64) -> u64 {
        let spent = u128::from(now.since(self.began).as_nanos());
        let due = u128::from(blocks) * spent / u128::from(FULL_SCRUB.as_nanos());
        u64::try_from(due).unwrap_or(u64::MAX).max(next + self.wanted).min(blocks)
    }

    /// Whether to spin the disk up.
    pub(super) fn is_late(&self, now: Instant, scrubbed: Scrubbed, blocks: u64) -> bool {
        self.wanted > 0 || self.due(now, scrubbed.next, blocks) >= lag_limit(scrubbed.next, blocks)
    }

    /// Returns when it becomes late, if nothing spins the disk up before; when it is late already,
    /// the time to check again.
    pub(super) fn deadline(&self, now: Instant, next: u64, blocks: u64) -> Instant {
        let period = u128::from(FULL_SCRUB.as_nanos());
        let spent =
            (period * u128::from(lag_limit(next, blocks))).div_ceil(u128::from(blocks.max(1)));
        let at = self.began + Duration::from_nanos(u64::try_from(spent).unwrap_or(u64::MAX));
        let again = now + Duration::from_nanos(FULL_SCRUB.as_nanos() / SCRUB_LAG_DIVISOR);
        if at > now { at } else { again }
    }

    /// Records that the blocks before `next` are read.
    fn advance_to(&mut self, now: Instant, before: Scrubbed, next: u64, blocks: u64) -> Scrubbed {
        if next < blocks {
            return Scrubbed { next, spent: now.since(self.began), ..before };
        }
        self.began = now;
        Scrubbed { next: 0, spent: Duration::ZERO, passes: before.passes + 1 }
    }
}

/// Returns the block that must be due before the disk is spun up, for a pass at `next`.
fn lag_limit(next: u64, blocks: u64) -> u64 {
    (next + (blocks / SCRUB_LAG_DIVISOR).max(1)).min(blocks)
}

impl Tome {
    /// Has everything written read, once around the disk. A request during a requested scrub is
    /// counted from there on.
    pub(super) fn scrub_all(&mut self, request: RequestId, out: &mut Outbox<Command>) {
        if self.scrub.requests.len() >= SCRUB_REQUESTS_MAX {
            let answer = Answer::Refused(TomeError::Backlog { what: "scrubs" });
            out.push(Command::Answer { request, answer });
            return;
        }
        self.scrub.requests.push(request);
        self.scrub.wanted = self.blocks();
    }

    /// When this pass of the full scrub began.
    #[must_use]
    pub const fn scrub_began(&self) -> Instant {
        self.scrub.began
    }

    /// Number of places left of a requested scrub.
    #[must_use]
    pub const fn to_scrub(&self) -> u64 {
        self.scrub.wanted
    }

    /// Records that the blocks before a place are read.
    pub(super) fn record_scrubbed(&mut self, next: u64, out: &mut Outbox<Command>) {
        let before = self.metadata.scrubbed();
        let scrubbed = self.scrub.advance_to(self.now, before, next, self.blocks());
        self.commit(vec![Row::Scrubbed(scrubbed)], out);
        if self.scrub.wanted == 0 {
            return;
        }
        self.scrub.wanted = self.scrub.wanted.saturating_sub(next.saturating_sub(before.next));
        if self.scrub.wanted == 0 {
            for request in std::mem::take(&mut self.scrub.requests) {
                out.push(Command::Answer { request, answer: Answer::Scrubbed });
            }
        }
    }

    /// Number of blocks of the disk.
    pub(super) const fn blocks(&self) -> u64 {
        self.metadata.layout().blocks()
    }

    /// Returns the next blocks to scrub, if any are due.
    pub(super) fn next_scrub(&mut self) -> Option<Task> {
        if self.scrub.limited > 0 {
            let count = self.scrub.limited.min(SCRUB_BATCH);
            self.scrub.limited -= count;
            let draws = (0..count).map(|_| self.scrub.stream.below(self.blocks()));
            let places: Vec<u64> = draws.collect();
            let blocks: Vec<BlockAddress> =
                places.into_iter().filter_map(|at| self.block_to_scrub(at)).collect();
            return Some(Task::Scrub { blocks, next: None });
        }
        let next = self.metadata.scrubbed().next;
        let due = self.scrub.due(self.now, next, self.blocks());
        if due <= next {
            return None;
        }
        let mut blocks = Vec::new();
        let mut until = next;
        let end = due.min(next + SCRUB_SCAN_BLOCKS);
        while until < end && blocks.len() < SCRUB_BATCH {
            blocks.extend(self.block_to_scrub(until));
            until += 1;
        }
        Some(Task::Scrub { blocks, next: Some(until) })
    }

    /// Returns the block at a place of the disk, if it was ever written and its segment is not
    /// known to be lost.
    fn block_to_scrub(&self, place: u64) -> Option<BlockAddress> {
        let layout = self.metadata.layout();
        let blocks = u64::from(layout.region_blocks());
        let index = RegionIndex::new(u32::try_from(place / blocks).ok()?);
        let offset = Offset::new(u32::try_from(place % blocks).ok()?);
        let segment = layout.in_segment(offset).ok()?.segment;
        let is_good = !self.lost_segments.contains_key(&(index, segment));
        self.metadata
            .region(index)?
            .physical_block(offset)
            .filter(|_| is_good)
            .map(|_| (index, offset))
    }
}
