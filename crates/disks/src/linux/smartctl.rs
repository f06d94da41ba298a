//! Queries a disk with `smartctl`, where our commands do not get through: behind USB bridges and
//! controllers that need their own protocol (`-d`).

use std::path::Path;
use std::process::Command;

use fulgurite_units::ByteCount;
use serde::Deserialize;

use super::sectors::add_count;
use crate::{DisksError, Health, Observed, Result};

/// Queries without spinning up: with `-n standby` it stops before querying a disk in standby.
pub(super) fn query(device: &Path, kind: &str) -> Result<(Observed, Option<Health>)> {
    let mut program = Command::new("smartctl");
    // Without `-d` it would probe the type of the device, which might spin it up.
    program.args(["--json=c", "--nocheck=standby", "--info", "--health", "--attributes"]);
    let output = program.arg("--device").arg(kind).arg(device).output().map_err(|error| {
        let reason = format!("smartctl cannot be run: {error}");
        DisksError::Device { device: device.to_owned(), reason }
    })?;
    read(&output.stdout).map_err(|reason| DisksError::Device { device: device.to_owned(), reason })
}

#[derive(Deserialize)]
struct Output {
    smartctl: Smartctl,
    model_name: Option<String>,
    serial_number: Option<String>,
    user_capacity: Option<Capacity>,
    smart_status: Option<Status>,
    temperature: Option<Temperature>,
    power_on_time: Option<PowerOn>,
    ata_smart_attributes: Option<Attributes>,
}

#[derive(Deserialize)]
struct Smartctl {
    #[serde(default)]
    messages: Vec<Message>,
    exit_status: u32,
}

#[derive(Deserialize)]
struct Message {
    string: String,
}

#[derive(Deserialize)]
struct Capacity {
    bytes: u64,
}

#[derive(Deserialize)]
struct Status {
    passed: bool,
}

#[derive(Deserialize)]
struct Temperature {
    current: i16,
}

#[derive(Deserialize)]
struct PowerOn {
    hours: u64,
}

#[derive(Deserialize)]
struct Attributes {
    table: Vec<Attribute>,
}

#[derive(Deserialize)]
struct Attribute {
    id: u8,
    raw: Raw,
}

#[derive(Deserialize)]
struct Raw {
    value: u64,
}

/// Bits of the exit status that mean that the disk was not queried: a wrong call, or a device that
/// did not open or is in standby.
const NOT_QUERIED: u32 = 0b11;

/// Parses its JSON. Most bits of the exit status describe the disk, not the call.
pub(super) fn read(json: &[u8]) -> Result<(Observed, Option<Health>), String> {
    let output: Output = serde_json::from_slice(json)
        .map_err(|error| format!("cannot parse the output of smartctl: {error}"))?;
    let messages = output.smartctl.messages.iter().map(|message| message.string.as_str());
    if output.smartctl.exit_status & NOT_QUERIED != 0 {
        // A device that does not open has the same status, so the message decides.
        let sleeps = |text: &str| {
            text.contains("Device is in STANDBY") || text.contains("Device is in SLEEP")
        };
        if messages.clone().any(sleeps) {
            return Ok((Observed::Standby, None));
        }
        let texts: Vec<&str> = messages.collect();
        return Err(format!("smartctl could not query the disk: {}", texts.join("; ")));
    }
    let mut health = Health {
        model: output.model_name,
        serial: output.serial_number,
        bytes: output.user_capacity.map(|capacity| ByteCount::new(capacity.bytes)),
        passes: output.smart_status.map(|status| status.passed),
        ..Health::default()
    };
    for attribute in output.ata_smart_attributes.into_iter().flat_map(|known| known.table) {
        add_count(&mut health, attribute.id, attribute.raw.value);
    }
    // Its interpretation of the attributes is better than the raw values.
    health.celsius = output.temperature.map(|temperature| temperature.current).or(health.celsius);
    health.hours = output.power_on_time.map(|time| time.hours).or(health.hours);
    Ok((Observed::Turning, Some(health)))
}
