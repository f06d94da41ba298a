//! Invariants that hold after every event. A violation is a bug of this crate, or of a driver that
//! answers commands it was not given, so each is an assertion.
//!
//! Each invariant is recomputed from places and operations alone.

use crate::event::{OpKind, Side};
use crate::line::Line;
use crate::places::Motion;
use crate::queue::Waiting;
use crate::rack::Rack;
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
            let those = |is: &dyn Fn(usize) -> bool| -> Members {
                (0..group.places.len()).filter(|position| is(*position)).collect()
            };
            let motion = |position: usize| self.places.spot(group.places[position]).motion;
            assert_eq!(group.up, those(&|at| motion(at) == Motion::Spinning), "group {id} is up");
            let rising = those(&|at| motion(at) == Motion::Rising);
            assert_eq!(group.rising, rising, "group {id} comes up");
            let sinking = those(&|at| motion(at) == Motion::Sinking);
            assert_eq!(group.sinking, sinking, "group {id} goes down");
            let lost = those(&|at| self.places.spot(group.places[at]).is_lost());
            assert_eq!(group.lost, lost, "group {id} knows what it lost");
            assert_eq!(group.first.and(rising), group.first, "group {id} waits for what rises");
            let is_on = self.classes[group.class].phase.group() == Some(id);
            assert!(is_on || group.up.or(rising).is_empty(), "only the group that is wanted spins");
        }
    }

    fn check_class(&self, index: usize, class: &Class) {
        assert!(class.running.len() <= self.policy.at_once, "no more than may run at once");
        let runs_in = match class.phase {
            Phase::Up { group, .. } => Some(group),
            Phase::Still | Phase::Rising { .. } | Phase::Sinking { .. } => None,
        };
        for running in &class.running {
            assert_eq!(Some(running.op.group), runs_in, "what runs does so in a group that is up");
        }
        let inits = class.running.iter().filter(|of| of.op.kind == OpKind::Init).count();
        assert!(inits == 0 || class.running.len() == 1, "the first look is alone");
        let pending = class.groups.iter().filter(|of| self.groups[of.as_usize()].init.is_some());
        assert_eq!(pending.count(), class.inits.len(), "first looks are known");
        let is_open = runs_in.is_some() && class.running.len() < self.policy.at_once;
        let look = self.look(index);
        let is_wanted =
            [Side::Client, Side::Background].iter().any(|side| class.wants(*side, &look));
        let rises =
            class.phase.group().is_some_and(|of| !self.groups[of.as_usize()].rising.is_empty());
        assert!(
            !(is_open && is_wanted) || rises || !class.running.is_empty(),
            "what can be done is done"
        );
    }

    /// Checks that no operation is pushed back beyond its bound and that each group is served in
    /// order, or that each operation is at its deadline.
    fn check_queues(&self, class: &Class) {
        for (line, limit) in [
            (&class.client, self.policy.client_queue),
            (&class.background, self.policy.background_queue),
        ] {
            assert!(line.len() <= limit, "a queue is no longer than it may be");
            let queue = match line {
                Line::Batches(queue, _) => queue,
                Line::Due(queue) => {
                    queue.check();
                    let is_at_home =
                        |(number, of): (usize, &Waiting)| class.groups[number] == of.op.group;
                    assert!(queue.iter().all(is_at_home), "lanes are of one group");
                    continue;
                }
            };
            let mut last = vec![None; class.groups.len()];
            let (mut count, mut bytes) = (0, 0);
            for (number, waiting, is_in_reach) in queue.iter() {
                assert!(is_in_reach, "{} is pushed back too far", waiting.op.id);
                assert_eq!(class.groups[number], waiting.op.group, "batches are of one group");
                assert!(last[number] <= Some(waiting.since), "a group is served in order");
                last[number] = Some(waiting.since);
                count += 1;
                bytes += waiting.op.bytes.get();
            }
            assert_eq!((queue.len(), queue.bytes().get()), (count, bytes), "a queue counts");
        }
    }
}
