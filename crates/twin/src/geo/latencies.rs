//! Latencies, drawn from distributions that are inputs of the scenario, never results.
//!
//! ```text
//! median x exp(spread x normal)    a service of a site, and a round trip with a small spread
//! bytes / min(node's network / streams, window / round trip)    bytes on one warm connection
//! ```
//!
//! Not modeled: cold connections, packet loss, and nodes that wait for each other.

use fulgurite_units::{Duration, Seed};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::workload::{Draws, exp2};

/// Maximum milliseconds of any latency.
pub(super) const MS_MAX: f64 = 60_000.0;
/// The base-two logarithm of e: `exp2(LOG2_E * x)` is the exponential of x.
const LOG2_E: f64 = std::f64::consts::LOG2_E;

/// The network between sites, and from a node to the stores of its own site.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Round-trip time within a site, in milliseconds.
    pub local_ms: f64,
    /// Bandwidth of a node, in MB/s (1 Gbit/s, section 6).
    pub node_mb_per_s: f64,
    /// Window in bytes of a connection that a node sends on.
    pub put_window: f64,
    /// Window in bytes of a connection that it receives on.
    pub get_window: f64,
    /// Standard deviation of the logarithm of a round trip.
    pub spread: f64,
}

/// Rows of a site.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rows {
    /// Median time to read one, in milliseconds.
    pub read_ms: f64,
    /// Median time of a read and a conditional write, in milliseconds.
    pub update_ms: f64,
    /// Standard deviation of the logarithms of both.
    pub spread: f64,
    /// Whether a proxy node in the row's site does both. Without one, the read and the write each
    /// cross between sites.
    pub proxies: bool,
}

/// Fragments of a site.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Blob {
    /// Median time to write one, in milliseconds.
    pub write_ms: f64,
    /// Additional milliseconds per MB.
    pub write_ms_per_mb: f64,
    /// Median time to read one, in milliseconds.
    pub read_ms: f64,
    /// Additional milliseconds per MB.
    pub read_ms_per_mb: f64,
    /// Standard deviation of the logarithms of both.
    pub spread: f64,
    /// Share of reads that stall.
    pub stalls: f64,
    /// Length of a stall, in milliseconds.
    pub stall_ms: f64,
}

/// Encoding and decoding on a node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Coding {
    /// Milliseconds to encode a MB into fragments.
    pub encode_ms_per_mb: f64,
    /// Milliseconds to decode a MB from fragments.
    pub decode_ms_per_mb: f64,
}

/// Disks of the replicated database.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disk {
    /// Median time until a row is on the disks of a majority within a site, in milliseconds.
    pub write_ms: f64,
    /// Median time to read one, in milliseconds.
    pub read_ms: f64,
    /// Standard deviation of the logarithms of both.
    pub spread: f64,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            local_ms: 1.0,
            node_mb_per_s: 119.0,
            put_window: 2_097_152.0,
            get_window: 6_291_456.0,
            spread: 0.02,
        }
    }
}

impl Default for Rows {
    fn default() -> Self {
        Self { read_ms: 14.0, update_ms: 42.0, spread: 0.25, proxies: true }
    }
}

impl Default for Blob {
    fn default() -> Self {
        Self {
            write_ms: 40.0,
            write_ms_per_mb: 10.5,
            read_ms: 36.0,
            read_ms_per_mb: 9.5,
            spread: 0.25,
            stalls: 0.0,
            stall_ms: 1_000.0,
        }
    }
}

impl Default for Coding {
    /// 30 ms to encode 4 MB (section 6.2.1), and what section 6.2.2 leaves for decoding.
    fn default() -> Self {
        Self { encode_ms_per_mb: 7.15, decode_ms_per_mb: 4.5 }
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self { write_ms: 50.0, read_ms: 10.0, spread: 0.25 }
    }
}

impl Network {
    pub(super) fn validate(&self) -> Result<(), Error> {
        check_ms("network.local_ms", self.local_ms)?;
        check_spread("network.spread", self.spread)?;
        for (field, value) in [
            ("network.node_mb_per_s", self.node_mb_per_s),
            ("network.put_window", self.put_window),
            ("network.get_window", self.get_window),
        ] {
            if !(1.0..=1e10).contains(&value) {
                let expected = "from 1 to 1e10";
                return Err(Error::Parameter { field, value: value.to_string(), expected });
            }
        }
        Ok(())
    }
}

impl Rows {
    pub(super) fn validate(&self) -> Result<(), Error> {
        check_ms("rows.read_ms", self.read_ms)?;
        check_ms("rows.update_ms", self.update_ms)?;
        check_spread("rows.spread", self.spread)
    }
}

impl Blob {
    pub(super) fn validate(&self) -> Result<(), Error> {
        check_ms("blob.write_ms", self.write_ms)?;
        check_ms("blob.write_ms_per_mb", self.write_ms_per_mb)?;
        check_ms("blob.read_ms", self.read_ms)?;
        check_ms("blob.read_ms_per_mb", self.read_ms_per_mb)?;
        check_ms("blob.stall_ms", self.stall_ms)?;
        check_spread("blob.spread", self.spread)?;
        check_range("blob.stalls", self.stalls, 1.0, "from 0 to 1")
    }
}

impl Coding {
    pub(super) fn validate(&self) -> Result<(), Error> {
        check_ms("coding.encode_ms_per_mb", self.encode_ms_per_mb)?;
        check_ms("coding.decode_ms_per_mb", self.decode_ms_per_mb)
    }
}

impl Disk {
    pub(super) fn validate(&self) -> Result<(), Error> {
        check_ms("disk.write_ms", self.write_ms)?;
        check_ms("disk.read_ms", self.read_ms)?;
        check_spread("disk.spread", self.spread)
    }
}

/// Checks a latency in milliseconds.
fn check_ms(field: &'static str, ms: f64) -> Result<(), Error> {
    check_range(field, ms, MS_MAX, "from 0 to 60000 milliseconds")
}

/// Checks the spread of a time: the standard deviation of its logarithm.
fn check_spread(field: &'static str, spread: f64) -> Result<(), Error> {
    check_range(field, spread, 2.0, "from 0 to 2")
}

fn check_range(
    field: &'static str,
    value: f64,
    most: f64,
    expected: &'static str,
) -> Result<(), Error> {
    if (0.0..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::Parameter { field, value: value.to_string(), expected })
}

/// Megabytes of 1,000,000 bytes.
#[expect(clippy::cast_precision_loss, reason = "an object is below 2^53 bytes")]
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

pub(super) fn ms(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3)
}

impl Network {
    /// Returns the transfer time of bytes on one of `streams` connections of a node, in
    /// milliseconds. Within a site only the node's network counts.
    pub(crate) fn transfer_ms(
        &self,
        bytes: u64,
        rtt_ms: f64,
        streams: usize,
        way_out: bool,
    ) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a node has few connections")]
        let node = self.node_mb_per_s / streams.max(1) as f64;
        let window = if way_out { self.put_window } else { self.get_window };
        let connection = if rtt_ms > 0.0 { window / 1e6 / (rtt_ms / 1e3) } else { f64::INFINITY };
        megabytes(bytes) / node.min(connection) * 1e3
    }
}

/// Draws latencies.
#[derive(Debug)]
pub(super) struct Times {
    draws: Draws,
}

impl Times {
    pub(super) fn new(seed: &Seed) -> Self {
        Self { draws: Draws::new(seed, b"times") }
    }

    /// Draws a time with this median, in milliseconds.
    fn spread(&mut self, median_ms: f64, spread: f64) -> Duration {
        let factor = if spread > 0.0 { exp2(spread * LOG2_E * self.draws.normal()) } else { 1.0 };
        ms(median_ms * factor)
    }

    /// Draws a round-trip time.
    pub(super) fn round_trip(&mut self, network: &Network, rtt_ms: f64) -> Duration {
        let rtt = if rtt_ms > 0.0 { rtt_ms } else { network.local_ms };
        self.spread(rtt, network.spread)
    }

    /// Draws the time of a row operation.
    pub(super) fn row(&mut self, rows: &Rows, changes: bool) -> Duration {
        self.spread(if changes { rows.update_ms } else { rows.read_ms }, rows.spread)
    }

    /// Draws the time to write a fragment.
    pub(super) fn write(&mut self, blob: &Blob, bytes: u64) -> Duration {
        self.spread(blob.write_ms + megabytes(bytes) * blob.write_ms_per_mb, blob.spread)
    }

    /// Draws the time to read a fragment.
    pub(super) fn read(&mut self, blob: &Blob, bytes: u64) -> Duration {
        let stalls = blob.stalls > 0.0 && self.draws.unit() < blob.stalls;
        let stall = if stalls { ms(blob.stall_ms) } else { Duration::ZERO };
        self.spread(blob.read_ms + megabytes(bytes) * blob.read_ms_per_mb, blob.spread) + stall
    }

    /// Draws the time of a row operation of the replicated database.
    pub(super) fn disk(&mut self, disk: &Disk, writes: bool) -> Duration {
        self.spread(if writes { disk.write_ms } else { disk.read_ms }, disk.spread)
    }
}
