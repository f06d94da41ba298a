//! Turns disks up and down, each on a thread of its own, and says when one is ready.
//!
//! ```text
//! wake ---> ledger, synced --> SpinningUp --> turns --> mounted --> Active    told: Up
//!                                  |            (again, a few times)
//!                                  '--------> put down --> Standby            told: UpFailed
//! put_down ------------------> Unmounting --> unmounted --> Standby           told: Down
//! look ---> asks disks that sleep what they do, and wakes none                told: Woken, Gone
//! ```
//!
//! A real disk takes ten seconds to answer, and the disks of a group have to turn up together: so a
//! thread each, for as long as it takes. Simulated disks answer at once, and their times are waited
//! here, by the clock that is handed in. Which disks turn is not decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};

use fulgurite_units::{Clock, Duration, error_chain};

use crate::limits::SPIN_UP_TRIES_MAX;
use crate::{
    Backend, Cause, DisksError, Guard, Ledger, LedgerFile, Observed, PlaceId, Power, Result, Wake,
};

/// What became of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turned {
    /// It is active.
    Up,
    /// It does not turn, after some tries; it stands still, or is out.
    UpFailed {
        /// Why.
        why: String,
    },
    /// It stands still.
    Down,
    /// It may still turn; it can be put down again.
    DownFailed {
        /// Why.
        why: String,
    },
    /// It was found turning, and none of ours woke it.
    Woken,
    /// It was found gone, and is absent.
    Gone,
}

/// Disks that can be told to turn. Dropped, it waits for its threads, and leaves the disks as they
/// are.
#[derive(Debug)]
pub struct Spindles {
    shared: Arc<Shared>,
    threads: Mutex<BTreeMap<PlaceId, JoinHandle<()>>>,
}

struct Shared {
    guard: Guard,
    backend: Arc<dyn Backend>,
    ledger: Mutex<LedgerFile>,
    clock: Clock,
    told: Box<dyn Fn(PlaceId, Turned) + Send + Sync>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stops: bool,
    /// Disks that a thread has.
    busy: BTreeSet<PlaceId>,
    /// Disks that others woke, and that turn as far as is known.
    foreign: BTreeSet<PlaceId>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("backend", &self.backend).finish_non_exhaustive()
    }
}

impl Spindles {
    /// Disks that `guard` has, turned by `backend`. Whatever becomes of one is `told`, on its
    /// thread, which may not wait.
    #[must_use]
    pub fn new(
        guard: Guard,
        backend: Arc<dyn Backend>,
        ledger: LedgerFile,
        clock: Clock,
        told: impl Fn(PlaceId, Turned) + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            guard,
            backend,
            ledger: Mutex::new(ledger),
            clock,
            told: Box::new(told),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let listener: Weak<Shared> = Arc::downgrade(&shared);
        shared.clock.listen(move || {
            if let Some(shared) = listener.upgrade() {
                let _state = shared.state();
                shared.changed.notify_all();
            }
        });
        Self { shared, threads: Mutex::default() }
    }

    /// Has disks turn up, `waiting` operations being in the queue. The wake is noted first; those
    /// of its disks that do not stand still are left out of it.
    ///
    /// # Errors
    /// When the ledger cannot be written: nothing is woken then.
    pub fn wake(&self, mut wake: Wake, waiting: u32) -> Result<()> {
        wake.places.retain(|&place| self.begin(place, Power::SpinningUp).is_ok());
        if wake.places.is_empty() {
            return Ok(());
        }
        let places = wake.places.clone();
        if let Err(error) = self.shared.ledger().note(wake) {
            for place in places {
                self.shared.turn(place, Power::Standby);
                self.shared.state().busy.remove(&place);
            }
            return Err(error);
        }
        for place in places {
            self.spawn(place, move |shared| shared.up(place, waiting));
        }
        Ok(())
    }

    /// Has a disk stand still: one that is active, one that was not put down when it should, or one
    /// that another program woke.
    ///
    /// # Errors
    /// When somebody uses it, or it does something else.
    pub fn put_down(&self, place: PlaceId) -> Result<()> {
        let power = self.shared.guard.power(place).ok_or(DisksError::NoPlace { place })?;
        match power {
            Power::Active => self.begin(place, Power::Unmounting)?,
            Power::Unmounting | Power::Standby | Power::Failed => self.take(place)?,
            from @ (Power::SpinningUp | Power::Absent | Power::Unclean) => {
                return Err(DisksError::NoStep { place, from, to: Power::Unmounting });
            }
        }
        let is_mounted = matches!(power, Power::Active | Power::Unmounting);
        self.spawn(place, move |shared| shared.down(place, is_mounted));
        Ok(())
    }

    /// Looks at each disk that sleeps, and wakes none. What another program woke is noted once, and
    /// told; so is what is gone.
    ///
    /// # Errors
    /// When the ledger cannot be written. What cannot be asked is left for the next look.
    pub fn look(&self) -> Result<()> {
        let shared = &self.shared;
        for (place, power) in shared.guard.powers() {
            if power != Power::Standby || self.take(place).is_err() {
                continue;
            }
            let observed = shared.backend.observe(place);
            shared.state().busy.remove(&place);
            match observed {
                Ok(Observed::Turning) => self.found_turning(place)?,
                Ok(Observed::Standby) => {
                    shared.state().foreign.remove(&place);
                }
                Ok(Observed::Absent) => {
                    shared.turn(place, Power::Absent);
                    (shared.told)(place, Turned::Gone);
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Who woke what.
    pub fn ledger<T>(&self, read: impl FnOnce(&Ledger) -> T) -> T {
        read(self.shared.ledger().ledger())
    }

    /// A new disk is in a place: its spin-ups count from zero, and it stands still.
    ///
    /// # Errors
    /// When the ledger cannot be written, or the place's disk was not out.
    pub fn replaced(&self, place: PlaceId) -> Result<()> {
        self.shared.guard.turn(place, Power::Standby)?;
        self.shared.ledger().replaced(place)
    }

    /// A disk is at nobody's hands, and goes a step.
    fn begin(&self, place: PlaceId, to: Power) -> Result<()> {
        self.take(place)?;
        let begun = self.shared.guard.turn(place, to);
        if begun.is_err() {
            self.shared.state().busy.remove(&place);
        }
        begun
    }

    fn take(&self, place: PlaceId) -> Result<()> {
        let mut state = self.shared.state();
        if !state.stops && state.busy.insert(place) {
            return Ok(());
        }
        Err(DisksError::InUse { place, leases: 1 })
    }

    fn found_turning(&self, place: PlaceId) -> Result<()> {
        let is_known = !self.shared.state().foreign.insert(place);
        if is_known {
            return Ok(());
        }
        let (at, places) = (self.shared.clock.now(), vec![place]);
        let noted =
            self.shared.ledger().note(Wake { at, group: None, places, cause: Cause::Foreign });
        (self.shared.told)(place, Turned::Woken);
        noted
    }

    /// A thread for a disk that was taken. There are as many as disks, at most.
    fn spawn(&self, place: PlaceId, work: impl FnOnce(&Shared) -> Turned + Send + 'static) {
        let shared = Arc::clone(&self.shared);
        let run = move || {
            let turned = work(&shared);
            shared.state().busy.remove(&place);
            (shared.told)(place, turned);
        };
        #[expect(clippy::disallowed_methods, reason = "a real disk blocks until it is ready")]
        let spawned = Builder::new().name(format!("disk {place}")).spawn(run);
        match spawned {
            Ok(thread) => {
                let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
                threads.insert(place, thread);
            }
            Err(error) => {
                let why = format!("there is no thread for it: {error}");
                let is_up = self.shared.guard.power(place) == Some(Power::SpinningUp);
                if is_up {
                    self.shared.turn(place, Power::Standby);
                }
                self.shared.state().busy.remove(&place);
                let failed =
                    if is_up { Turned::UpFailed { why } } else { Turned::DownFailed { why } };
                (self.shared.told)(place, failed);
            }
        }
    }
}

impl Drop for Spindles {
    fn drop(&mut self) {
        self.shared.state().stops = true;
        self.shared.changed.notify_all();
        let threads =
            std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner));
        for thread in threads.into_values() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn up(&self, place: PlaceId, waiting: u32) -> Turned {
        let mut why = String::new();
        for _ in 0..SPIN_UP_TRIES_MAX {
            match self.try_up(place, waiting) {
                Ok(()) => {
                    return match self.guard.turn(place, Power::Active) {
                        Ok(()) => Turned::Up,
                        // It was given up meanwhile.
                        Err(error) => Turned::UpFailed { why: error_chain(&error) },
                    };
                }
                Err(error) => why = error_chain(&error),
            }
            if self.state().stops {
                break;
            }
        }
        // It may turn, and not be mounted.
        let _ = self.backend.spin_down(place);
        let is_gone = matches!(self.backend.observe(place), Ok(Observed::Absent));
        self.turn(place, if is_gone { Power::Absent } else { Power::Standby });
        Turned::UpFailed { why }
    }

    fn try_up(&self, place: PlaceId, waiting: u32) -> Result<()> {
        self.wait(self.backend.spin_up(place)?);
        self.wait(self.backend.mount(place, waiting)?);
        Ok(())
    }

    fn down(&self, place: PlaceId, is_mounted: bool) -> Turned {
        let down = || {
            if is_mounted {
                self.wait(self.backend.unmount(place)?);
            }
            self.wait(self.backend.spin_down(place)?);
            Ok(())
        };
        match down() {
            Ok(()) => {
                self.state().foreign.remove(&place);
                if is_mounted {
                    self.turn(place, Power::Standby);
                }
                Turned::Down
            }
            Err::<_, DisksError>(error) => Turned::DownFailed { why: error_chain(&error) },
        }
    }

    /// A step that somebody may have gone before, who gave the disk up.
    fn turn(&self, place: PlaceId, to: Power) {
        let _ = self.guard.turn(place, to);
    }

    /// Waits so long, or until nobody wants it any more.
    fn wait(&self, time: Duration) {
        let until = self.clock.passed() + time;
        let mut state = self.state();
        while !state.stops && self.clock.passed() < until {
            state = match self.clock.sleep_until(until) {
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left.into());
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ledger(&self) -> MutexGuard<'_, LedgerFile> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
