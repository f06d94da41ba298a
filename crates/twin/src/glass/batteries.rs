//! The batteries of the shuttles: their levels, and what the drivers report.
//!
//! A level falls with each operation and with time, and rises with each charging step. It is
//! updated when an operation ends, and periodically for all shuttles, so that the levels of idle
//! ones are known too. A battery that is empty at the end of an operation went flat during it: the
//! operation never completes, and the shuttle is broken until the battery is replaced.

use fulgurite_glass_core::control::{Action, Event};
use fulgurite_units::{Duration, Instant, ShuttleIndex};

use crate::glass::energy;
use crate::glass::scenario::{Battery, Scenario};

/// Interval at which the levels of idle shuttles are polled.
pub(crate) const BATTERY_POLL_INTERVAL: Duration = Duration::from_secs(600);

/// The batteries of all shuttles; empty if they need no power.
#[derive(Debug)]
pub(crate) struct Batteries {
    model: Option<Battery>,
    levels: Vec<Level>,
    pub(crate) flat: u64,
    pub(crate) percent_min: u8,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    joules: f64,
    /// The time of the last update.
    updated_at: Instant,
    /// The last percentage reported.
    reported: Option<u8>,
}

impl Batteries {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let shape = &scenario.library;
        let model = scenario.battery;
        let joules = model.map_or(0.0, |battery| battery.capacity_kj * 1000.0);
        let count = model.map_or(0, |_| usize::from(shape.panels * shape.shuttles_per_panel));
        let levels = vec![Level { joules, updated_at: Instant::ZERO, reported: None }; count];
        Self { model, levels, flat: 0, percent_min: 100 }
    }

    /// Returns the battery model, if there is one.
    pub(crate) const fn model(&self) -> Option<&Battery> {
        self.model.as_ref()
    }

    /// Returns all shuttles.
    pub(crate) fn shuttles(&self) -> impl Iterator<Item = ShuttleIndex> + use<> {
        let count = u16::try_from(self.levels.len()).unwrap_or(u16::MAX);
        (0..count).map(ShuttleIndex::new)
    }

    /// Updates a level at the end of an operation, or after time has passed. Returns whether the
    /// battery is flat.
    pub(crate) fn passed(
        &mut self,
        shuttle: ShuttleIndex,
        now: Instant,
        operation: Option<(&Action, Instant)>,
    ) -> bool {
        let Some(battery) = self.model else { return false };
        let level = &mut self.levels[shuttle.as_usize()];
        level.joules -= battery.idle_w * now.since(level.updated_at).as_secs_f64();
        level.updated_at = now;
        match operation {
            Some((Action::Charge { .. }, started)) => {
                level.joules += battery.charging_w * now.since(started).as_secs_f64();
            }
            Some((action, _)) => level.joules -= battery.start_j * energy::for_action(action),
            None => {}
        }
        level.joules = level.joules.clamp(0.0, battery.capacity_kj * 1000.0);
        let flat = level.joules <= 0.0;
        self.flat += u64::from(flat);
        self.percent_min = self.percent_min.min(self.percent(shuttle));
        flat
    }

    /// Replaces a battery with a full one.
    pub(crate) fn swap(&mut self, shuttle: ShuttleIndex, now: Instant) {
        let Some(battery) = self.model else { return };
        let joules = battery.capacity_kj * 1000.0;
        self.levels[shuttle.as_usize()] = Level { joules, updated_at: now, reported: None };
    }

    /// Makes a repaired shuttle report its level again.
    pub(crate) fn report_again(&mut self, shuttle: ShuttleIndex) {
        if let Some(level) = self.levels.get_mut(shuttle.as_usize()) {
            level.reported = None;
        }
    }

    /// Returns the driver's report of a level, if it has changed.
    pub(crate) fn level_report(&mut self, shuttle: ShuttleIndex) -> Option<Event> {
        self.model?;
        let percent = self.percent(shuttle);
        let reported = self.levels[shuttle.as_usize()].reported.replace(percent);
        (reported != Some(percent)).then_some(Event::Battery { shuttle, percent })
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of 100 is between 0 and 100"
    )]
    fn percent(&self, shuttle: ShuttleIndex) -> u8 {
        let capacity = self.model.map_or(1.0, |battery| battery.capacity_kj * 1000.0);
        (self.levels[shuttle.as_usize()].joules / capacity * 100.0) as u8
    }
}
