//! Reads from the disks which rack they belong to, when no index knows it.

use fulgurite_disks::{Backend, Cause, DisksError, Guard, LedgerFile, PlaceId, Power, SpinUp};
use fulgurite_units::{Duration, RackId};

use super::{RackOptions, RackStore};
use crate::work::read_identity;
use crate::{RackError, Result};

impl RackStore {
    /// Asks one disk after the other which rack it belongs to, until one answers; none if none
    /// does. Each is spun up for this and down again. Simulated delays are skipped.
    ///
    /// # Errors
    /// When the ledger cannot be written; no disk is spun up without it. A disk that does not come
    /// up or has no identity is skipped.
    pub fn identify(options: &RackOptions) -> Result<Option<RackId>> {
        let directory = &options.directory;
        std::fs::create_dir_all(directory).map_err(RackError::io("make", directory))?;
        let (mut ledger, _) = LedgerFile::open(&directory.join("ledger"))?;
        let guard = Guard::new();
        for (&place, root) in &options.roots {
            guard.add(place, root.clone());
            let (at, places) = (options.clock.now(), vec![place]);
            ledger.record(SpinUp { at, group: None, places, cause: Cause::Init })?;
            let answer = query_disk(&*options.backend, &guard, place);
            spin_down(&*options.backend, &guard, place);
            match answer {
                Ok(Some(rack)) => return Ok(Some(rack)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%place, "cannot read which rack a disk belongs to: {error}")
                }
            }
        }
        Ok(None)
    }
}

fn query_disk(backend: &dyn Backend, guard: &Guard, place: PlaceId) -> Result<Option<RackId>> {
    guard.turn(place, Power::SpinningUp)?;
    let _: Duration = backend.spin_up(place)?;
    let _: Duration = backend.mount(place, 0)?;
    guard.turn(place, Power::Active)?;
    let lease = guard.acquire(place)?;
    match read_identity(&lease) {
        Ok(identity) => Ok(identity.map(|identity| identity.rack)),
        Err(fault) => Err(RackError::WrongDisk { detail: fault.to_string() }),
    }
}

/// Spins down a disk from whatever state it reached.
fn spin_down(backend: &dyn Backend, guard: &Guard, place: PlaceId) {
    let down = || -> Result<(), DisksError> {
        if guard.power(place) == Some(Power::Active) {
            guard.turn(place, Power::Unmounting)?;
            backend.unmount(place)?;
        }
        backend.spin_down(place)?;
        guard.turn(place, Power::Standby)
    };
    if let Err(error) = down() {
        tracing::warn!(%place, "cannot spin a disk down: {error}");
    }
}
