//! Failures in a set: tomes that are lost and whose member slots are rebuilt, and blocks that go
//! bad.

use fulgurite_tome_core::metadata::Row;
use fulgurite_tome_core::{Alarm, Event, Offset, PhysicalBlock, RegionIndex, Tome};
use fulgurite_units::{Duration, Instant};

use super::driver::{ClientRequest, Driven, SetEvent};
use super::settings::Repair;
use crate::engine::{Context, Observer};
use crate::tome::run::{Observation, TomeSet};

/// Maximum draws until a segment is found that was written and is whole.
const DRAWS_MAX: u32 = 64;

/// A bad block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BadBlock {
    physical_block: PhysicalBlock,
    since: Instant,
    found: Option<Instant>,
}

impl Driven {
    /// Loses a tome: its unprotected data is lost, and its member slots are rebuilt elsewhere.
    pub(crate) fn lose<O: Observer<TomeSet>>(
        &mut self,
        tome: usize,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        if self.nodes[tome].tome.is_none() {
            return;
        }
        self.stats.failures += 1;
        if self.stop(tome, ctx.now()) {
            ctx.notify(Observation::SpinningChanged(-1));
        }
        ctx.notify(Observation::Lost(1));
        self.objects.iter_mut().filter(|of| of.tome == tome).for_each(|of| of.is_readable = false);
        let planned: Vec<_> = self.moving.iter().map(|(planned, _)| *planned).collect();
        let retired = self.groups.retire(super::driver::id(tome), &planned);
        let Ok(retired) = retired else { return };
        self.stats.groups_lost += retired.unplaced.len() as u64;
        for planned in retired.moves {
            self.moving.push((planned, ctx.now()));
            let Ok(group) = self.groups.get(planned.group).cloned() else { continue };
            let to = planned.to.tome.get() as usize;
            self.step(to, Event::Rebuild { planned, group }, ctx);
        }
    }

    /// Handles an alarm of a tome.
    pub(crate) fn alarm<O: Observer<TomeSet>>(
        &mut self,
        tome: usize,
        alarm: &Alarm,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        match alarm {
            Alarm::Rebuilt { group, .. } => self.rebuilt(*group, ctx),
            Alarm::SegmentLost { region, segment } => {
                self.counts.segments_lost += 1;
                if self.scenario.driven.repair == Repair::AtOnce {
                    self.spin_up_members(tome, *region, *segment, ctx);
                }
            }
            Alarm::Foreign { from, group } => {
                let is_lost = self.nodes[from.get() as usize].tome.is_none();
                let moved = !self.moving.is_empty() || self.stats.failures > 0;
                assert!(is_lost || moved, "tome {from} is a member of {group}");
            }
            Alarm::RebuildDropped { .. } => self.stats.restarts += 1,
            Alarm::Healed { .. } | Alarm::ChangeLost { .. } | Alarm::SlotLost { .. } => {}
        }
    }

    fn rebuilt<O: Observer<TomeSet>>(
        &mut self,
        group: fulgurite_tome_core::GroupId,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let Some(at) = self.moving.iter().position(|(planned, _)| planned.group == group) else {
            return;
        };
        let (planned, since) = self.moving.remove(at);
        let moved = self.groups.moved(planned);
        assert!(moved.is_ok(), "a planned member slot can be taken");
        self.counts.built_regions += 1;
        // The last of a tome's regions: no other is partly rebuilt.
        if self.moving.is_empty() {
            let places = u64::from(self.layout.region_blocks()) * self.counts.built_regions;
            let counts = &self.counts;
            let (writes, reads) = (counts.build_writes / places, counts.build_reads / places);
            self.stats.rebuild_passes(writes, reads);
        }
        if self.moving.iter().all(|(other, _)| other.from.tome != planned.from.tome) {
            self.stats.rebuilt_within(ctx.now().since(since));
            ctx.notify(Observation::Lost(-1));
        }
    }

    /// Spins up all other members of a group for a segment at once.
    fn spin_up_members<O: Observer<TomeSet>>(
        &mut self,
        tome: usize,
        region: RegionIndex,
        segment: u32,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let Some(core) = &self.nodes[tome].tome else { return };
        let Some(known) = core.metadata().region(region) else { return };
        let group = known.group().clone();
        let bad = self.bad.keys().filter(|(of, index, offset)| {
            let within = self.layout.in_segment(*offset).is_ok_and(|at| at.segment == segment);
            (*of, *index) == (tome, region) && within
        });
        let offsets: Vec<Offset> = bad.map(|(_, _, offset)| *offset).collect();
        for slot in group.slots().iter().filter(|slot| slot.tome.get() as usize != tome) {
            let request = self.request(ClientRequest::SpinUp);
            let event = Event::Hold { request, group: group.id(), offsets: offsets.clone() };
            let at = ctx.now() + self.times.latency;
            let to = slot.tome.get() as usize;
            self.plan(at, SetEvent::Tome { tome: to, event }, ctx);
        }
    }

    pub(crate) fn plan_corruption<O: Observer<TomeSet>>(
        &mut self,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        if self.scenario.driven.bad_per_hour > 0.0 {
            let gap_s = 3_600.0 / self.scenario.driven.bad_per_hour;
            let after = Duration::from_secs_f64(self.random.bad_gaps.draw() * gap_s);
            self.plan(ctx.now() + after, SetEvent::Corrupt, ctx);
        }
    }

    /// Makes blocks of one random segment go bad.
    pub(crate) fn corrupt<O: Observer<TomeSet>>(&mut self, ctx: &mut Context<'_, TomeSet, O>) {
        self.plan_corruption(ctx);
        let total = self.layout.segment().total();
        for _ in 0..DRAWS_MAX {
            let mut draw = |bound: u64| self.random.bad.below(bound.max(1));
            let tome = usize::try_from(draw(self.nodes.len() as u64)).unwrap_or(0);
            let region = u32::try_from(draw(self.scenario.driven.regions.into())).unwrap_or(0);
            let segment = u32::try_from(draw(self.layout.parts().segments.into())).unwrap_or(0);
            let first = u32::try_from(draw(total.into())).unwrap_or(0);
            let index = RegionIndex::new(region);
            let Some(known) = self.nodes[tome].tome.as_ref().map(Tome::metadata) else {
                continue;
            };
            let Some(known) = known.region(index) else { continue };
            let count = self.scenario.driven.bad_blocks;
            let offsets = (first..first + count).map(|at| segment * total + at % total);
            let places: Vec<(Offset, PhysicalBlock)> = offsets
                .map(Offset::new)
                .filter_map(|offset| Some((offset, known.physical_block(offset)?)))
                .collect();
            let is_whole = !self
                .layout
                .segment_offsets(segment)
                .any(|offset| self.bad.contains_key(&(tome, index, offset)));
            if places.len() < count as usize || !is_whole {
                continue;
            }
            for (offset, physical_block) in places {
                self.nodes[tome].disk[physical_block.get() as usize] = None;
                let bad = BadBlock { physical_block, since: ctx.now(), found: None };
                self.bad.insert((tome, index, offset), bad);
                self.counts.bad += 1;
            }
            return;
        }
    }

    /// Records the discovery of bad blocks among these, which were read.
    pub(crate) fn record_discovery(
        &mut self,
        tome: usize,
        physical_blocks: &[PhysicalBlock],
        at: Instant,
    ) {
        if self.bad.is_empty() {
            return;
        }
        for ((of, ..), bad) in &mut self.bad {
            if *of == tome && bad.found.is_none() && physical_blocks.contains(&bad.physical_block) {
                bad.found = Some(at);
                self.counts.discovered.add(at.since(bad.since));
            }
        }
    }

    /// Handles a commit of a tome: counts bad blocks that are repaired, and writes to regions being
    /// rebuilt.
    pub(crate) fn committed(&mut self, tome: usize, rows: &[Row], now: Instant) {
        let is_building = rows.iter().any(|row| matches!(row, Row::Building { .. }));
        for row in rows {
            let Row::Block { region, offset, physical_block, .. } = row else { continue };
            let key = (tome, *region, *offset);
            if let Some(bad) = self.bad.remove(&key) {
                let at = self.nodes[tome].board.max(now);
                self.counts.repaired.add(at.since(bad.found.unwrap_or(bad.since)));
            }
            if is_building {
                self.counts.build_writes += 1;
                let before = self.built.insert(key, *physical_block);
                let was_read = before
                    .is_some_and(|physical_block| self.reading[tome].contains(&physical_block));
                self.counts.build_reads += u64::from(was_read);
            }
        }
    }
}
