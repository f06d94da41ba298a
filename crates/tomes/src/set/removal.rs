//! Objects that are removed: at once of a tome that is here, and of a lost one when it is back.
//!
//! ```text
//! its tome answers     the tome forgets the name, then the set does
//! it is lost or away   a row says that it is to be removed, in place of the one that says where
//!                      it lies; with that its name is free
//!   its seats move     who has its blocks is not told the name, so they are free
//!   it is back         it removes what rows say before anybody is told what it has
//! ```
//!
//! Not here: what a start does of it (`start::removed`).

use std::sync::Arc;

use fulgurite_tome::TomeId;
use fulgurite_units::ErrorKind;
use futures::future::BoxFuture;

use super::choice::is_of_lost;
use super::moving::Loop;
use super::{Seat, TomeSet, lock};
use crate::Result;
use crate::driver::{Ask, Done, Driver, Health, Reply};
use crate::limits::REMOVALS_AT_ONCE;

impl TomeSet {
    /// Removes an object; returns when its name is gone for good. One of a tome that is lost or
    /// away is kept as to be removed, and gone for whoever asks.
    ///
    /// # Errors
    /// Kind `NotFound`, or `Unavailable` when its tome has too much to do.
    pub fn delete<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            loop {
                let tome = self.tome_of(name)?;
                let (names, of) = (Arc::clone(&self.names), name.to_owned());
                let delete = |reply: Reply<()>| {
                    let named = of.clone();
                    let done = Done::new(move |done| {
                        if done.is_ok() {
                            lock(&names).remove(&named);
                        }
                        // Who asked may have gone.
                        let _ = reply.send(done);
                    });
                    Ask::Delete { name: of, done }
                };
                match self.asked(tome, delete).await {
                    Ok(()) => return self.pieces.forget(tome, name).await,
                    Err(error) if is_of_lost(&error) => {}
                    Err(error) => return Err(error),
                }
                // Its seat moves before or after, and not meanwhile.
                let _still = self.choice.still.lock().await;
                if self.tome_of(name)? != tome || self.works(tome) {
                    continue;
                }
                self.pieces.put_off(tome, name, self.choice.clock.now().as_millis()).await?;
                self.fail.pass("tomes-removal-kept");
                let mut names = lock(&self.names);
                names.remove(name);
                if matches!(self.tomes.get(&tome), Some(Seat::Remote(_))) {
                    names.put_off(tome, name.to_owned());
                    self.mover.put_off();
                }
                return Ok(());
            }
        })
    }
}

impl TomeSet {
    /// Whether a tome of this process removes objects itself, perhaps again since a moment: it has
    /// heard already of those that were to be removed.
    fn works(&self, tome: TomeId) -> bool {
        let is_up = |driver: &Driver| driver.health() != Health::GivenUp;
        matches!(self.tomes.get(&tome), Some(Seat::Live(driver)) if is_up(driver))
    }
}

impl Loop {
    /// Has tomes in other processes that answer again remove what was put off.
    pub(super) fn remove_put_off(&self) -> Result<()> {
        let waiting = lock(&self.shared.names).first_put_off(REMOVALS_AT_ONCE);
        for (tome, some) in waiting {
            for name in some {
                if !self.shared.is_usable(tome) {
                    break;
                }
                let of = name.clone();
                let delete = |reply: Reply<()>| {
                    // Who asked waits for it.
                    let done = Done::new(move |done| drop(reply.send(done)));
                    Ask::Delete { name: of, done }
                };
                match self.ask(tome, delete) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    // It does not answer after all, or has too much to do: it is asked again.
                    Err(_) => break,
                }
                self.shared.pieces.removed(tome, &name)?;
                lock(&self.shared.names).removed(tome, &name);
            }
        }
        Ok(())
    }
}
