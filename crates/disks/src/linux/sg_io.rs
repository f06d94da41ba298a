//! The system call that sends a command to a disk: `SG_IO` of Linux.
#![expect(unsafe_code, reason = "the call takes pointers; rustix has no safe wrapper")]

use std::ffi::c_void;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use fulgurite_units::Duration;
use rustix::ioctl::{Opcode, Updater, ioctl};

use super::ata::{Command, Registers, Sense, read_sense};
use super::sectors::Sector;
use crate::limits::{DEVICE_TIMEOUT, SPIN_UP_TIMEOUT};
use crate::{DisksError, Result};

/// Sends commands to devices.
pub(super) trait Transport: Send + Sync + fmt::Debug {
    /// Sends a command, and stores the data that it reads.
    fn execute(&self, device: &Path, command: Command, sector: &mut Sector) -> Result<Response>;
}

/// The host's response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Response {
    /// SCSI status: 0 is good, 2 means there is sense data.
    pub(super) status: u8,
    /// Host status: 0 if the command was delivered.
    pub(super) host_status: u16,
    /// Sense data, in its actual length.
    pub(super) sense: Vec<u8>,
}

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No device responds.
    Unreachable,
    /// It took too long.
    TimedOut,
    /// The bridge or controller does not pass on ATA commands.
    NotAta,
    /// An error reported by the disk or the host.
    Reported(String),
}

const HOST_NO_CONNECT: u16 = 1;
const HOST_BAD_TARGET: u16 = 4;
const HOST_TIME_OUT: u16 = 3;

impl Response {
    /// Returns the registers of the disk if they came back: a successful command without sense data
    /// has none.
    pub(super) fn registers(&self) -> Result<Option<Registers>, Refusal> {
        match self.host_status {
            0 => {}
            HOST_NO_CONNECT | HOST_BAD_TARGET => return Err(Refusal::Unreachable),
            HOST_TIME_OUT => return Err(Refusal::TimedOut),
            other => {
                return Err(Refusal::Reported(format!("the host reports status {other:02x}h")));
            }
        }
        match read_sense(&self.sense) {
            Sense::Registers(registers) => match registers.failure() {
                Some(failure) => Err(Refusal::Reported(failure)),
                None => Ok(Some(registers)),
            },
            Sense::NotAta => Err(Refusal::NotAta),
            // No medium, as in an empty card reader.
            Sense::Other(2, 0x3a, _) => Err(Refusal::Unreachable),
            Sense::Other(..) | Sense::None if self.status == 0 => Ok(None),
            Sense::Other(key, code, qualifier) => {
                let sense = format!("sense {key:x}h, {code:02x}h, {qualifier:02x}h");
                Err(Refusal::Reported(format!("it rejected the command ({sense})")))
            }
            Sense::None => {
                Err(Refusal::Reported(format!("it reports SCSI status {:02x}h", self.status)))
            }
        }
    }
}

/// The devices of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct SgIo;

const SG_IO: Opcode = 0x2285;
const NO_DATA: i32 = -1;
const FROM_DEVICE: i32 = -3;

/// `struct sg_io_hdr` of `scsi/sg.h`.
#[repr(C)]
#[derive(Debug)]
struct Header {
    interface_id: i32,
    direction: i32,
    command_bytes: u8,
    sense_bytes_max: u8,
    pieces: u16,
    data_bytes: u32,
    data: *mut c_void,
    command: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack_id: i32,
    user: *mut c_void,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_bytes: u8,
    host_status: u16,
    driver_status: u16,
    residue: i32,
    duration_ms: u32,
    info: u32,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Header>() == 88, "the size of the kernel's struct");

impl Transport for SgIo {
    fn execute(&self, device: &Path, command: Command, sector: &mut Sector) -> Result<Response> {
        let file = open(device)?;
        let block = command.block();
        let mut sense = [0_u8; 64];
        let (direction, data, data_bytes) = if command.has_data() {
            (FROM_DEVICE, sector.as_mut_ptr().cast(), 512)
        } else {
            (NO_DATA, std::ptr::null_mut(), 0)
        };
        let mut header = Header {
            interface_id: i32::from(b'S'),
            direction,
            command_bytes: 16,
            sense_bytes_max: 64,
            pieces: 0,
            data_bytes,
            data,
            command: block.as_ptr(),
            sense: sense.as_mut_ptr(),
            timeout_ms: millis(if command.can_spin_up() {
                SPIN_UP_TIMEOUT
            } else {
                DEVICE_TIMEOUT
            }),
            flags: 0,
            pack_id: 0,
            user: std::ptr::null_mut(),
            status: 0,
            masked_status: 0,
            message_status: 0,
            sense_bytes: 0,
            host_status: 0,
            driver_status: 0,
            residue: 0,
            duration_ms: 0,
            info: 0,
        };
        // SAFETY: `SG_IO` reads and writes one `sg_io_hdr`, which `Header` is.
        let call = unsafe { Updater::<'_, SG_IO, Header>::new(&mut header) };
        // SAFETY: the pointers in the header are those of `block`, `sense` and `sector`, which
        // outlive the call and have the lengths given in it.
        let called = unsafe { ioctl(&file, call) };
        called.map_err(|errno| refused(device, errno.into()))?;
        let sense_bytes = usize::from(header.sense_bytes).min(sense.len());
        Ok(Response {
            status: header.status,
            host_status: header.host_status,
            sense: sense[..sense_bytes].to_vec(),
        })
    }
}

/// Opens a device read-only and non-blocking. The system probes a device again when it is closed
/// after being open for writing, which spins it up. Non-blocking avoids a check for a medium.
fn open(device: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    options.read(true).custom_flags(nonblocking);
    #[expect(clippy::disallowed_methods, reason = "opening the device does not spin up the disk")]
    options.open(device).map_err(|error| refused(device, error))
}

fn refused(device: &Path, error: std::io::Error) -> DisksError {
    let device = device.to_owned();
    let reason = if error.kind() == ErrorKind::NotFound {
        "the device does not exist".to_owned()
    } else if error.kind() == ErrorKind::PermissionDenied {
        "commands to disks need root, or the capability CAP_SYS_RAWIO".to_owned()
    } else if error.raw_os_error() == Some(rustix::io::Errno::NOTTY.raw_os_error()) {
        "it does not accept disk commands".to_owned()
    } else {
        error.to_string()
    };
    DisksError::NoDevice { device, reason }
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_nanos() / 1_000_000).unwrap_or(u32::MAX)
}
