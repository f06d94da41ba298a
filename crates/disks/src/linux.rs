//! Real disks on Linux: SATA, or anything that takes ATA commands over SCSI.
//!
//! ```text
//! LinuxDisks --Command--> SgIo --ATA PASS-THROUGH (16)--> the device --sense--> registers
//!      '------ where that does not get through ------> smartctl, for queries only
//! ```
//!
//! Tested against recorded sense data and recorded JSON: no machine that builds the project has a
//! disk that may be spun down. It does not format, and it sets no timers of a disk's own (switch
//! them off: they know nothing of the archive). It also does not configure power-up in standby,
//! which the firmware or the controller may not survive.

mod ata;
mod sectors;
mod sg_io;
mod smartctl;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command as Program;

use fulgurite_units::Duration;
use serde::{Deserialize, Serialize};

use crate::{Backend, DisksError, Health, Observed, PlaceId, Result};
use ata::{Command, Registers};
use sg_io::{Refusal, SgIo, Transport};

/// Device and mount point of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinuxDisk {
    /// Its device, by a stable name: below `/dev/disk/by-id` or `/dev/disk/by-path`.
    pub device: PathBuf,
    /// Its mount point in `/etc/fstab`, passed to `mount` and `umount`; none if nothing is to be
    /// mounted.
    #[serde(default)]
    pub mount: Option<PathBuf>,
    /// Its device type for `smartctl` (`-d`), for disks that our commands do not get through to.
    #[serde(default)]
    pub smartctl: Option<String>,
}

/// The disks of this machine.
#[derive(Debug)]
pub struct LinuxDisks {
    disks: BTreeMap<PlaceId, LinuxDisk>,
    transport: Box<dyn Transport>,
}

impl LinuxDisks {
    /// Creates the backend without querying any disk.
    #[must_use]
    pub fn new(disks: BTreeMap<PlaceId, LinuxDisk>) -> Self {
        Self { disks, transport: Box::new(SgIo) }
    }

    fn disk(&self, place: PlaceId) -> Result<&LinuxDisk> {
        self.disks.get(&place).ok_or(DisksError::UnknownPlace { place })
    }

    fn send(
        &self,
        disk: &LinuxDisk,
        command: Command,
        sector: &mut sectors::Sector,
    ) -> Result<Result<Option<Registers>, Refusal>> {
        Ok(self.transport.execute(&disk.device, command, sector)?.registers())
    }

    /// Sends a command that reads no data.
    fn send_command(&self, disk: &LinuxDisk, command: Command) -> Result<Option<Registers>> {
        self.send(disk, command, &mut [0; 512])?
            .map_err(|error| error.into_disks_error(&disk.device))
    }

    /// Reads the identification, which does not spin up the disk.
    fn identity(&self, disk: &LinuxDisk) -> Result<sectors::Sector> {
        let mut sector = [0; 512];
        let response = self.send(disk, Command::Identify, &mut sector)?;
        response.map_err(|error| error.into_disks_error(&disk.device))?;
        Ok(sector)
    }

    /// Queries the power state; uses `smartctl` if our command does not get through.
    fn query_power(&self, disk: &LinuxDisk) -> Result<(Observed, Option<Health>)> {
        match self.send(disk, Command::CheckPowerMode, &mut [0; 512])? {
            Ok(Some(registers)) => match ata::is_spinning(registers.count) {
                Some(true) => Ok((Observed::Turning, None)),
                Some(false) => Ok((Observed::Standby, None)),
                None => Err(device(
                    disk,
                    format!("it reports the unknown power mode {:02x}h", registers.count),
                )),
            },
            Ok(None) => Err(device(disk, "it does not report whether it spins".to_owned())),
            Err(Refusal::Unreachable) => Ok((Observed::Absent, None)),
            Err(Refusal::NotAta) => match &disk.smartctl {
                Some(kind) => smartctl::query(&disk.device, kind),
                None => Err(Refusal::NotAta.into_disks_error(&disk.device)),
            },
            Err(error) => Err(error.into_disks_error(&disk.device)),
        }
    }

    /// Queries the health of a spinning disk.
    fn query_health(&self, disk: &LinuxDisk) -> Result<Health> {
        let mut health = sectors::identity(&self.identity(disk)?);
        let mut sector = [0; 512];
        // A disk may lack SMART, or have it disabled.
        if let Ok(_registers) = self.send(disk, Command::SmartData, &mut sector)? {
            sectors::add_counts(&mut health, &sector);
        }
        if let Ok(Some(registers)) = self.send(disk, Command::SmartStatus, &mut sector)? {
            health.passes = ata::passes(registers);
        }
        Ok(health)
    }
}

impl Backend for LinuxDisks {
    fn spin_up(&self, place: PlaceId) -> Result<Duration> {
        let disk = self.disk(place)?;
        let attempt = || {
            if sectors::waits_for_spin_up(&self.identity(disk)?) {
                self.send_command(disk, Command::SpinUpAfterPower)?;
            }
            self.send_command(disk, Command::ReadVerify)
        };
        match attempt() {
            Ok(_registers) => Ok(Duration::ZERO),
            Err(DisksError::Device { reason, .. }) => Err(DisksError::SpinUp { place, reason }),
            Err(error) => Err(error),
        }
    }

    fn mount(&self, place: PlaceId, _waiting: u32) -> Result<Duration> {
        run(self.disk(place)?, "mount")
    }

    fn unmount(&self, place: PlaceId) -> Result<Duration> {
        run(self.disk(place)?, "umount")
    }

    fn spin_down(&self, place: PlaceId) -> Result<Duration> {
        let disk = self.disk(place)?;
        self.send_command(disk, Command::FlushCache)?;
        self.send_command(disk, Command::StandbyImmediate)?;
        Ok(Duration::ZERO)
    }

    fn observe(&self, place: PlaceId) -> Result<Observed> {
        match self.query_power(self.disk(place)?) {
            Ok((observed, _)) => Ok(observed),
            // The device node of an unplugged disk disappears.
            Err(DisksError::NoDevice { device, .. }) if !device.exists() => Ok(Observed::Absent),
            Err(error) => Err(error),
        }
    }

    fn health(&self, place: PlaceId) -> Result<Option<Health>> {
        let disk = self.disk(place)?;
        match self.query_power(disk)? {
            (Observed::Turning, None) => self.query_health(disk).map(Some),
            (_, health) => Ok(health),
        }
    }

    fn is_simulated(&self) -> bool {
        false
    }
}

impl Refusal {
    fn into_disks_error(self, at: &Path) -> DisksError {
        let device = at.to_owned();
        let reason = match self {
            Self::Unreachable => "no device responds".to_owned(),
            Self::TimedOut => "it did not respond in time".to_owned(),
            Self::NotAta => {
                "its bridge or controller passes no ATA commands; set its type for smartctl"
                    .to_owned()
            }
            Self::Reported(message) => message,
        };
        DisksError::Device { device, reason }
    }
}

fn device(disk: &LinuxDisk, reason: String) -> DisksError {
    DisksError::Device { device: disk.device.clone(), reason }
}

/// Runs `mount` or `umount`, which look up the rest in `/etc/fstab`.
fn run(disk: &LinuxDisk, program: &str) -> Result<Duration> {
    let Some(mount) = &disk.mount else { return Ok(Duration::ZERO) };
    let failed = |reason: String| device(disk, format!("{program} {}: {reason}", mount.display()));
    let output =
        Program::new(program).arg(mount).output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(Duration::ZERO);
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(failed(message.lines().next().unwrap_or("it failed without a message").to_owned()))
}
