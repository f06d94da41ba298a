//! Removal of objects: at once if the tome is here, and deferred for a lost one until it is back.
//!
//! ```text
//! its tome answers     the tome forgets the name, then the set does
//! it is lost or away   a tombstone replaces the row with its location; with that its name is free
//!   member slots move  the new holder of its blocks does not get the name, so they are free
//!   it is back         it removes objects with tombstones before it lists what it has
//! ```
//!
//! Not here: what a start does with them (`start::tombstones`).

use std::sync::Arc;

use fulgurite_tome_core::TomeId;
use fulgurite_units::ErrorKind;
use futures::future::BoxFuture;

use super::choice::is_tome_unavailable;
use super::slot_mover::Loop;
use super::{TomeHandle, TomeSet, lock};
use crate::Result;
use crate::driver::{Done, Driver, Health, Reply, TomeRequest};
use crate::limits::REMOVALS_PER_POLL;

impl TomeSet {
    /// Removes an object; returns when its name is removed durably. For a tome that is lost or away
    /// the removal is recorded, and the object is gone for all clients.
    ///
    /// # Errors
    /// Kind `NotFound`, or `Unavailable` when its tome is busy.
    pub fn delete<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            loop {
                let tome = self.tome_of(name)?;
                let (names, owned_name) = (Arc::clone(&self.names), name.to_owned());
                let delete = |reply: Reply<()>| {
                    let removed = owned_name.clone();
                    let done = Done::new(move |done| {
                        if done.is_ok() {
                            lock(&names).remove(&removed);
                        }
                        // The requester may be gone.
                        let _ = reply.send(done);
                    });
                    TomeRequest::Delete { name: owned_name, done }
                };
                match self.call(tome, delete).await {
                    Ok(()) => return self.pieces.forget(tome, name).await,
                    Err(error) if is_tome_unavailable(&error) => {}
                    Err(error) => return Err(error),
                }
                // Its member slot moves before or after this, but not meanwhile.
                let _guard = self.choice.move_lock.lock().await;
                if self.tome_of(name)? != tome || self.is_working(tome) {
                    continue;
                }
                self.pieces.defer_removal(tome, name, self.choice.clock.now().as_millis()).await?;
                self.fail.pass("tomes-removal-kept");
                let mut names = lock(&self.names);
                names.remove(name);
                if matches!(self.tomes.get(&tome), Some(TomeHandle::Remote(_))) {
                    names.defer_removal(tome, name.to_owned());
                    self.mover.notify_removal();
                }
                return Ok(());
            }
        })
    }
}

impl TomeSet {
    /// Whether a tome of this process removes objects itself, perhaps since a moment ago: it has
    /// already processed the tombstones.
    fn is_working(&self, tome: TomeId) -> bool {
        let is_up = |driver: &Driver| driver.health() != Health::GivenUp;
        matches!(self.tomes.get(&tome), Some(TomeHandle::Live(driver)) if is_up(driver))
    }
}

impl Loop {
    /// Carries out deferred removals on tomes in other processes that answer again.
    pub(super) fn apply_tombstones(&self) -> Result<()> {
        let waiting = lock(&self.shared.names).first_tombstones(REMOVALS_PER_POLL);
        for (tome, deferred) in waiting {
            for name in deferred {
                if !self.shared.is_usable(tome) {
                    break;
                }
                let owned_name = name.clone();
                let delete = |reply: Reply<()>| {
                    // The requester waits for it.
                    let done = Done::new(move |done| drop(reply.send(done)));
                    TomeRequest::Delete { name: owned_name, done }
                };
                match self.request(tome, delete) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    // It does not answer after all, or is busy: it is retried.
                    Err(_) => break,
                }
                self.shared.pieces.delete_tombstone(tome, &name)?;
                lock(&self.shared.names).removal_done(tome, &name);
            }
        }
        Ok(())
    }
}
