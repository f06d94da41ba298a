//! The queues: which platter waits where, and for what.

use std::collections::VecDeque;

use fulgurite_units::{Instant, Outbox, PlatterId};

use crate::controller::Library;
use crate::state::{Age, Place, Platter, PlatterKey, Queue, Stage, Waiting};
use crate::{Fault, Movement, Outcome, Output, PanelIndex};

impl Library {
    /// A platter that must be known, since something else refers to it.
    pub(crate) fn platter(&self, key: PlatterKey) -> &Platter {
        &self.platters[key.0 as usize]
    }

    /// A platter that must be known, since something else refers to it.
    pub(crate) fn platter_mut(&mut self, key: PlatterKey) -> &mut Platter {
        &mut self.platters[key.0 as usize]
    }

    /// Makes a platter known.
    pub(crate) fn remember(&mut self, id: PlatterId, stage: Stage, place: Place) -> PlatterKey {
        let reads = VecDeque::new();
        let mut platter = Platter {
            id,
            stage,
            place,
            claim: None,
            reads,
            tracks_wanted: 0,
            visit_reads: 0,
            queued: None,
        };
        let key = if let Some(key) = self.unused.pop() {
            // The room its reads took is used again.
            platter.reads = std::mem::take(&mut self.platter_mut(key).reads);
            *self.platter_mut(key) = platter;
            key
        } else {
            let key = u32::try_from(self.platters.len()).unwrap_or(u32::MAX);
            self.platters.push(platter);
            PlatterKey(key)
        };
        self.by_id.insert(id, key);
        key
    }

    /// Drops a platter that has nothing to do, or is not there at all.
    pub(crate) fn forget(&mut self, key: PlatterKey) {
        let platter = self.platter(key);
        assert!(platter.reads.is_empty(), "platter {} is forgotten with reads", platter.id);
        assert!(platter.queued.is_none(), "platter {} is forgotten in a queue", platter.id);
        let (id, home) = (platter.id, platter.home());
        let known = self.by_id.remove(&id);
        assert_eq!(known, Some(key), "platter {id} is forgotten once");
        if let Some(home) = home {
            self.by_home[home.as_usize()] = None;
        }
        self.displaced.remove(&key);
        self.unused.push(key);
    }

    /// Lists a read with its platter.
    pub(crate) fn enqueue(&mut self, key: PlatterKey, read: Waiting) {
        let tracks = u64::from(read.tracks.track_count);
        let platter = self.platter_mut(key);
        platter.tracks_wanted += tracks;
        if platter.reads.back().is_none_or(|last| last.age < read.age) {
            platter.reads.push_back(read);
        } else {
            let at = platter.reads.partition_point(|other| other.age < read.age);
            platter.reads.insert(at, read);
        }
        if let Some((Queue::Group(group), _)) = platter.queued {
            self.partitions.group_mut(group).backlog_tracks += tracks;
            self.note_work(group);
        }
        if let Place::Drive(drive, _) = self.platter(key).place {
            self.dirty.drive(drive);
        }
    }

    /// Takes a read off the list of its platter, if it is still there.
    pub(crate) fn unlist(&mut self, key: PlatterKey, age: Age) -> Option<Waiting> {
        let platter = self.platter_mut(key);
        let read = if platter.reads.front().is_some_and(|read| read.age == age) {
            platter.reads.pop_front()?
        } else {
            let at = platter.reads.binary_search_by(|read| read.age.cmp(&age)).ok()?;
            platter.reads.remove(at)?
        };
        let tracks = u64::from(read.tracks.track_count);
        platter.tracks_wanted -= tracks;
        if let Some((Queue::Group(group), _)) = platter.queued {
            self.note_work(group);
            self.partitions.group_mut(group).backlog_tracks -= tracks;
        }
        Some(read)
    }

    /// Where a platter has to wait for a shuttle now, if it does.
    pub(crate) fn due_queue(&self, platter: &Platter) -> Option<(Queue, Age)> {
        if platter.claim.is_some() {
            return None;
        }
        match (platter.stage, platter.place) {
            (Stage::Stored { .. }, Place::Storage(slot)) => {
                let age = platter.reads.front()?.age;
                Some((Queue::Group(self.partitions.of_slot(&self.floor, slot)), age))
            }
            (Stage::Unverified { age, panel, .. }, Place::EjectBay(_) | Place::Storage(_)) => {
                Some((Queue::New(panel), age))
            }
            _ => None,
        }
    }

    /// Puts a platter into the queue it belongs to after any change to it, or forgets it when it
    /// is at rest.
    pub(crate) fn settle(&mut self, key: PlatterKey) {
        let platter = self.platter(key);
        let (due, queued) = (self.due_queue(platter), platter.queued);
        if due != queued {
            self.move_queues(key, queued, due);
        }
        let platter = self.platter(key);
        if platter.claim.is_none()
            && platter.reads.is_empty()
            && let (Stage::Stored { home }, Place::Storage(slot)) = (platter.stage, platter.place)
            && home == slot
        {
            self.forget(key);
        }
    }

    fn move_queues(
        &mut self,
        key: PlatterKey,
        from: Option<(Queue, Age)>,
        to: Option<(Queue, Age)>,
    ) {
        let tracks = self.platter(key).tracks_wanted;
        match from {
            Some((Queue::Group(group), age)) => {
                // With this one gone another group may be the most loaded.
                self.note_work(group);
                let group = self.partitions.group_mut(group);
                let listed = group.queue.remove(&(age, key));
                assert!(listed, "a platter waits where it says");
                group.backlog_tracks -= tracks;
            }
            Some((Queue::New(panel), age)) => {
                self.new_platters[usize::from(panel.get())].remove(&(age, key));
            }
            None => {}
        }
        match to {
            Some((Queue::Group(index), age)) => {
                let group = self.partitions.group_mut(index);
                group.queue.insert((age, key));
                group.backlog_tracks += tracks;
                self.note_work(index);
            }
            Some((Queue::New(panel), age)) => {
                self.new_platters[usize::from(panel.get())].insert((age, key));
                self.note_pace();
                if self.policy.movement == Movement::NoShuttles {
                    // One group serves all panels.
                    self.note_work(0);
                }
                self.note_idle_groups(panel);
            }
            None => {}
        }
        self.platter_mut(key).queued = to;
    }

    /// There may be work for the shuttles of a group, for those that steal from it, or for its
    /// drives where none are needed.
    pub(crate) fn note_work(&mut self, group: u16) {
        self.dirty.group(group);
        let of = self.partitions.group(group);
        let (tracks, platters) = (of.backlog_tracks, of.queue.len());
        if self.policy.steal_tracks.is_some_and(|threshold| tracks > threshold)
            || self.policy.help_platters.is_some_and(|least| platters >= usize::from(least))
        {
            self.note_idle_groups(of.panel);
        }
    }

    /// The groups of a panel with a shuttle to spare look again. One whose shuttles are all on
    /// their way looks when the first comes back.
    pub(crate) fn note_idle_groups(&mut self, panel: PanelIndex) {
        for index in self.partitions.of_panel(panel) {
            let mut shuttles = self.partitions.group(index).shuttles.iter();
            if !self.dirty.is_group_noted(index)
                && shuttles.any(|at| self.shuttles[at.as_usize()].is_idle())
            {
                self.dirty.group(index);
            }
        }
    }

    /// A platter lies in a spare slot though it has a home: any shuttle of its panel may bring it
    /// there.
    pub(crate) fn displace(&mut self, key: PlatterKey) {
        self.displaced.insert(key);
        self.dirty.all_groups();
    }

    /// Something about a platter changed: whoever could do something for it looks at it.
    pub(crate) fn touch(&mut self, key: PlatterKey) {
        match self.platter(key).place {
            Place::Drive(drive, _) => {
                self.dirty.drive(drive);
                for index in 0..self.partitions.of_drive(drive).len() {
                    let group = self.partitions.of_drive(drive)[index];
                    self.dirty.group(group);
                }
            }
            Place::Storage(slot) => {
                let group = self.partitions.of_slot(&self.floor, slot);
                self.dirty.group(group);
            }
            Place::Shuttle(shuttle) => {
                if let Some(group) = self.partitions.of_shuttle(shuttle) {
                    self.dirty.group(group);
                }
            }
            Place::EjectBay(_) => {}
        }
    }

    /// A read that just came, and is due before others of the batch of its group, ends that batch
    /// with itself: of what is due later none is nearer than it. With one objective for all reads
    /// there is no such read.
    pub(crate) fn note_urgent(&mut self, key: PlatterKey, age: Age) {
        if let Some((Queue::Group(group), first)) = self.platter(key).queued
            && first == age
        {
            let group = self.partitions.group_mut(group);
            group.batch_end = group.batch_end.min(age);
        }
    }

    /// When a platter has been left waiting for more reads for long enough.
    pub(crate) fn hold_end(&self, key: PlatterKey) -> Instant {
        let Some(first) = self.platter(key).reads.front() else { return Instant::ZERO };
        let slack = first.age.due.since(first.at);
        let hold = slack.as_secs_f64() * self.policy.hold.get();
        first.at + fulgurite_units::Duration::from_secs_f64(hold.min(1e9))
    }

    /// Ends everything that is asked of a platter. It may be forgotten by this.
    pub(crate) fn end_requests(&mut self, key: PlatterKey, fault: Fault, out: &mut Outbox<Output>) {
        let stage = self.platter(key).stage;
        if let Stage::Unverified { request, panel, .. } | Stage::Storing { request, panel, .. } =
            stage
        {
            if let Stage::Storing { home, .. } = stage {
                self.by_home[home.as_usize()] = None;
            }
            if let Stage::Unverified { age, .. } = stage {
                self.unverified[usize::from(panel.get())].remove(&(age, key));
            }
            self.platter_mut(key).stage = Stage::Checked { panel };
            self.note_pace();
            self.finish(request, Outcome::Failed(fault), out);
        }
        self.end_reads(key, fault, out);
    }

    /// Ends the reads that wait for a platter. It may be forgotten by this.
    pub(crate) fn end_reads(&mut self, key: PlatterKey, fault: Fault, out: &mut Outbox<Output>) {
        while let Some(read) = self.platter(key).reads.front().copied() {
            self.unlist(key, read.age);
            self.finish(read.request, Outcome::Failed(fault), out);
        }
        self.settle(key);
    }
}
