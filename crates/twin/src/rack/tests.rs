//! The rack against sums by hand, and against invariants after every event.

use std::fs;
use std::path::Path;

use fulgurite_units::{ByteCount, Duration, Instant, settings};
use toml::Table;

use super::scenario::{Configuration, Rebuild, Scenario, SpinUpScope};
use super::workload::{Arrivals, Sizes, Workload};
use super::{GroupState, Law, Observation, Rack, RunResult};
use crate::engine::{Observer, run, run_observed};
use crate::experiment::{PaperSystem as _, SourceFile, Suite};
use crate::metrics::metric_names;
use crate::presentation::ReportedSystem;
use crate::report::{Facts, run_page};
use crate::scenario::{Head, SystemName, with_overrides};

const HOUR: Duration = Duration::from_secs(3600);

fn scenario(rate: f64) -> Scenario {
    Scenario {
        warm_up: HOUR,
        window: Duration::from_secs(4 * 3600),
        ..Scenario::new(Workload::poisson(rate))
    }
}

fn provisioned(rate: f64) -> Scenario {
    Scenario { configuration: Configuration::Provisioned, ..scenario(rate) }
}

#[track_caller]
fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() <= tolerance, "{value} for {expected}");
}

/// Checks invariants after every event: of each class at most one group is not in standby, reads go
/// to groups in service, and power and cooling supply what spins.
struct Auditor {
    state: Vec<GroupState>,
    /// An error planted as a canary: it must be found.
    slip: bool,
    reading: [u32; 4],
    found: Vec<String>,
    spin_ups: u64,
}

impl Auditor {
    fn new(slip: bool) -> Self {
        let state = vec![GroupState::Sleep; 48];
        Self { state, slip, reading: [0; 4], found: Vec::new(), spin_ups: 0 }
    }

    fn awake(&self, class: usize) -> usize {
        let of = &self.state[class * 12..(class + 1) * 12];
        of.iter().filter(|state| **state != GroupState::Sleep).count()
    }

    fn serves(&mut self, group: u32, what: &str) {
        if self.state[group as usize] != GroupState::Serve {
            self.found.push(format!("{what} of group {group}, which is not in service"));
        }
    }
}

impl Observer<Rack> for Auditor {
    fn observe(&mut self, _: Instant, observation: Observation) {
        match observation {
            Observation::Group { group, is } => {
                // The canary misses groups that go to standby.
                if self.slip && is == GroupState::Sleep {
                    return;
                }
                self.spin_ups += u64::from(is == GroupState::SpinUp);
                self.state[group as usize] = is;
                let class = group as usize / 12;
                if self.awake(class) > 1 {
                    self.found.push(format!("two groups of class {class} are active"));
                }
            }
            Observation::ServiceStarted { group } => {
                let class = group as usize / 12;
                self.reading[class] += 1;
                if self.reading[class] > 1 {
                    self.found.push(format!("two reads of class {class}"));
                }
                self.serves(group, "a read");
            }
            Observation::FirstByte { group } | Observation::Rebuilt { group } => {
                self.serves(group, "a byte")
            }
            Observation::Departed { group } => {
                self.serves(group, "an end");
                self.reading[group as usize / 12] -= 1;
            }
            Observation::Arrived { .. } | Observation::Rejected { .. } => {}
        }
    }
}

#[test]
fn one_group_per_class_spins_and_only_it_is_read() {
    let rebuild = Some(Rebuild { group: 17, stacks: 400, stack: ByteCount::new(66_000_000) });
    let both = [Configuration::Driven, Configuration::Reference];
    let runs =
        [(0.2, None, false), (5.0, None, false), (2.0, rebuild, false), (2.0, rebuild, true)];
    for (configuration, (rate, rebuild, serial)) in
        both.into_iter().flat_map(|of| runs.map(|run| (of, run)))
    {
        let mut scenario = Scenario { configuration, rebuild, ..scenario(rate) };
        scenario.window = HOUR;
        scenario.scheduler.serial_spin_ups = serial;
        let mut auditor = Auditor::new(false);
        let result = run_observed::<Rack, _>(&scenario, 7, &mut auditor).unwrap();
        assert_eq!(auditor.found, [""; 0]);
        assert!(auditor.spin_ups > 100);
        assert_eq!(auditor.reading, [0; 4], "every read ended");
        assert_eq!(result.rebuild.stacks, u64::from(rebuild.map_or(0, |of| of.stacks)));
        let mut canary = Auditor::new(true);
        run_observed::<Rack, _>(&scenario, 7, &mut canary).unwrap();
        assert!(!canary.found.is_empty(), "the auditor finds the planted error");
    }
}

/// The controller that serves live decides as the paper says: the same reads in the same order.
/// With equal machines the two differ only by their drawn times.
#[test]
fn controller_matches_the_reference() {
    for rate in [0.25, 1.0, 4.0] {
        let [ours, papers] = [Configuration::Driven, Configuration::Reference]
            .map(|configuration| Scenario { configuration, ..scenario(rate) })
            .map(|scenario| run::<Rack>(&scenario, 5).unwrap());
        assert_eq!(ours.offered, papers.offered);
        for (of, tolerance) in [
            (|run: &RunResult| run.first_byte.mean, 0.04),
            (|run: &RunResult| run.service.mean, 0.02),
            (|run: &RunResult| run.spin_ups, 0.02),
            (|run: &RunResult| run.power, 0.01),
            (|run: &RunResult| run.throughput, 0.01),
        ] as [(fn(&RunResult) -> f64, f64); 5]
        {
            near(of(&ours), of(&papers), tolerance);
        }
    }
}

/// Serial spin-ups of a half: its two classes never spin up at the same time.
#[test]
fn prototype_spins_up_classes_of_a_half_serially() {
    #[derive(Default)]
    struct Halves {
        spinning_up: [u32; 2],
        most: [u32; 2],
    }
    impl Observer<Rack> for Halves {
        fn observe(&mut self, _: Instant, observation: Observation) {
            let Observation::Group { group, is } = observation else { return };
            let half = group as usize / 24;
            match is {
                GroupState::SpinUp => self.spinning_up[half] += 1,
                GroupState::Mount => self.spinning_up[half] -= 1,
                GroupState::Sleep | GroupState::Serve | GroupState::Unmount => {}
            }
            self.most[half] = self.most[half].max(self.spinning_up[half]);
        }
    }
    for (serial, most) in [(true, [1, 1]), (false, [2, 2])] {
        let mut scenario = scenario(1.0);
        scenario.scheduler.serial_spin_ups = serial;
        let mut halves = Halves::default();
        run_observed::<Rack, _>(&scenario, 1, &mut halves).unwrap();
        assert_eq!(halves.most, most);
    }
}

/// Reads arrive so rarely that none waits for another: eleven of twelve wait for a switch, and all
/// for their seek.
#[test]
fn idle_rack_first_byte_takes_one_group_switch() {
    let scenario = Scenario { window: Duration::from_secs(800 * 3600), ..scenario(0.001) };
    let result = run::<Rack>(&scenario, 1).unwrap();
    // The latencies of a group: 1.00, 10.32 and 2.41 s (the test of the distributions).
    near(result.first_byte.mean, 11.0 / 12.0 * 13.73 + 0.0042, 0.02);
    near(result.first_byte.mean, result.service.mean - 1e9 / 15.0 / 105e6, 0.02);
    near(result.power, 1_797.12 + 96.0 * (9.42 - 1.56), 0.02);
    assert_eq!(result.rejected, 0);
    // In each of four classes eleven twelfths of the reads go to another group.
    let reads = result.offered as f64;
    near(result.spin_ups_per_tb, 24.0 * 11.0 / 12.0 * 1000.0, 0.02);
    near(reads, 2_880.0, 0.06);
}

#[test]
fn idle_provisioned_rack_runs_at_disk_speed() {
    let result = run::<Rack>(&provisioned(0.01), 1).unwrap();
    near(result.service.mean, 0.0042 + 1e9 / 15.0 / 105e6, 0.001);
    near(result.first_byte.p50, 0.0042, 0.01);
    near(result.power, 10_851.84, 1e-9);
    assert!(result.spin_ups.abs() < 1e-9);
}

/// 64 Gbit/s of each root, of which 15 of 18 stacks are user bytes, or all where only 15 are read;
/// and 40 of both networks.
#[test]
fn provisioned_rack_saturates_its_links() {
    let gbps = |nic: f64, read_stacks: u32| {
        let mut scenario = provisioned(20.0);
        scenario.window = HOUR;
        scenario.network.nic_gbps = nic;
        scenario.disks.read_stacks = read_stacks;
        run::<Rack>(&scenario, 1).unwrap().throughput * 8.0 / 1e9
    };
    near(gbps(f64::INFINITY, 18), 106.667, 0.005);
    near(gbps(f64::INFINITY, 15), 128.0, 0.005);
    near(gbps(20.0, 18), 40.0, 0.005);
}

#[test]
fn straw_man_spins_up_before_each_read() {
    let straw = |look_ahead| {
        let configuration = Configuration::Random { look_ahead };
        run::<Rack>(&Scenario { configuration, ..scenario(4.0) }, 1).unwrap()
    };
    let [first, deep] = [1, 1_000].map(straw);
    assert!((0.4..0.7).contains(&(first.throughput * 8.0 / 1e9)), "{}", first.throughput);
    assert!(deep.throughput > first.throughput, "{}", deep.throughput);
    assert!(first.reject_rate > 0.9);
    near(first.spin_ups_per_tb, 18_000.0, 0.01);
}

/// 4,000 stacks of 66.5 MB in sequence take 0.638 s each, and twice that where clients, who always
/// have requests, get half of the class.
#[test]
fn rebuild_gets_idle_time_and_at_least_its_share() {
    let stack = ByteCount::new(66_533_000);
    let rebuild = Some(Rebuild { group: 0, stacks: 4_000, stack });
    let took = |rate| {
        let result = run::<Rack>(&Scenario { rebuild, ..scenario(rate) }, 3).unwrap();
        assert_eq!(result.rebuild.stacks, 4_000);
        result
    };
    let alone = 4_000.0 * (0.0042 + 66.533e6 / 105e6);
    let idle = took(0.001);
    near(idle.rebuild.took, alone, 0.05);
    let busy = took(6.0);
    assert!(busy.rebuild.took > 1.7 * alone, "{}", busy.rebuild.took);
    near(busy.rebuild.took, 2.1 * alone, 0.25);
    assert!(busy.rebuild.class_p95 > busy.rebuild.others_p95);
}

/// If more disks are spinning up than are needed, a group is read sooner.
#[test]
fn reading_15_of_18_stacks_skips_the_slowest_disks() {
    let mut enough = scenario(0.0625);
    enough.disks.read_stacks = 15;
    let all = run::<Rack>(&enough, 1).unwrap();
    enough.disks.awake = 21;
    let sooner = run::<Rack>(&enough, 1).unwrap();
    assert!(sooner.first_byte.mean < all.first_byte.mean - 1.0);
    assert!((sooner.spin_ups / all.spin_ups - 1.0).abs() < 0.05);
    enough.disks.read_stacks = 18;
    let error = run::<Rack>(&enough, 1).unwrap_err().to_string();
    assert!(error.starts_with("disks.awake"), "{error}");
}

/// A single read needs 15 disks of 24, and several waiting together a few more. No read waits
/// longer than where all are spun up and each is mounted as soon as it spins.
#[test]
fn only_needed_disks_are_spun_up() {
    let run_with = |rate: f64, scope| {
        let mut scenario = scenario(rate);
        scenario.disks.read_stacks = 15;
        scenario.disks.mount_each = scope == SpinUpScope::All;
        scenario.scheduler.spin_ups = scope;
        run::<Rack>(&scenario, 1).unwrap()
    };
    let [all, needed] = [SpinUpScope::All, SpinUpScope::Needed].map(|scope| run_with(0.01, scope));
    near(needed.spin_ups / all.spin_ups, 15.0 / 24.0, 0.02);
    let [all, needed] = [SpinUpScope::All, SpinUpScope::Needed].map(|scope| run_with(0.5, scope));
    assert!(needed.spin_ups < 0.8 * all.spin_ups, "{} of {}", needed.spin_ups, all.spin_ups);
    let [own, theirs] = [needed.first_byte.p99, all.first_byte.p99];
    assert!(own < 1.1 * theirs, "{own} for {theirs}");
    assert_eq!(needed.hash, run_with(0.5, SpinUpScope::Needed).hash);
    let mut whole = scenario(1.0);
    whole.scheduler.spin_ups = SpinUpScope::Needed;
    let error = run::<Rack>(&whole, 1).unwrap_err().to_string();
    assert!(error.starts_with("scheduler.spin_ups"), "{error}");
}

#[test]
fn colocated_blobs_need_fewer_spin_ups() {
    let jobs = |together| {
        let mut scenario = scenario(1.0);
        scenario.workload.jobs = super::Jobs { reads: 50, together };
        run::<Rack>(&scenario, 1).unwrap()
    };
    let [apart, together] = [1, 1_000].map(jobs);
    assert!(together.spin_ups_per_tb * 3.0 < apart.spin_ups_per_tb);
}

#[test]
fn seed_determines_the_run() {
    for scenario in [scenario(2.0), provisioned(2.0)] {
        let [first, again, other] = [1, 1, 2].map(|seed| run::<Rack>(&scenario, seed).unwrap());
        assert_eq!(first, again);
        assert_ne!(first.hash, other.hash);
    }
}

#[test]
fn invalid_rack_is_rejected() {
    let refused = |change: fn(&mut Scenario), named: &str| {
        let mut scenario = scenario(1.0);
        change(&mut scenario);
        let error = run::<Rack>(&scenario, 1).unwrap_err().to_string();
        assert!(error.starts_with(named), "{error}");
    };
    refused(|of| of.window = Duration::ZERO, "window");
    refused(|of| of.configuration = Configuration::Random { look_ahead: 0 }, "look_ahead");
    let rebuild = Rebuild { group: 48, stacks: 1, stack: ByteCount::new(1) };
    let set: [fn(&mut Scenario); 2] =
        [|of| of.network.servers = 3, |of| of.network.nic_gbps = f64::NAN];
    refused(set[0], "network.servers");
    refused(set[1], "network.nic_gbps");
    refused(|of| of.disks.rate = 0.0, "disks.rate");
    refused(|of| of.disks.stacks = 19, "disks.stacks");
    refused(|of| of.disks.read_stacks = 14, "disks.read_stacks");
    refused(|of| of.disks.active_w = -1.0, "disks.active_w");
    refused(|of| of.disks.mount = Law::new(f64::NAN, 0.0), "disks.mount");
    refused(|of| of.scheduler.queue_max = 0, "scheduler.queue_max");
    refused(|of| of.scheduler.rebuild_share = 1.0, "scheduler.rebuild_share");
    refused(|of| of.scheduler.turn = Duration::ZERO, "scheduler.turn");
    refused(|of| of.workload.sizes = Sizes::Fixed { size: ByteCount::ZERO }, "sizes");
    let wrong = Scenario { rebuild: Some(rebuild), ..scenario(1.0) };
    assert!(run::<Rack>(&wrong, 1).unwrap_err().to_string().starts_with("rebuild.group"));
    let rebuild = Some(Rebuild { group: 0, ..rebuild });
    let wrong = Scenario { rebuild, ..provisioned(1.0) };
    assert!(run::<Rack>(&wrong, 1).unwrap_err().to_string().starts_with("rebuild"));
}

const FILE: &str = "system = \"rack\"\nworkload = { arrivals = { poisson = { rate = 1.0 } } }";

#[test]
fn omitted_fields_default_to_the_paper() {
    let head: Head = settings::from_toml(FILE).unwrap();
    assert_eq!(head.system, SystemName::Rack);
    let table: Table = toml::from_str(FILE).unwrap();
    let plain: Scenario = settings::from_toml(FILE).unwrap();
    assert_eq!(plain, Scenario::new(Workload::poisson(1.0)));
    let set =
        |text: &str| with_overrides::<Scenario>(table.clone(), &toml::from_str(text).unwrap());
    assert_eq!(set("").unwrap(), plain);
    let with_overrides = set("'disks.seek' = '1ms'\nrate = 3.0\nreorder_gb = 7").unwrap();
    assert_eq!(with_overrides.disks.seek, Duration::from_millis(1));
    assert_eq!(with_overrides.workload.arrivals, Arrivals::Poisson { rate: 3.0 });
    assert_eq!(with_overrides.scheduler.reorder, ByteCount::new(7_000_000_000));
    assert!(set("'network.nic_gbps' = inf").unwrap().network.nic_gbps.is_infinite());
    assert!(set("'disks.seeks' = 1").unwrap_err().contains("unknown field"));
    assert!(set("reorder_gb = -1").unwrap_err().contains("reorder_gb"));
}

#[test]
fn run_is_recorded_and_drawn() {
    let scenario = scenario(1.0);
    let timelines: Vec<_> = [1, 2]
        .map(|seed| {
            let mut recorder = Rack::recorder(&scenario, seed);
            run_observed::<Rack, _>(&scenario, seed, &mut recorder).unwrap();
            Rack::timeline(recorder)
        })
        .into();
    // One group per class at a time: no column exceeds four groups.
    let columns = timelines[0].groups[0].len();
    for column in 0..columns {
        let sum: f64 = timelines[0].groups.iter().map(|group| group[column]).sum();
        assert!(sum <= 4.0 + 1e-9, "{sum}");
    }
    let page = run_page::<Rack>(&scenario, &timelines, &[], &Facts::default());
    assert!(page.contains("Groups that can be read") && page.contains("Reads waiting"));
    assert!(!Rack::rows(&scenario, &[]).is_empty());
    let companions = Rack::companions(&scenario, &[&RunResult::default()]);
    assert_eq!(companions.work, Some((1.0, "serves")));
    let names = metric_names::<RunResult>();
    for name in Rack::DEFAULT_METRICS {
        assert!(names.contains(&(*name).to_owned()), "{name}");
    }
}

/// The files of the repository are valid, and each check has a proper band.
#[test]
fn paper_statements_parse() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/pelican");
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        files.push(SourceFile { name, text: fs::read_to_string(path).unwrap() });
    }
    let suite = Suite::<Rack>::read(&files).unwrap();
    assert!(suite.ids().count() >= 14);
    assert!(suite.job_count() > 100);
}
