//! The few ATA commands used to control a disk, and its responses, encapsulated in SCSI (SAT-4: ATA
//! PASS-THROUGH (16), ATA Status Return).
//!
//! Pure functions on bytes; access to the device is elsewhere.

/// An ATA command. None of them transfers user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Queries whether the platters spin, without changing that.
    CheckPowerMode,
    /// Flushes the write cache.
    FlushCache,
    /// Spins the platters down.
    StandbyImmediate,
    /// Verifies the first sector without a transfer, so the disk spins when it is done.
    ReadVerify,
    /// Spins up a disk that stays in standby at power-up (PUIS).
    SpinUpAfterPower,
    /// Reads 512 bytes of identification.
    Identify,
    /// Reads 512 bytes of SMART attributes.
    SmartData,
    /// Queries the SMART self-assessment.
    SmartStatus,
}

/// The command registers that are used here.
struct Task {
    command: u8,
    feature: u8,
    count: u8,
    lba: [u8; 3],
    has_data: bool,
}

impl Command {
    const fn task(self) -> Task {
        let (command, feature, count, lba, has_data) = match self {
            Self::CheckPowerMode => (0xe5, 0, 0, [0; 3], false),
            Self::FlushCache => (0xe7, 0, 0, [0; 3], false),
            Self::StandbyImmediate => (0xe0, 0, 0, [0; 3], false),
            Self::ReadVerify => (0x40, 0, 1, [0; 3], false),
            Self::SpinUpAfterPower => (0xef, 0x07, 0, [0; 3], false),
            Self::Identify => (0xec, 0, 1, [0; 3], true),
            // The signature required by every SMART command.
            Self::SmartData => (0xb0, 0xd0, 1, [0, 0x4f, 0xc2], true),
            Self::SmartStatus => (0xb0, 0xda, 0, [0, 0x4f, 0xc2], false),
        };
        Task { command, feature, count, lba, has_data }
    }

    /// Whether it returns 512 bytes of data.
    pub(super) const fn has_data(self) -> bool {
        self.task().has_data
    }

    /// Whether it may spin up the disk.
    pub(super) const fn can_spin_up(self) -> bool {
        match self {
            Self::ReadVerify | Self::SpinUpAfterPower => true,
            Self::CheckPowerMode
            | Self::FlushCache
            | Self::StandbyImmediate
            | Self::Identify
            | Self::SmartData
            | Self::SmartStatus => false,
        }
    }

    /// Encodes the command as a SCSI command block.
    pub(super) const fn block(self) -> [u8; 16] {
        let task = self.task();
        let mut block = [0; 16];
        block[0] = 0x85;
        // PIO data-in with its length in blocks given by the count, or no data with the registers
        // returned.
        (block[1], block[2]) = if task.has_data { (4 << 1, 0x0e) } else { (3 << 1, 0x20) };
        block[4] = task.feature;
        block[6] = task.count;
        [block[8], block[10], block[12]] = task.lba;
        // LBA addressing.
        block[13] = 0x40;
        block[14] = task.command;
        block
    }
}

/// Registers of a disk after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Registers {
    pub(super) error: u8,
    pub(super) status: u8,
    pub(super) count: u8,
    /// Low, middle and high byte.
    pub(super) lba: [u8; 3],
}

const STATUS_ERROR: u8 = 0x01;
const STATUS_FAULT: u8 = 0x20;

impl Registers {
    /// Returns the failure that the disk reports, if any.
    pub(super) fn failure(self) -> Option<String> {
        let (error, status) = (self.error, self.status);
        let fails = status & (STATUS_ERROR | STATUS_FAULT) != 0;
        fails.then(|| format!("it rejected the command (status {status:02x}h, error {error:02x}h)"))
    }
}

/// Result of a command that reached the disk or a device in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    /// The disk's registers.
    Registers(Registers),
    /// The bridge or controller does not support ATA pass-through.
    NotAta,
    /// Anything else: SCSI sense key, code and qualifier.
    Other(u8, u8, u8),
    /// No valid sense data.
    None,
}

/// Parses sense data in either of its two formats.
pub(super) fn read_sense(sense: &[u8]) -> Sense {
    let at = |index: usize| sense.get(index).copied().unwrap_or(0);
    let is_descriptor_format = match at(0) & 0x7f {
        0x70 | 0x71 => false,
        0x72 | 0x73 => true,
        _ => return Sense::None,
    };
    let (key, code, qualifier) =
        if is_descriptor_format { (at(1), at(2), at(3)) } else { (at(2), at(12), at(13)) };
    let key = key & 0x0f;
    if is_descriptor_format {
        if let Some(registers) = from_descriptor(sense) {
            return Sense::Registers(registers);
        }
    } else if (code, qualifier) == (0x00, 0x1d) {
        let lba = [at(9), at(10), at(11)];
        return Sense::Registers(Registers { error: at(3), status: at(4), count: at(6), lba });
    }
    // Illegal request: invalid command, or invalid field in it.
    if key == 0x05 && matches!(code, 0x20 | 0x24) {
        return Sense::NotAta;
    }
    Sense::Other(key, code, qualifier)
}

/// Returns the registers from an ATA status descriptor.
fn from_descriptor(sense: &[u8]) -> Option<Registers> {
    let mut rest = sense.get(8..)?;
    rest = rest.get(..usize::from(sense[7]).min(rest.len()))?;
    loop {
        let (&kind, &bytes) = (rest.first()?, rest.get(1)?);
        let (descriptor, behind) = rest.split_at_checked(2 + usize::from(bytes))?;
        if kind == 0x09 && bytes == 0x0c {
            let at = |index: usize| descriptor[index];
            let lba = [at(7), at(9), at(11)];
            return Some(Registers { error: at(3), status: at(13), count: at(5), lba });
        }
        rest = behind;
    }
}

/// Returns whether the platters spin, from the response to `CheckPowerMode`; none if the value is
/// not in the standard.
pub(super) const fn is_spinning(count: u8) -> Option<bool> {
    match count {
        // Standby, and Standby_y of the extended power conditions.
        0x00 | 0x01 => Some(false),
        // NV cache power mode: 40h spun down or spinning down, 41h spun up or spinning up.
        0x40 => Some(false),
        0x41 => Some(true),
        // Idle, Idle_a to Idle_c, active or idle.
        0x80..=0x83 | 0xff => Some(true),
        _ => None,
    }
}

/// Returns whether the self-assessment passed, from the response to `SmartStatus`.
pub(super) const fn passes(registers: Registers) -> Option<bool> {
    match registers.lba {
        [_, 0x4f, 0xc2] => Some(true),
        [_, 0xf4, 0x2c] => Some(false),
        _ => None,
    }
}
