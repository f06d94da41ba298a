//! Which rack disks say they are of, when there is no index that knows it.

use fulgurite_disks::{Backend, Cause, DisksError, Guard, LedgerFile, PlaceId, Power, Wake};
use fulgurite_units::{Duration, RackId};

use super::{RackOptions, RackStore};
use crate::work::read_identity;
use crate::{Result, StacksError};

impl RackStore {
    /// Asks disks which rack they are of, one after the other, until one says it; none when none
    /// does. Each is woken for it, and put down again. Simulated disks are not waited for.
    ///
    /// # Errors
    /// When the ledger cannot be written, without which no disk is woken. A disk that does not come
    /// up or says nothing is passed over.
    pub fn identify(options: &RackOptions) -> Result<Option<RackId>> {
        let directory = &options.directory;
        std::fs::create_dir_all(directory).map_err(StacksError::io("make", directory))?;
        let (mut ledger, _) = LedgerFile::open(&directory.join("ledger"))?;
        let guard = Guard::new();
        for (&place, root) in &options.roots {
            guard.add(place, root.clone());
            let (at, places) = (options.clock.now(), vec![place]);
            ledger.note(Wake { at, group: None, places, cause: Cause::Init })?;
            let said = ask(&*options.backend, &guard, place);
            put_down(&*options.backend, &guard, place);
            match said {
                Ok(Some(rack)) => return Ok(Some(rack)),
                Ok(None) => {}
                Err(error) => tracing::warn!(%place, "a disk does not say whose it is: {error}"),
            }
        }
        Ok(None)
    }
}

fn ask(backend: &dyn Backend, guard: &Guard, place: PlaceId) -> Result<Option<RackId>> {
    guard.turn(place, Power::SpinningUp)?;
    let _: Duration = backend.spin_up(place)?;
    let _: Duration = backend.mount(place, 0)?;
    guard.turn(place, Power::Active)?;
    let lease = guard.enter(place)?;
    match read_identity(&lease) {
        Ok(identity) => Ok(identity.map(|identity| identity.rack)),
        Err(fault) => Err(StacksError::WrongDisk { what: fault.to_string() }),
    }
}

/// Puts a disk down, however far it came.
fn put_down(backend: &dyn Backend, guard: &Guard, place: PlaceId) {
    let down = || -> Result<(), DisksError> {
        if guard.power(place) == Some(Power::Active) {
            guard.turn(place, Power::Unmounting)?;
            backend.unmount(place)?;
        }
        backend.spin_down(place)?;
        guard.turn(place, Power::Standby)
    };
    if let Err(error) = down() {
        tracing::warn!(%place, "a disk is not put down: {error}");
    }
}
