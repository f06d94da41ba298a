//! The queues: which platter waits where, and for what.

use fulgurite_units::{Instant, Outbox};

use crate::control::controller::Library;
use crate::control::platter_table::Platter;
use crate::control::state::{Age, PendingRead, Place, PlatterKey, Queue, Stage};
use crate::control::{Fault, Movement, Outcome, Output, PanelIndex};

impl Library {
    /// Adds a read to the list of its platter.
    pub(crate) fn enqueue(&mut self, key: PlatterKey, read: PendingRead) {
        let tracks = u64::from(read.tracks.track_count);
        self.shelf.add_read(key, read);
        let platter = self.shelf.get(key);
        let (queued, place) = (platter.queued(), platter.place());
        if let Some((Queue::Group(group), _)) = queued {
            self.partitions.group_mut(group).add_backlog(tracks);
            self.mark_work(group);
        }
        if let Place::Drive(drive, _) = place {
            self.dirty.drive(drive);
        }
    }

    /// Removes a read from the list of its platter, if it is still there.
    pub(crate) fn remove_read(&mut self, key: PlatterKey, age: Age) -> Option<PendingRead> {
        let read = self.shelf.remove_read(key, age)?;
        if let Some((Queue::Group(group), _)) = self.shelf.get(key).queued() {
            self.mark_work(group);
            let tracks = u64::from(read.tracks.track_count);
            self.partitions.group_mut(group).remove_backlog(tracks);
        }
        Some(read)
    }

    /// Returns the queue in which a platter has to wait for a shuttle now, if any.
    pub(crate) fn due_queue(&self, platter: &Platter) -> Option<(Queue, Age)> {
        if platter.claim().is_some() {
            return None;
        }
        match (platter.stage(), platter.place()) {
            (Stage::Stored { .. }, Place::Storage(slot)) => {
                let age = platter.first_read()?.age;
                Some((Queue::Group(self.partitions.group_of_slot(&self.floor, slot)), age))
            }
            (Stage::Unverified { age, panel, .. }, Place::EjectBay(_) | Place::Storage(_)) => {
                Some((Queue::New(panel), age))
            }
            _ => None,
        }
    }

    /// Moves a platter to the queue it belongs to after any change to it, or forgets it when it is
    /// at rest.
    pub(crate) fn settle(&mut self, key: PlatterKey) {
        let platter = self.shelf.get(key);
        let (due, queued) = (self.due_queue(platter), platter.queued());
        if due != queued {
            self.move_queues(key, queued, due);
        }
        let platter = self.shelf.get(key);
        if platter.claim().is_none()
            && platter.reads().is_empty()
            && let (Stage::Stored { home }, Place::Storage(slot)) =
                (platter.stage(), platter.place())
            && home == slot
        {
            self.shelf.forget(key);
        }
    }

    fn move_queues(
        &mut self,
        key: PlatterKey,
        from: Option<(Queue, Age)>,
        to: Option<(Queue, Age)>,
    ) {
        let tracks = self.shelf.get(key).tracks_wanted();
        match from {
            Some((Queue::Group(group), age)) => {
                // Without this platter another group may be the most loaded.
                self.mark_work(group);
                self.partitions.group_mut(group).leave(age, key, tracks);
            }
            Some((Queue::New(panel), age)) => {
                self.arrivals.leave(panel, (age, key));
            }
            None => {}
        }
        match to {
            Some((Queue::Group(index), age)) => {
                self.partitions.group_mut(index).join(age, key, tracks);
                self.mark_work(index);
            }
            Some((Queue::New(panel), age)) => {
                self.arrivals.join(panel, (age, key));
                self.mark_pace_stale();
                if self.policy.movement == Movement::NoShuttles {
                    // One group serves all panels.
                    self.mark_work(0);
                }
                self.mark_idle_groups(panel);
            }
            None => {}
        }
        self.shelf.set_queued(key, to);
    }

    /// Marks possible work for a group, for the groups that steal from it, or for its drives where
    /// no shuttles are needed.
    pub(crate) fn mark_work(&mut self, group: u16) {
        self.dirty.group(group);
        let partition = self.partitions.group(group);
        let (tracks, platters) = (partition.backlog_tracks(), partition.queue().len());
        if self.policy.steal_tracks.is_some_and(|threshold| tracks > threshold)
            || self.policy.help_platters.is_some_and(|least| platters >= usize::from(least))
        {
            self.mark_idle_groups(partition.panel());
        }
    }

    /// Marks the groups of a panel with an idle shuttle. A group whose shuttles are all on their
    /// way searches when the first comes back.
    pub(crate) fn mark_idle_groups(&mut self, panel: PanelIndex) {
        for index in self.partitions.groups_of_panel(panel) {
            let mut shuttles = self.partitions.group(index).shuttles().iter();
            if !self.dirty.is_group_marked(index)
                && shuttles.any(|at| self.fleet.get(*at).is_idle())
            {
                self.dirty.group(index);
            }
        }
    }

    /// Marks all groups if a platter lies in a spare slot though it has a home: any shuttle of its
    /// panel may bring it there.
    pub(crate) fn mark_if_displaced(&mut self, key: PlatterKey) {
        if self.shelf.is_displaced(key) {
            self.dirty.mark_all_groups();
        }
    }

    /// Marks everything that could do something for a changed platter.
    pub(crate) fn mark_platter(&mut self, key: PlatterKey) {
        match self.shelf.get(key).place() {
            Place::Drive(drive, _) => {
                self.dirty.drive(drive);
                for index in 0..self.partitions.groups_of_drive(drive).len() {
                    let group = self.partitions.groups_of_drive(drive)[index];
                    self.dirty.group(group);
                }
            }
            Place::Storage(slot) => {
                let group = self.partitions.group_of_slot(&self.floor, slot);
                self.dirty.group(group);
            }
            Place::Shuttle(shuttle) => {
                if let Some(group) = self.partitions.group_of_shuttle(shuttle) {
                    self.dirty.group(group);
                }
            }
            Place::EjectBay(_) => {}
        }
    }

    /// Ends the batch of a group at a read that just came and is due before others of the batch, so
    /// that no platter due later is taken for being nearer. With one objective for all reads there
    /// is no such read.
    pub(crate) fn end_batch_if_urgent(&mut self, key: PlatterKey, age: Age) {
        if let Some((Queue::Group(group), first)) = self.shelf.get(key).queued()
            && first == age
        {
            self.partitions.group_mut(group).end_batch(age);
        }
    }

    /// Returns when a platter has been held long enough to gather reads.
    pub(crate) fn hold_end(&self, key: PlatterKey) -> Instant {
        let Some(first) = self.shelf.get(key).first_read() else { return Instant::ZERO };
        let slack = first.age.due.since(first.arrived);
        let hold = slack.as_secs_f64() * self.policy.hold.get();
        first.arrived + fulgurite_units::Duration::from_secs_f64(hold.min(1e9))
    }

    /// Ends all requests for a platter. The platter may be forgotten by this.
    pub(crate) fn end_requests(&mut self, key: PlatterKey, fault: Fault, out: &mut Outbox<Output>) {
        let stage = self.shelf.get(key).stage();
        if let Stage::Unverified { request, panel, .. } | Stage::Storing { request, panel, .. } =
            stage
        {
            self.shelf.set_stage(key, Stage::Checked { panel });
            self.mark_pace_stale();
            self.finish(request, Outcome::Failed(fault), out);
        }
        self.end_reads(key, fault, out);
    }

    /// Ends the reads that wait for a platter. The platter may be forgotten by this.
    pub(crate) fn end_reads(&mut self, key: PlatterKey, fault: Fault, out: &mut Outbox<Output>) {
        while let Some(read) = self.shelf.get(key).first_read().copied() {
            self.remove_read(key, read.age);
            self.finish(read.request, Outcome::Failed(fault), out);
        }
        self.settle(key);
    }
}
