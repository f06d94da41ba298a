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
    ExternalSpinUp,
    /// It was repaired or replaced.
    Repaired,
}

#[derive(Debug)]
struct Disk {
    stream: RandomStream,
    is_spinning: bool,
    spin_ups: u64,
    failures_left: u32,
    extra_delay: Duration,
    dead: bool,
    unplugged: bool,
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
        self.with_disk(place, |disk| {
            match fault {
                Fault::SpinUpFails(times) => disk.failures_left = times,
                Fault::Straggles(longer) => disk.extra_delay = longer,
                Fault::Dead => (disk.dead, disk.is_spinning) = (true, false),
                Fault::Pulled => (disk.unplugged, disk.is_spinning) = (true, false),
                Fault::ExternalSpinUp => disk.spin_up(),
                Fault::Repaired => {
                    (disk.dead, disk.unplugged, disk.failures_left) = (false, false, 0);
                    disk.extra_delay = Duration::ZERO;
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

    fn with_disk<T>(
        &self,
        place: PlaceId,
        action: impl FnOnce(&mut Disk) -> Result<T>,
    ) -> Result<T> {
        action(self.lock().get_mut(&place).ok_or(DisksError::UnknownPlace { place })?)
    }
}

impl Disk {
    fn new(seed: Seed, place: PlaceId) -> Self {
        Self {
            stream: seed.child(format!("disk {place}").as_bytes()).stream(),
            is_spinning: false,
            spin_ups: 0,
            failures_left: 0,
            extra_delay: Duration::ZERO,
            dead: false,
            unplugged: false,
        }
    }

    fn spin_up(&mut self) {
        if !self.is_spinning && !self.dead && !self.unplugged {
            self.is_spinning = true;
            self.spin_ups += 1;
        }
    }

    fn check_usable(&self, place: PlaceId) -> Result<()> {
        let reason = match (self.unplugged, self.dead) {
            (true, _) => "no disk is in its place (simulated)",
            (false, true) => "it does not respond (simulated)",
            (false, false) => return Ok(()),
        };
        Err(DisksError::SpinUp { place, reason: reason.to_owned() })
    }
}

impl Backend for Simulated {
    fn spin_up(&self, place: PlaceId) -> Result<Duration> {
        self.with_disk(place, |disk| {
            disk.check_usable(place)?;
            if disk.is_spinning {
                return Ok(Duration::ZERO);
            }
            if let Some(left) = disk.failures_left.checked_sub(1) {
                disk.failures_left = left;
                let reason = "it does not spin up (simulated)".to_owned();
                return Err(DisksError::SpinUp { place, reason });
            }
            disk.spin_up();
            Ok(self.scaled(self.times.spin_up.draw(&mut disk.stream)))
        })
    }

    fn mount(&self, place: PlaceId, waiting: u32) -> Result<Duration> {
        self.with_disk(place, |disk| {
            disk.check_usable(place)?;
            let extra_delay = std::mem::take(&mut disk.extra_delay);
            Ok(self.scaled(self.times.draw_mount(waiting, &mut disk.stream) + extra_delay))
        })
    }

    fn unmount(&self, place: PlaceId) -> Result<Duration> {
        self.with_disk(place, |disk| Ok(self.scaled(self.times.unmount.draw(&mut disk.stream))))
    }

    fn spin_down(&self, place: PlaceId) -> Result<Duration> {
        self.with_disk(place, |disk| {
            disk.is_spinning = false;
            Ok(Duration::ZERO)
        })
    }

    fn observe(&self, place: PlaceId) -> Result<Observed> {
        self.with_disk(place, |disk| {
            Ok(match (disk.unplugged || disk.dead, disk.is_spinning) {
                (true, _) => Observed::Absent,
                (false, true) => Observed::Turning,
                (false, false) => Observed::Standby,
            })
        })
    }

    fn health(&self, place: PlaceId) -> Result<Option<Health>> {
        self.with_disk(place, |disk| {
            Ok(disk.is_spinning.then(|| Health {
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
