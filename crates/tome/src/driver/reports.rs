//! Reports of a tome: its status, and events for subscribers.
//!
//! Not here: the subscribers ([`crate::watch`]).

use fulgurite_disks::{Cause, CauseKind, Power, Totals};
use fulgurite_tome_core::metadata::{Row, Scrubbed};
use fulgurite_units::UnixTime;

use super::event_loop::Loop;
use super::recovery::Failure;
use super::status::TomeStatus;
use crate::Result;
use crate::watch::TomeEvent;

/// Last reported values, so that none is reported twice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastReported {
    unprotected: u64,
    /// Passes of the full scrub, and hundredths of the present one.
    scrubbed: (u64, u64),
}

impl Loop {
    /// Records and reports a new power state of the disk.
    pub(super) fn set_power(&self, power: Power, cause: Option<Cause>) -> Result<()> {
        self.parts.guard.turn(self.place(), power)?;
        let tome = self.id();
        self.parts.events.send(|| TomeEvent::Power { tome, power, cause });
        Ok(())
    }

    /// Reports committed rows.
    pub(super) fn publish_committed(&mut self, rows: &[Row]) {
        if !self.parts.events.has_subscribers() {
            return;
        }
        let tome = self.id();
        let is_change = |row: &Row| matches!(row, Row::Pending { .. } | Row::Confirmed { .. });
        if rows.iter().any(is_change) {
            let left = self.tome.unprotected();
            let bytes = left.bytes.get();
            if std::mem::replace(&mut self.last_reported.unprotected, bytes) != bytes {
                let seconds = left.age.as_secs_f64();
                self.parts.events.send(|| TomeEvent::Unprotected { tome, bytes, seconds });
            }
        }
        let blocks = self.tome.metadata().layout().blocks();
        for row in rows {
            let Row::Scrubbed(Scrubbed { next, passes, .. }) = *row else { continue };
            let scrubbed = (passes, next * 100 / blocks.max(1));
            if std::mem::replace(&mut self.last_reported.scrubbed, scrubbed) != scrubbed {
                self.parts.events.send(|| TomeEvent::Scrubbed { tome, passes, next, blocks });
            }
        }
    }

    /// Returns the status.
    pub(super) fn status(&self) -> TomeStatus {
        let (metadata, at) = (self.tome.metadata(), self.parts.clock.now());
        let totals = self.parts.ledger.ledger().disk_totals(self.place());
        let count = |kind: CauseKind| totals.map_or(0, |totals| totals.count(kind));
        TomeStatus {
            tome: self.id(),
            power: self.power(),
            token: self.parts.gate.token_of(self.id()),
            objects: metadata.objects().count() as u64,
            unprotected: self.tome.unprotected(),
            scrubbed: metadata.scrubbed(),
            scrub_began: Some(UnixTime::from_millis(
                self.tome.scrub_began().as_nanos() / 1_000_000,
            )),
            to_scrub: self.tome.to_scrub(),
            blocks: metadata.layout().blocks(),
            spin_ups: totals.map_or(0, Totals::lifetime_count),
            spin_ups_by_cause: CauseKind::ALL.map(count),
            spin_ups_last_day: totals.map_or(0, |totals| totals.day(at)),
            spending: self.tome.spending(),
            healed: self.healed,
            bad: self.tome.bad_blocks(),
            failure: self.failure.as_ref().map(Failure::describe),
            away: None,
            alarms: self.alarms(),
        }
    }
}
