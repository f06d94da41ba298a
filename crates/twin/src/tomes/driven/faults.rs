//! Failures in a set: tomes that are lost and whose member slots are rebuilt, and blocks that go
//! bad.

use fulgurite_tome::awake::Row;
use fulgurite_tome::{Alarm, Event, Offset, RegionIndex, Spot, Tome};
use fulgurite_units::{Duration, Instant};

use super::drive::{Asked, Driven, Happening};
use super::settings::Repair;
use crate::engine::{Observer, Stage};
use crate::tomes::run::{Seen, Tomes};

/// Maximum draws until a segment is found that was written and is whole.
const DRAWS_MAX: u32 = 64;

/// A bad block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bad {
    spot: Spot,
    since: Instant,
    found: Option<Instant>,
}

impl Driven {
    /// Loses a tome: what only it had is gone, and its member slots are rebuilt elsewhere.
    pub(crate) fn lose<O: Observer<Tomes>>(
        &mut self,
        tome: usize,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        if self.nodes[tome].tome.is_none() {
            return;
        }
        self.accounts.failures += 1;
        if self.stop(tome, stage.now()) {
            stage.show(Seen::Spins(-1));
        }
        stage.show(Seen::Lost(1));
        self.objects.iter_mut().filter(|of| of.tome == tome).for_each(|of| of.is_there = false);
        let planned: Vec<_> = self.moving.iter().map(|(planned, _)| *planned).collect();
        let retired = self.groups.retire(super::drive::id(tome), &planned);
        let Ok(retired) = retired else { return };
        self.accounts.groups_lost += retired.without_room.len() as u64;
        for planned in retired.moves {
            self.moving.push((planned, stage.now()));
            let Ok(group) = self.groups.get(planned.group).cloned() else { continue };
            let to = planned.to.tome.get() as usize;
            self.step(to, Event::Rebuild { planned, group }, stage);
        }
    }

    /// Handles an alarm of a tome.
    pub(crate) fn alarm<O: Observer<Tomes>>(
        &mut self,
        tome: usize,
        alarm: &Alarm,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        match alarm {
            Alarm::Rebuilt { group, .. } => self.rebuilt(*group, stage),
            Alarm::SegmentLost { region, segment } => {
                self.counts.segments_lost += 1;
                if self.scenario.driven.repair == Repair::AtOnce {
                    self.ask_at_once(tome, *region, *segment, stage);
                }
            }
            Alarm::Foreign { from, group } => {
                let is_lost = self.nodes[from.get() as usize].tome.is_none();
                let moved = !self.moving.is_empty() || self.accounts.failures > 0;
                assert!(is_lost || moved, "tome {from} is no stranger to {group}");
            }
            Alarm::RebuildDropped { .. } => self.accounts.restarts += 1,
            Alarm::Healed { .. } | Alarm::ChangeLost { .. } | Alarm::SeatLost { .. } => {}
        }
    }

    fn rebuilt<O: Observer<Tomes>>(
        &mut self,
        group: fulgurite_tome::GroupId,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let Some(at) = self.moving.iter().position(|(planned, _)| planned.group == group) else {
            return;
        };
        let (planned, since) = self.moving.remove(at);
        let moved = self.groups.moved(planned);
        assert!(moved.is_ok(), "a seat that was planned is taken");
        self.counts.built_regions += 1;
        // The last of a tome's regions: no other is partly rebuilt.
        if self.moving.is_empty() {
            let places = u64::from(self.layout.region_blocks()) * self.counts.built_regions;
            let counts = &self.counts;
            let (writes, reads) = (counts.build_writes / places, counts.build_reads / places);
            self.accounts.rebuild_passes(writes, reads);
        }
        if self.moving.iter().all(|(other, _)| other.from.tome != planned.from.tome) {
            self.accounts.rebuilt_within(stage.now().since(since));
            stage.show(Seen::Lost(-1));
        }
    }

    /// Spins up all other members of a group for a segment at once.
    fn ask_at_once<O: Observer<Tomes>>(
        &mut self,
        tome: usize,
        region: RegionIndex,
        segment: u32,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let Some(core) = &self.nodes[tome].tome else { return };
        let Some(known) = core.awake().region(region) else { return };
        let group = known.group().clone();
        let bad = self.bad.keys().filter(|(of, index, offset)| {
            let within = self.layout.in_segment(*offset).is_ok_and(|at| at.segment == segment);
            (*of, *index) == (tome, region) && within
        });
        let offsets: Vec<Offset> = bad.map(|(_, _, offset)| *offset).collect();
        for seat in group.seats().iter().filter(|seat| seat.tome.get() as usize != tome) {
            let request = self.request(Asked::Wake);
            let event = Event::Hold { request, group: group.id(), offsets: offsets.clone() };
            let at = stage.now() + self.times.latency;
            let to = seat.tome.get() as usize;
            self.plan(at, Happening::Tome { tome: to, event }, stage);
        }
    }

    pub(crate) fn plan_spoil<O: Observer<Tomes>>(&mut self, stage: &mut Stage<'_, Tomes, O>) {
        if self.scenario.driven.bad_per_hour > 0.0 {
            let gap_s = 3_600.0 / self.scenario.driven.bad_per_hour;
            let after = Duration::from_secs_f64(self.random.bad_gaps.draw() * gap_s);
            self.plan(stage.now() + after, Happening::Spoil, stage);
        }
    }

    /// Makes blocks of one random segment go bad.
    pub(crate) fn spoil<O: Observer<Tomes>>(&mut self, stage: &mut Stage<'_, Tomes, O>) {
        self.plan_spoil(stage);
        let total = self.layout.segment().total();
        for _ in 0..DRAWS_MAX {
            let mut draw = |bound: u64| self.random.bad.below(bound.max(1));
            let tome = usize::try_from(draw(self.nodes.len() as u64)).unwrap_or(0);
            let region = u32::try_from(draw(self.scenario.driven.regions.into())).unwrap_or(0);
            let segment = u32::try_from(draw(self.layout.parts().segments.into())).unwrap_or(0);
            let first = u32::try_from(draw(total.into())).unwrap_or(0);
            let index = RegionIndex::new(region);
            let Some(known) = self.nodes[tome].tome.as_ref().map(Tome::awake) else {
                continue;
            };
            let Some(known) = known.region(index) else { continue };
            let count = self.scenario.driven.bad_blocks;
            let offsets = (first..first + count).map(|at| segment * total + at % total);
            let places: Vec<(Offset, Spot)> = offsets
                .map(Offset::new)
                .filter_map(|offset| Some((offset, known.spot(offset)?)))
                .collect();
            let is_whole = !self
                .layout
                .segment_offsets(segment)
                .any(|offset| self.bad.contains_key(&(tome, index, offset)));
            if places.len() < count as usize || !is_whole {
                continue;
            }
            for (offset, spot) in places {
                self.nodes[tome].disk[spot.get() as usize] = None;
                let bad = Bad { spot, since: stage.now(), found: None };
                self.bad.insert((tome, index, offset), bad);
                self.counts.bad += 1;
            }
            return;
        }
    }

    /// Notes the discovery of bad blocks among these, which were read.
    pub(crate) fn found_bad(&mut self, tome: usize, spots: &[Spot], at: Instant) {
        if self.bad.is_empty() {
            return;
        }
        for ((of, ..), bad) in &mut self.bad {
            if *of == tome && bad.found.is_none() && spots.contains(&bad.spot) {
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
            let Row::Block { region, offset, spot, .. } = row else { continue };
            let key = (tome, *region, *offset);
            if let Some(bad) = self.bad.remove(&key) {
                let at = self.nodes[tome].board.max(now);
                self.counts.repaired.add(at.since(bad.found.unwrap_or(bad.since)));
            }
            if is_building {
                self.counts.build_writes += 1;
                let before = self.built.insert(key, *spot);
                let was_read = before.is_some_and(|spot| self.reading[tome].contains(&spot));
                self.counts.build_reads += u64::from(was_read);
            }
        }
    }
}
