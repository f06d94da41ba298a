//! Runs the same reads in the twin.

use fulgurite_twin::engine::run;
use fulgurite_twin::rack::{Arrivals, Network, Rack, Scenario, TraceRead, Workload};
use fulgurite_units::{ByteCount, Duration};

use crate::{Averages, ReadArrival};

/// Size of a blob in the twin.
pub(crate) const BLOB_BYTES: f64 = 1e9;
const DISKS: f64 = 1152.0;
const YEAR_S: f64 = 365.25 * 86_400.0;

/// Returns the means over seeds 1 to `seeds`.
pub(crate) fn averages(burst: &[ReadArrival], seeds: u64) -> Averages {
    let scenario = scenario(burst);
    let one = |seed| {
        let run = run::<Rack>(&scenario, seed).unwrap();
        assert_eq!((run.offered, run.rejected), (burst.len() as u64, 0));
        Averages {
            throughput: run.bytes * 8.0 / 1e9 / run.span,
            completion: run.completion.mean,
            first_byte: run.first_byte.mean,
            service: run.service.mean,
            spin_ups: run.spin_ups * DISKS / YEAR_S * scenario.window.as_secs_f64(),
        }
    };
    Averages::over(&(1..=seeds).map(one).collect::<Vec<_>>())
}

/// The rack of the paper's cross-validation without its network: one server, and the two classes of
/// a half spin up one after the other. Each disk is mounted as soon as it is up, as in the live
/// rack.
fn scenario(burst: &[ReadArrival]) -> Scenario {
    let size = ByteCount::new(1_000_000_000);
    let reads = burst.iter().map(|read| TraceRead { at: read.at, group: read.group, size });
    let arrivals = Arrivals::Trace(reads.collect());
    let mut scenario = Scenario::new(Workload { arrivals, ..Workload::poisson(1.0) });
    scenario.warm_up = Duration::ZERO;
    scenario.network = Network { servers: 1, nic_gbps: f64::INFINITY, ..Network::default() };
    scenario.scheduler.serial_spin_ups = true;
    scenario.disks.mount_each = true;
    scenario
}
