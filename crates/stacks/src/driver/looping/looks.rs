//! Disks that sleep are looked at, and not woken: another program may have woken one, or somebody
//! taken it away.
//!
//! ```text
//! turns, and none of ours wants it     in the ledger, as woken by others; the controller has it
//!                                      put down, or takes it in where its group spins
//! is not there                         lost, until a look finds it again
//! ```
//!
//! Disks that did not come up are woken after their rest, a few times, to see whether they do now:
//! else what was wrong for a moment would be shown until somebody wants their group.
//!
//! At the first look after a start what turns was left turning, by a crash say; that is no wake.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_disks::{Backend, Cause, Observed, PlaceId, Power, Wake};
use fulgurite_rack::{Event, OpKind, Part, PlaceState};
use fulgurite_units::{ByteCount, Instant, error_chain};

use super::super::{Needs, Task};
use super::{Loop, Message};
use crate::limits::{LOOK_PERIOD, PROBES_MAX};
use crate::work::disk_name;

/// When disks are looked at, and what was found that is not as it should be.
#[derive(Debug, Default)]
pub(super) struct Looks {
    next: Instant,
    is_under_way: bool,
    has_looked: bool,
    /// Disks that were found turning, and were not put down since.
    turning: BTreeSet<PlaceId>,
    /// Those of them that are being put down.
    sinking: BTreeSet<PlaceId>,
    /// Places that no disk was in.
    gone: BTreeSet<PlaceId>,
    /// How often disks were woken to see whether they come up, since they last did.
    probes: BTreeMap<PlaceId, u32>,
}

impl Looks {
    /// When the next one is due; none while one is under way.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.is_under_way).then_some(self.next)
    }

    /// A disk stands still: the next time that it turns is another.
    pub(super) fn stands_still(&mut self, place: PlaceId) {
        self.turning.remove(&place);
        self.sinking.remove(&place);
    }

    /// A disk that others woke is put down from now on.
    pub(super) fn sinks(&mut self, place: PlaceId) {
        self.sinking.insert(place);
    }

    /// It was not put down.
    pub(super) fn does_not_sink(&mut self, place: PlaceId) {
        self.sinking.remove(&place);
    }

    /// Whether it is being put down.
    pub(super) fn is_sinking(&self, place: PlaceId) -> bool {
        self.sinking.contains(&place)
    }

    /// It came up.
    pub(super) fn came_up(&mut self, place: PlaceId) {
        self.probes.remove(&place);
    }

    /// Another disk is in a place.
    pub(super) fn replaced(&mut self, place: PlaceId) {
        self.gone.remove(&place);
        self.probes.remove(&place);
        self.stands_still(place);
    }
}

impl Loop {
    /// Looks at all disks that sleep, when it is time to.
    pub(super) fn look(&mut self) {
        let now = self.clock.passed();
        if self.is_stopping || self.looks.deadline().is_none_or(|due| now < due) {
            return;
        }
        self.looks.next = now + LOOK_PERIOD;
        self.probe();
        let shop = &self.hand.shop;
        let powers = shop.guard.powers().into_iter();
        let asleep = powers.filter(|(_, power)| *power == Power::Standby).map(|(place, _)| place);
        let asleep: Vec<PlaceId> = asleep.filter(|&at| !shop.places.is_given_up(at)).collect();
        if self.hand.backend.is_simulated() {
            let looked = look_at(&*self.hand.backend, &asleep);
            return self.looked(looked);
        }
        let (hand, inbox) = (self.hand.clone(), self.inbox.clone());
        let look = move || drop(inbox.send(Message::Looked(look_at(&*hand.backend, &asleep))));
        match std::thread::Builder::new().name("rack-look".to_owned()).spawn(look) {
            Ok(_) => self.looks.is_under_way = true,
            // It is tried again when the next is due.
            Err(error) => tracing::warn!("the rack's disks are not looked at: {error}"),
        }
    }

    /// Has disks woken that did not come up, when they have rested.
    fn probe(&mut self) {
        if self.troubles.is_empty() {
            return;
        }
        // Rests are over by the time that the controller was told last.
        self.tell(Event::Timer);
        self.settle();
        for group in self.assignment.groups().collect::<Vec<_>>() {
            let is_due = |place: &&PlaceId| {
                let probes = self.looks.probes.get(place).copied().unwrap_or_default();
                self.troubles.contains_key(place)
                    && self.rack.place_state(**place) == PlaceState::Asleep
                    && probes < PROBES_MAX
            };
            let places = self.assignment.places(group).iter();
            let places: Vec<PlaceId> = places.filter(is_due).copied().collect();
            if places.is_empty() || self.tasks.values().any(|waiting| waiting.group == group) {
                continue;
            }
            for place in &places {
                *self.looks.probes.entry(*place).or_default() += 1;
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

    /// What a look has found.
    pub(super) fn looked(&mut self, looked: Vec<(PlaceId, Observed)>) {
        self.looks.is_under_way = false;
        let is_first = !std::mem::replace(&mut self.looks.has_looked, true);
        for (place, observed) in looked {
            // Somebody of ours wanted it meanwhile.
            if self.hand.shop.guard.power(place) != Some(Power::Standby) {
                continue;
            }
            match observed {
                Observed::Turning => self.found_turning(place, is_first),
                Observed::Standby => {
                    self.looks.stands_still(place);
                    if self.looks.gone.remove(&place) {
                        self.troubles.remove(&place);
                        self.tell(Event::Back { part: Part::Place(place) });
                    }
                }
                Observed::Absent => {
                    if self.looks.gone.insert(place) {
                        self.lose(place, "no disk is in its place".to_owned());
                    }
                }
            }
        }
    }

    fn found_turning(&mut self, place: PlaceId, is_first: bool) {
        if !self.looks.turning.insert(place) {
            return;
        }
        let name = disk_name(place);
        if is_first {
            tracing::info!(%place, "{name} turned when the rack was opened");
        } else {
            tracing::warn!(%place, "another program woke {name}");
            let group = Some(self.assignment.seat(place).group);
            let places = vec![place];
            let wake = Wake { at: self.clock.now(), group, places, cause: Cause::Foreign };
            if let Err(error) = self.ledger.note(wake) {
                tracing::error!(%place, "that is not in the ledger: {}", error_chain(&error));
            }
        }
        self.tell(Event::Woken { place });
    }
}

/// What disks do, without waking them. What cannot be asked is left for the next look.
fn look_at(backend: &dyn Backend, places: &[PlaceId]) -> Vec<(PlaceId, Observed)> {
    let look = |&place: &PlaceId| match backend.observe(place) {
        Ok(observed) => Some((place, observed)),
        Err(error) => {
            tracing::debug!(%place, "a disk is not looked at: {}", error_chain(&error));
            None
        }
    };
    places.iter().filter_map(look).collect()
}
