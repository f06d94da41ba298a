//! Simulated disks: directories do not spin, so this models their delays and failures. Labeled as
//! simulated wherever it shows.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fulgurite_units::{ByteCount, Duration, RandomStream, Ratio, Seed};
use serde::{Deserialize, Serialize};

use crate::{Backend, DisksError, Health, Observed, Pace, PlaceId, Result, Times};

/// Fault injected into a simulated disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// This many spin-ups fail, and then they succeed.
    SpinUpFails(u32),
    /// The next mount takes this much longer, before scaling.
    Straggles(Duration),
    /// It never spins again, and does not respond.
    Dead,
    /// It was unplugged.
    Pulled,
    /// Another program spins it up (external spin-up).
    ForeignWake,
    /// It was repaired or replaced.
    Repaired,
}

#[derive(Debug)]
struct Disk {
    stream: RandomStream,
    turns: bool,
    spin_ups: u64,
    failing: u32,
    straggles: Duration,
    dead: bool,
    pulled: bool,
}

/// Disks with delays drawn from a seed, a stream per disk.
#[derive(Debug)]
pub struct Simulated {
    times: Times,
    scale: Ratio,
    seed: Seed,
    pace: Option<Pace>,
    disks: Mutex<BTreeMap<PlaceId, Disk>>,
}

impl Simulated {
    /// Creates disks in standby. Delays are multiplied by `scale`; zero means none.
    #[must_use]
    pub fn new(
        places: impl IntoIterator<Item = PlaceId>,
        times: Times,
        scale: Ratio,
        seed: Seed,
    ) -> Self {
        let disks = places.into_iter().map(|place| (place, Disk::new(seed, place))).collect();
        Self { times, scale, seed, pace: None, disks: Mutex::new(disks) }
    }

    /// Limits the read speed to this pace, at the same scale. Otherwise the disks are as fast as
    /// their directories.
    #[must_use]
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = Some(pace);
        self
    }

    /// Injects a fault into a disk.
    ///
    /// # Errors
    /// When there is no such place.
    pub fn inject(&self, place: PlaceId, fault: Fault) -> Result<()> {
        self.with(place, |disk| {
            match fault {
                Fault::SpinUpFails(times) => disk.failing = times,
                Fault::Straggles(longer) => disk.straggles = longer,
                Fault::Dead => (disk.dead, disk.turns) = (true, false),
                Fault::Pulled => (disk.pulled, disk.turns) = (true, false),
                Fault::ForeignWake => disk.wake(),
                Fault::Repaired => {
                    (disk.dead, disk.pulled, disk.failing) = (false, false, 0);
                    disk.straggles = Duration::ZERO;
                }
            }
            Ok(())
        })
    }

    /// Adds a place with a disk in standby; an existing one stays as it is.
    pub fn add(&self, place: PlaceId) {
        self.lock().entry(place).or_insert_with(|| Disk::new(self.seed, place));
    }

    fn scaled(&self, time: Duration) -> Duration {
        Duration::from_secs_f64(time.as_secs_f64() * self.scale.get())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PlaceId, Disk>> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, place: PlaceId, act: impl FnOnce(&mut Disk) -> Result<T>) -> Result<T> {
        act(self.lock().get_mut(&place).ok_or(DisksError::NoPlace { place })?)
    }
}

impl Disk {
    fn new(seed: Seed, place: PlaceId) -> Self {
        Self {
            stream: seed.child(format!("disk {place}").as_bytes()).stream(),
            turns: false,
            spin_ups: 0,
            failing: 0,
            straggles: Duration::ZERO,
            dead: false,
            pulled: false,
        }
    }

    fn wake(&mut self) {
        if !self.turns && !self.dead && !self.pulled {
            self.turns = true;
            self.spin_ups += 1;
        }
    }

    fn refuse_if_out(&self, place: PlaceId) -> Result<()> {
        let reason = match (self.pulled, self.dead) {
            (true, _) => "nothing is in its place (simulated)",
            (false, true) => "it does not answer (simulated)",
            (false, false) => return Ok(()),
        };
        Err(DisksError::SpinUp { place, reason: reason.to_owned() })
    }
}

impl Backend for Simulated {
    fn spin_up(&self, place: PlaceId) -> Result<Duration> {
        self.with(place, |disk| {
            disk.refuse_if_out(place)?;
            if disk.turns {
                return Ok(Duration::ZERO);
            }
            if let Some(left) = disk.failing.checked_sub(1) {
                disk.failing = left;
                let reason = "it was told to, and stands still (simulated)".to_owned();
                return Err(DisksError::SpinUp { place, reason });
            }
            disk.wake();
            Ok(self.scaled(self.times.spin_up.draw(&mut disk.stream)))
        })
    }

    fn mount(&self, place: PlaceId, waiting: u32) -> Result<Duration> {
        self.with(place, |disk| {
            disk.refuse_if_out(place)?;
            let straggles = std::mem::take(&mut disk.straggles);
            Ok(self.scaled(self.times.draw_mount(waiting, &mut disk.stream) + straggles))
        })
    }

    fn unmount(&self, place: PlaceId) -> Result<Duration> {
        self.with(place, |disk| Ok(self.scaled(self.times.unmount.draw(&mut disk.stream))))
    }

    fn spin_down(&self, place: PlaceId) -> Result<Duration> {
        self.with(place, |disk| {
            disk.turns = false;
            Ok(Duration::ZERO)
        })
    }

    fn observe(&self, place: PlaceId) -> Result<Observed> {
        self.with(place, |disk| {
            Ok(match (disk.pulled || disk.dead, disk.turns) {
                (true, _) => Observed::Absent,
                (false, true) => Observed::Turning,
                (false, false) => Observed::Standby,
            })
        })
    }

    fn health(&self, place: PlaceId) -> Result<Option<Health>> {
        self.with(place, |disk| {
            Ok(disk.turns.then(|| Health {
                model: Some("simulated disk".to_owned()),
                passes: Some(true),
                spin_ups: Some(disk.spin_ups),
                ..Health::default()
            }))
        })
    }

    fn pace(&self) -> Option<Pace> {
        let scale = Some(self.scale.get()).filter(|scale| *scale > 0.0)?;
        let Pace { seek, bytes_per_second } = self.pace?;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes per second are below 2^53, and stay above 0"
        )]
        let rate = (bytes_per_second.get() as f64 / scale) as u64;
        Some(Pace { seek: self.scaled(seek), bytes_per_second: ByteCount::new(rate) })
    }

    fn is_simulated(&self) -> bool {
        true
    }
}
