//! Invariants that hold after every event. A violation is a bug of this crate, or of a driver that
//! answers commands it was not given, so each is an assertion.
//!
//! Each invariant is recomputed from places and operations alone.

use crate::event::{OpKind, Side};
use crate::places::SpinState;
use crate::queue::Waiting;
use crate::rack::Rack;
use crate::side_queue::SideQueue;
use crate::state::{Class, Phase};
use crate::{GroupId, Members};

impl Rack {
    pub(crate) fn check_invariants(&self) {
        self.places.check();
        self.check_groups();
        for (index, class) in self.classes.iter().enumerate() {
            self.check_class(index, class);
            self.check_queues(class);
        }
    }

    /// Checks that groups agree with the states of their disks.
    fn check_groups(&self) {
        for (id, group) in (0..).map(GroupId::new).zip(&self.groups) {
            let members_where = |predicate: &dyn Fn(usize) -> bool| -> Members {
                (0..group.places.len()).filter(|position| predicate(*position)).collect()
            };
            let spin_state = |position: usize| self.places.disk(group.places[position]).spin_state;
            assert_eq!(
                group.up,
                members_where(&|at| spin_state(at) == SpinState::Spinning),
                "group {id} tracks its disks that are up"
            );
            let spinning_up = members_where(&|at| spin_state(at) == SpinState::SpinningUp);
            assert_eq!(group.spinning_up, spinning_up, "group {id} tracks its disks that spin up");
            let spinning_down = members_where(&|at| spin_state(at) == SpinState::SpinningDown);
            assert_eq!(
                group.spinning_down, spinning_down,
                "group {id} tracks its disks that spin down"
            );
            let lost = members_where(&|at| self.places.disk(group.places[at]).is_lost());
            assert_eq!(group.lost, lost, "group {id} tracks its lost disks");
            assert_eq!(
                group.first.intersection(spinning_up),
                group.first,
                "group {id} waits only for disks that spin up"
            );
            let is_on = self.classes[group.class].phase.group() == Some(id);
            assert!(
                is_on || group.up.union(spinning_up).is_empty(),
                "only the current group of a class spins"
            );
        }
    }

    fn check_class(&self, index: usize, class: &Class) {
        assert!(
            class.running.len() <= self.policy.at_once,
            "the limit of running operations holds"
        );
        let runs_in = match class.phase {
            Phase::Up { group, .. } => Some(group),
            Phase::Stopped | Phase::SpinningUp { .. } | Phase::SpinningDown { .. } => None,
        };
        for running in &class.running {
            assert_eq!(
                Some(running.op.group),
                runs_in,
                "operations run only in the group that is up"
            );
        }
        let inits = class.running.iter().filter(|of| of.op.kind == OpKind::Init).count();
        assert!(inits == 0 || class.running.len() == 1, "an initialization runs alone");
        let pending = class.groups.iter().filter(|of| self.groups[of.as_usize()].init.is_some());
        assert_eq!(pending.count(), class.inits.len(), "the pending initializations are listed");
        let is_open = runs_in.is_some() && class.running.len() < self.policy.at_once;
        let view = self.view(index);
        let is_wanted =
            [Side::Client, Side::Background].iter().any(|side| class.wants(*side, &view));
        let is_spinning_up = class
            .phase
            .group()
            .is_some_and(|of| !self.groups[of.as_usize()].spinning_up.is_empty());
        assert!(
            !(is_open && is_wanted) || is_spinning_up || !class.running.is_empty(),
            "no class has work that could start now"
        );
    }

    /// Checks that no operation is pushed back beyond its bound and that each group is served in
    /// order, or that each operation is at its deadline.
    fn check_queues(&self, class: &Class) {
        for (side_queue, limit) in [
            (&class.client, self.policy.client_queue),
            (&class.background, self.policy.background_queue),
        ] {
            assert!(side_queue.len() <= limit, "the limit of waiting operations holds");
            let queue = match side_queue {
                SideQueue::Batches(queue, _) => queue,
                SideQueue::Due(queue) => {
                    queue.check();
                    let is_at_home =
                        |(number, of): (usize, &Waiting)| class.groups[number] == of.op.group;
                    assert!(
                        queue.iter().all(is_at_home),
                        "each group's queue holds only its operations"
                    );
                    continue;
                }
            };
            let mut last = vec![None; class.groups.len()];
            let (mut count, mut bytes) = (0, 0);
            for (number, waiting, is_in_reach) in queue.iter() {
                assert!(is_in_reach, "operation {} is pushed back too far", waiting.op.id);
                assert_eq!(
                    class.groups[number], waiting.op.group,
                    "a batch holds operations of one group"
                );
                assert!(
                    last[number] <= Some(waiting.since),
                    "operations of a group keep their order"
                );
                last[number] = Some(waiting.since);
                count += 1;
                bytes += waiting.op.bytes.get();
            }
            assert_eq!(
                (queue.len(), queue.bytes().get()),
                (count, bytes),
                "the queue's counters match its operations"
            );
        }
    }
}
