//! Tests against recorded sense data, recorded JSON, and sectors built from the standard; and
//! without a disk.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;

use fulgurite_units::{ByteCount, ErrorKind};

use super::ata::{Command, Sense, is_spinning, passes, read_sense};
use super::sectors::Sector;
use super::sg_io::{Response, Transport};
use super::{LinuxDisk, LinuxDisks, smartctl};
use crate::{Backend as _, Observed, PlaceId, Result};

/// A spinning disk, queried by hdparm for its power mode, as recorded by a user of Linux 5.16.
const FIXED_ACTIVE: &str = "f0 00 01 00 50 40 ff 0a 80 00 00 00 00 1d 00 00 00 00 00 00 00 00";
/// The same in descriptor format, from a kernel log.
const DESCRIPTOR_ACTIVE: &str = "72 01 00 1d 00 00 00 0e 09 0c 00 00 00 ff 00 00 00 00 00 00 40 50";
/// A disk in standby, from a kernel log.
const DESCRIPTOR_STANDBY: &str =
    "72 01 00 1d 00 00 00 0e 09 0c 00 00 00 00 00 00 00 00 00 00 e0 50";
/// A disk whose self-assessment passes, from a kernel log.
const SMART_PASSES: &str = "72 01 00 1d 00 00 00 0e 09 0c 00 00 00 00 00 00 00 4f 00 c2 e0 50";
/// Response of a bridge without pass-through: illegal request, invalid command.
const NOT_ATA: &str = "70 00 05 00 00 00 00 0a 00 00 00 00 20 00 00 00 00 00";
/// A command aborted by the disk: status 51h, error 04h.
const ABORTED: &str = "72 0b 00 00 00 00 00 0e 09 0c 00 04 00 00 00 00 00 00 00 00 40 51";

fn bytes(hex: &str) -> Vec<u8> {
    hex.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn sense(hex: &str) -> Response {
    Response { status: 2, host_status: 0, sense: bytes(hex) }
}

#[test]
fn recorded_sense_data_yields_the_spin_state() {
    for (hex, expected) in [
        (FIXED_ACTIVE, Some(true)),
        (DESCRIPTOR_ACTIVE, Some(true)),
        (DESCRIPTOR_STANDBY, Some(false)),
    ] {
        let Sense::Registers(registers) = read_sense(&bytes(hex)) else { panic!("{hex}") };
        assert_eq!((is_spinning(registers.count), registers.status), (expected, 0x50), "{hex}");
        assert_eq!(registers.failure(), None);
    }
    let Sense::Registers(registers) = read_sense(&bytes(SMART_PASSES)) else { panic!() };
    assert_eq!(passes(registers), Some(true));
    let Sense::Registers(registers) = read_sense(&bytes(ABORTED)) else { panic!() };
    assert_eq!(registers.failure().unwrap(), "it rejected the command (status 51h, error 04h)");
    assert_eq!(read_sense(&bytes(NOT_ATA)), Sense::NotAta);
}

/// Data from devices cannot be trusted.
#[test]
fn malformed_sense_data_yields_no_registers() {
    for hex in [FIXED_ACTIVE, DESCRIPTOR_ACTIVE, SMART_PASSES] {
        let whole = bytes(hex);
        for length in 0..13 {
            let read = read_sense(&whole[..length]);
            assert!(!matches!(read, Sense::Registers(_)), "{length} bytes of {hex}: {read:?}");
        }
    }
    let mut endless = bytes(DESCRIPTOR_ACTIVE);
    (endless[8], endless[9]) = (0x00, 0x00);
    assert_eq!(read_sense(&endless), Sense::Other(1, 0, 0x1d));
    assert_eq!(read_sense(&[0xff; 32]), Sense::None);
}

#[test]
fn commands_encode_as_in_the_standard() {
    let hex = |command: Command| {
        let bytes = command.block().map(|byte| format!("{byte:02x}"));
        bytes.join(" ")
    };
    let expected = [
        (Command::CheckPowerMode, "85 06 20 00 00 00 00 00 00 00 00 00 00 40 e5 00"),
        (Command::FlushCache, "85 06 20 00 00 00 00 00 00 00 00 00 00 40 e7 00"),
        (Command::StandbyImmediate, "85 06 20 00 00 00 00 00 00 00 00 00 00 40 e0 00"),
        (Command::ReadVerify, "85 06 20 00 00 00 01 00 00 00 00 00 00 40 40 00"),
        (Command::SpinUpAfterPower, "85 06 20 00 07 00 00 00 00 00 00 00 00 40 ef 00"),
        (Command::Identify, "85 08 0e 00 00 00 01 00 00 00 00 00 00 40 ec 00"),
        (Command::SmartData, "85 08 0e 00 d0 00 01 00 00 00 4f 00 c2 40 b0 00"),
        (Command::SmartStatus, "85 06 20 00 da 00 00 00 00 00 4f 00 c2 40 b0 00"),
    ];
    for (command, block) in expected {
        assert_eq!(hex(command), block, "{command:?}");
    }
}

/// Returns recorded answers in the expected order, and notes the commands.
#[derive(Debug, Default)]
struct Recorded {
    answers: Mutex<VecDeque<(Command, Response, Option<Sector>)>>,
}

impl Transport for Recorded {
    fn execute(&self, _: &Path, command: Command, sector: &mut Sector) -> Result<Response> {
        let (expected, answer, read) = self.answers.lock().unwrap().pop_front().unwrap();
        assert_eq!(command, expected);
        if let Some(read) = read {
            *sector = read;
        }
        Ok(answer)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let left = self.answers.lock().unwrap().len();
        assert!(left == 0 || std::thread::panicking(), "{left} recorded answers were not used");
    }
}

fn recorded(answers: Vec<(Command, Response, Option<Sector>)>) -> LinuxDisks {
    let disk = LinuxDisk { device: "/dev/recorded".into(), mount: None, smartctl: None };
    let answers = Mutex::new(answers.into());
    LinuxDisks {
        disks: [(PlaceId::new(0), disk)].into(),
        transport: Box::new(Recorded { answers }),
    }
}

const PLACE: PlaceId = PlaceId::new(0);

/// Builds an identification sector: "MODEL X", "SERIAL 1", 1,000 sectors of 4,096 bytes.
fn identity(word_2: u16) -> Sector {
    let mut sector = [0; 512];
    let mut put = |index: usize, word: u16| {
        sector[2 * index..2 * index + 2].copy_from_slice(&word.to_le_bytes());
    };
    put(2, word_2);
    for (first, text) in [(27, "MODEL X "), (10, "SERIAL 1")] {
        for (index, pair) in text.as_bytes().chunks(2).enumerate() {
            put(first + index, u16::from(pair[0]) << 8 | u16::from(pair[1]));
        }
    }
    put(100, 1000);
    put(106, 0x5000);
    put(117, 2048);
    sector
}

/// Builds a sector of attributes from ids and raw values.
fn counts(attributes: &[(u8, u64)]) -> Sector {
    let mut sector = [0; 512];
    for (attribute, &(number, raw)) in sector[2..362].chunks_exact_mut(12).zip(attributes) {
        attribute[0] = number;
        attribute[5..11].copy_from_slice(&raw.to_le_bytes()[..6]);
    }
    let sum = sector.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte));
    sector[511] = 0_u8.wrapping_sub(sum);
    sector
}

#[test]
fn standby_disk_gets_only_power_mode_queries() {
    let asleep = || (Command::CheckPowerMode, sense(DESCRIPTOR_STANDBY), None);
    let disks = recorded(vec![asleep(), asleep()]);
    assert_eq!(disks.observe(PLACE).unwrap(), Observed::Standby);
    assert_eq!(disks.health(PLACE).unwrap(), None);
}

#[test]
fn spinning_disk_reports_its_health() {
    // The temperature has its extremes in the upper bytes, the hours have milliseconds.
    let data = counts(&[(4, 90), (193, 300), (5, 8), (197, 2), (194, 0x0030_001e_0024), (9, 7)]);
    let disks = recorded(vec![
        (Command::CheckPowerMode, sense(FIXED_ACTIVE), None),
        (Command::Identify, Response::default(), Some(identity(0))),
        (Command::SmartData, Response::default(), Some(data)),
        (Command::SmartStatus, sense(SMART_PASSES), None),
    ]);
    let health = disks.health(PLACE).unwrap().unwrap();
    assert_eq!(
        (health.model.as_deref(), health.serial.as_deref()),
        (Some("MODEL X"), Some("SERIAL 1"))
    );
    assert_eq!(health.bytes, Some(ByteCount::new(4_096_000)));
    assert_eq!((health.passes, health.spin_ups), (Some(true), Some(300)));
    assert_eq!((health.reallocated, health.pending), (Some(8), Some(2)));
    assert_eq!((health.celsius, health.hours), (Some(36), Some(7)));
}

#[test]
fn attributes_with_wrong_checksum_are_ignored() {
    let mut data = counts(&[(5, 8)]);
    data[8] ^= 1;
    let disks = recorded(vec![
        (Command::CheckPowerMode, sense(FIXED_ACTIVE), None),
        (Command::Identify, Response::default(), Some(identity(0))),
        (Command::SmartData, Response::default(), Some(data)),
        (Command::SmartStatus, sense(NOT_ATA), None),
    ]);
    let health = disks.health(PLACE).unwrap().unwrap();
    assert_eq!((health.reallocated, health.passes), (None, None));
}

#[test]
fn spin_up_handles_power_up_in_standby() {
    let identified = |word| (Command::Identify, Response::default(), Some(identity(word)));
    let done = |command| (command, sense(DESCRIPTOR_ACTIVE), None);
    recorded(vec![identified(0), done(Command::ReadVerify)]).spin_up(PLACE).unwrap();
    for waits in [0x37c8, 0x738c] {
        let answers =
            vec![identified(waits), done(Command::SpinUpAfterPower), done(Command::ReadVerify)];
        recorded(answers).spin_up(PLACE).unwrap();
    }
    let down = vec![done(Command::FlushCache), done(Command::StandbyImmediate)];
    recorded(down).spin_down(PLACE).unwrap();
}

#[test]
fn failed_spin_up_reports_the_reason() {
    let identified = || (Command::Identify, Response::default(), Some(identity(0)));
    let late = Response { host_status: 3, ..Response::default() };
    for (answer, why) in [
        (late, "it did not respond in time"),
        (sense(ABORTED), "it rejected the command (status 51h, error 04h)"),
        (Response { host_status: 1, ..Response::default() }, "no device responds"),
    ] {
        let disks = recorded(vec![identified(), (Command::ReadVerify, answer, None)]);
        let error = disks.spin_up(PLACE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(error.to_string(), format!("the disk in place 0 does not spin up: {why}"));
    }
}

#[test]
fn bridge_without_pass_through_is_reported() {
    let disks = recorded(vec![(Command::CheckPowerMode, sense(NOT_ATA), None)]);
    assert_eq!(
        disks.observe(PLACE).unwrap_err().to_string(),
        "disk \"/dev/recorded\" did not carry out a command: its bridge or controller passes no \
         ATA commands; set its type for smartctl"
    );
    let gone = Response { host_status: 1, ..Response::default() };
    let disks = recorded(vec![(Command::CheckPowerMode, gone, None)]);
    assert_eq!(disks.observe(PLACE).unwrap(), Observed::Absent);
}

/// For machines without a disk to spin down, which are most build machines.
#[test]
fn missing_disk_is_reported_on_one_line() {
    let at = |device: &str| {
        let disk = LinuxDisk { device: device.into(), mount: None, smartctl: None };
        LinuxDisks::new([(PLACE, disk)].into())
    };
    let none = at("/dev/fulgurite-no-disk");
    assert_eq!(none.observe(PLACE).unwrap(), Observed::Absent);
    assert_eq!(
        none.spin_up(PLACE).unwrap_err().to_string(),
        "there is no disk at \"/dev/fulgurite-no-disk\": the device does not exist"
    );
    assert_eq!(
        at("/dev/null").observe(PLACE).unwrap_err().to_string(),
        "there is no disk at \"/dev/null\": it does not accept disk commands"
    );
    assert_eq!(none.spin_up(PlaceId::new(9)).unwrap_err().kind(), ErrorKind::NotFound);
}

/// Output of smartctl 7.3 for a spinning disk, as recorded by users; shortened, with a made-up
/// serial and counts, since theirs were left out.
const SMARTCTL_SPINNING: &[u8] = br#"{"json_format_version":[1,0],"smartctl":{"version":[7,3],
"svn_revision":"5338","exit_status":0},"device":{"name":"/dev/sdd","info_name":"/dev/sdd [SAT]",
"type":"sat","protocol":"ATA"},"model_name":"ST18000NM000J-2TV103","serial_number":"ZR5TEST0",
"user_capacity":{"blocks":35156656128,"bytes":18000207937536},"smart_status":{"passed":true},
"ata_smart_attributes":{"revision":10,"table":[{"id":5,"name":"Reallocated_Sector_Ct","value":100,
"worst":100,"thresh":10,"when_failed":"","raw":{"value":3,"string":"3"}},{"id":193,
"name":"Load_Cycle_Count","value":100,"worst":100,"thresh":0,"raw":{"value":1672,"string":"1672"}},
{"id":9,"name":"Power_On_Hours","raw":{"value":47240009200743,"string":"9319h"}}]},
"power_on_time":{"hours":9319},"power_cycle_count":22,"temperature":{"current":33}}"#;

#[test]
fn recorded_smartctl_output_is_parsed() {
    let (observed, health) = smartctl::read(SMARTCTL_SPINNING).unwrap();
    let health = health.unwrap();
    assert_eq!(observed, Observed::Turning);
    assert_eq!(health.model.as_deref(), Some("ST18000NM000J-2TV103"));
    assert_eq!(health.bytes, Some(ByteCount::new(18_000_207_937_536)));
    assert_eq!((health.passes, health.reallocated), (Some(true), Some(3)));
    assert_eq!((health.spin_ups, health.hours), (Some(1672), Some(9319)));
    assert_eq!((health.celsius, health.pending), (Some(33), None));

    let message = |text: &str, status: u32| {
        format!(
            r#"{{"smartctl":{{"messages":[{{"string":"{text}","severity":"information"}}],
            "exit_status":{status}}}}}"#
        )
    };
    for text in ["Device is in STANDBY mode, exit(2)", "Device is in STANDBY (OS) mode, exit(2)"] {
        let read = smartctl::read(message(text, 2).as_bytes()).unwrap();
        assert_eq!(read, (Observed::Standby, None));
    }
    let closed = message("Smartctl open device: /dev/sdz [SAT] failed: No such device", 2);
    let error = smartctl::read(closed.as_bytes()).unwrap_err();
    assert!(error.contains("/dev/sdz"), "{error}");
    assert!(smartctl::read(b"smartctl: not found").is_err());
    // A failing disk did respond.
    let failing = String::from_utf8_lossy(SMARTCTL_SPINNING).replace("_status\":0", "_status\":8");
    assert_eq!(smartctl::read(failing.as_bytes()).unwrap().0, Observed::Turning);
}
