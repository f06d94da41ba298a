//! Polls the power state of disks in standby without spinning them up: another program may have
//! spun one up, or it may have been unplugged.
//!
//! ```text
//! spins, not on our command     in the ledger, as an external spin-up; the controller has it spun
//!                               down, or uses it if its group spins
//! not present                   lost, until a poll finds it again
//! ```
//!
//! Disks that failed to spin up are tried again after their backoff, a few times. Otherwise a
//! transient failure would be shown until the next request for their group.
//!
//! A disk found spinning at the first poll after a start was left so, by a crash for example; it
//! does not count as a spin-up.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_disks::{Backend, Cause, Observed, PlaceId, Power, SpinUp};
use fulgurite_rack_core::{Event, OpKind, Part, PlaceState};
use fulgurite_tier::driver::Actor as _;
use fulgurite_units::{ByteCount, Instant, error_chain};

use super::super::{Needs, Task};
use super::{Loop, Message};
use crate::limits::{POLL_INTERVAL, PROBES_MAX};
use crate::work::disk_name;

/// When disks are polled, and the unexpected states that were found.
#[derive(Debug, Default)]
pub(super) struct Polls {
    next: Instant,
    is_under_way: bool,
    has_polled: bool,
    /// Disks that were found spinning and have not been spun down since.
    spinning: BTreeSet<PlaceId>,
    /// Those of them that are being spun down.
    spinning_down: BTreeSet<PlaceId>,
    /// Places found without a disk.
    absent: BTreeSet<PlaceId>,
    /// How often each disk was probed since it last came up.
    probes: BTreeMap<PlaceId, u32>,
}

impl Polls {
    /// When the next poll is due; none while one is running.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.is_under_way).then_some(self.next)
    }

    /// Records that a disk has spun down: if it is found spinning again, that is another spin-up.
    pub(super) fn mark_stopped(&mut self, place: PlaceId) {
        self.spinning.remove(&place);
        self.spinning_down.remove(&place);
    }

    /// Records that an externally spun-up disk is being spun down.
    pub(super) fn mark_spinning_down(&mut self, place: PlaceId) {
        self.spinning_down.insert(place);
    }

    /// Records that the spin-down failed.
    pub(super) fn mark_spin_down_failed(&mut self, place: PlaceId) {
        self.spinning_down.remove(&place);
    }

    /// Whether the disk is being spun down.
    pub(super) fn is_spinning_down(&self, place: PlaceId) -> bool {
        self.spinning_down.contains(&place)
    }

    /// Records that a disk came up.
    pub(super) fn mark_up(&mut self, place: PlaceId) {
        self.probes.remove(&place);
    }

    /// Records that another disk is in a place.
    pub(super) fn replaced(&mut self, place: PlaceId) {
        self.absent.remove(&place);
        self.probes.remove(&place);
        self.mark_stopped(place);
    }
}

impl Loop {
    /// Polls all disks in standby when it is time to.
    pub(super) fn poll(&mut self) {
        let now = self.core.now();
        if self.core.is_stopping() || self.polls.deadline().is_none_or(|due| now < due) {
            return;
        }
        self.polls.next = now + POLL_INTERVAL;
        self.probe();
        let ctx = &self.worker.ctx;
        let powers = ctx.guard.powers().into_iter();
        let asleep = powers.filter(|(_, power)| *power == Power::Standby).map(|(place, _)| place);
        let asleep: Vec<PlaceId> = asleep.filter(|&place| !ctx.places.is_given_up(place)).collect();
        if self.worker.backend.is_simulated() {
            let polled = poll_disks(&*self.worker.backend, &asleep);
            return self.handle_polled(polled);
        }
        let worker = self.worker.clone();
        let poll = move || poll_disks(&*worker.backend, &asleep);
        let spawned = self.core.spawn("rack-poll".to_owned(), poll, |polled| {
            Message::Polled(polled.unwrap_or_else(|panicked| {
                tracing::error!("a poll of the rack's disks {panicked}; this is a bug");
                Vec::new()
            }))
        });
        match spawned {
            Ok(()) => self.polls.is_under_way = true,
            // The next poll tries again.
            Err(error) => tracing::warn!("cannot start a thread to poll the rack's disks: {error}"),
        }
    }

    /// Spins up disks that failed to come up, once their backoff is over.
    fn probe(&mut self) {
        if self.failures.is_empty() {
            return;
        }
        // The controller ends a backoff when it learns the time.
        self.core.queue(Event::Timer);
        self.settle();
        for group in self.assignment.groups().collect::<Vec<_>>() {
            let is_due = |place: &&PlaceId| {
                let probes = self.polls.probes.get(place).copied().unwrap_or_default();
                self.failures.contains_key(place)
                    && self.core.controller.place_state(**place) == PlaceState::Asleep
                    && probes < PROBES_MAX
            };
            let places = self.assignment.places(group).iter();
            let places: Vec<PlaceId> = places.filter(is_due).copied().collect();
            if places.is_empty() || self.tasks.values().any(|waiting| waiting.group == group) {
                continue;
            }
            for place in &places {
                *self.polls.probes.entry(*place).or_default() += 1;
            }
            let enough = u32::try_from(places.len()).unwrap_or(u32::MAX);
            self.submit(Task {
                group,
                kind: OpKind::Scrub,
                bytes: ByteCount::ZERO,
                due: None,
                needs: Some(Needs { places, enough }),
                work: Box::new(|_| {}),
            });
        }
    }

    /// Handles the result of a poll.
    pub(super) fn handle_polled(&mut self, polled: Vec<(PlaceId, Observed)>) {
        self.polls.is_under_way = false;
        let is_first = !std::mem::replace(&mut self.polls.has_polled, true);
        for (place, observed) in polled {
            // We have spun it up meanwhile.
            if self.worker.ctx.guard.power(place) != Some(Power::Standby) {
                continue;
            }
            match observed {
                Observed::Turning => self.found_spinning(place, is_first),
                Observed::Standby => {
                    self.polls.mark_stopped(place);
                    if self.polls.absent.remove(&place) {
                        self.failures.remove(&place);
                        self.core.queue(Event::Back { part: Part::Place(place) });
                    }
                }
                Observed::Absent => {
                    if self.polls.absent.insert(place) {
                        self.lose(place, "no disk is in its place".to_owned());
                    }
                }
            }
        }
    }

    fn found_spinning(&mut self, place: PlaceId, is_first: bool) {
        if !self.polls.spinning.insert(place) {
            return;
        }
        let name = disk_name(place);
        if is_first {
            tracing::info!(%place, "{name} was spinning when the rack was opened");
        } else {
            tracing::warn!(%place, "another program spun up {name}");
            let group = Some(self.assignment.slot(place).group);
            let places = vec![place];
            let record =
                SpinUp { at: self.core.clock.now(), group, places, cause: Cause::External };
            if let Err(error) = self.ledger.record(record) {
                tracing::error!(%place, "cannot record the spin-up: {}", error_chain(&error));
            }
        }
        self.core.queue(Event::ExternalSpinUp { place });
    }
}

/// Returns the state of disks without spinning them up. Those that cannot be queried are left for
/// the next poll.
fn poll_disks(backend: &dyn Backend, places: &[PlaceId]) -> Vec<(PlaceId, Observed)> {
    let poll = |&place: &PlaceId| match backend.observe(place) {
        Ok(observed) => Some((place, observed)),
        Err(error) => {
            tracing::debug!(%place, "cannot poll a disk: {}", error_chain(&error));
            None
        }
    };
    places.iter().filter_map(poll).collect()
}
