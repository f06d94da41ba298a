//! Scenarios of a rack of cold disks. Everything that a file omits is the paper's (Pelican, OSDI
//! 2014, section 4.2), or marked as a value that the paper does not give.

use fulgurite_units::{ByteCount, Duration, Instant};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::latencies::Law;
use super::shape::{DISKS_OF_GROUP, GROUPS, STACKS_OF_BLOB};
use super::workload::Workload;
use crate::{Error, scenario};

/// Fields of a scenario that are tables and may be omitted.
const TABLES: [&str; 3] = ["disks", "network", "scheduler"];

/// A rack and its workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The system.
    #[serde(default)]
    pub system: SystemTag,
    /// How the rack is provisioned and laid out.
    #[serde(default)]
    pub configuration: Configuration,
    /// Time of reads before the measured window.
    #[serde(default = "warm_up")]
    pub warm_up: Duration,
    /// Length of the measured window: reads that arrive in it are measured.
    #[serde(default = "window")]
    pub window: Duration,
    /// The workload.
    pub workload: Workload,
    /// Disks: their speed, spin-up times and power.
    #[serde(default)]
    pub disks: Disks,
    /// The links of the servers.
    #[serde(default)]
    pub network: Network,
    /// How reads are ordered.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// A disk that fails at the end of the warm-up and is rebuilt into its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<Rebuild>,
}

/// The name of the system in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemTag {
    /// A rack of cold disks.
    #[default]
    Rack,
}

/// How a rack is provisioned and laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Configuration {
    /// Groups in classes, one group of a class spun up at a time, as decided by the controller that
    /// also serves live.
    #[default]
    Driven,
    /// The same policy, implemented as simply as the paper states it, as the reference for the
    /// controller.
    Reference,
    /// The same groups with power and cooling for all disks, which always spin: a queue per group,
    /// first come first served (section 4.1, FP).
    Provisioned,
    /// The straw man of section 2.2.2: each blob on 18 random disks that share no domain, and
    /// concurrent reads only of sets of disks that share none either.
    Random {
        /// How many of the oldest reads are considered: 1 is first come first served.
        look_ahead: u32,
    },
}

/// Disks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disks {
    /// Bytes per second of a disk that reads or writes.
    pub rate: f64,
    /// Seek time before the first byte of each stack.
    pub seek: Duration,
    /// Data stacks of a blob, among which its bytes are divided.
    pub stacks: u32,
    /// Stacks per read: all, 18, to check each, or as many as are needed, 15.
    pub read_stacks: u32,
    /// Disks of a group that must be up before it is read: all 24, or 21, among which any blob has
    /// 15 of its 18.
    pub awake: u32,
    /// Whether each disk is mounted as soon as it spins, as in a live rack; otherwise all are
    /// mounted when the last one spins, which the distributions were fitted to. Only for the
    /// driven configuration.
    pub mount_each: bool,
    /// Time from standby to spinning.
    pub spin_up: Law,
    /// Time to unmount a volume before its disk spins down.
    pub unmount: Law,
    /// Time to mount a volume after its disk has spun up.
    pub mount: Law,
    /// Time to mount while more than `busy_above` reads of the class wait.
    pub mount_busy: Law,
    /// See `mount_busy`.
    pub busy_above: u32,
    /// Power of a disk in standby, in watts.
    pub standby_w: f64,
    /// Power while it spins up, in watts.
    pub spin_up_w: f64,
    /// Power while it spins, in watts.
    pub active_w: f64,
}

/// The links.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Number of servers of the rack: 2, or 1 that has all disks.
    pub servers: u32,
    /// Network bandwidth of each server, in Gbit/s; `inf` for no limit.
    pub nic_gbps: f64,
    /// Bandwidth of the root of each server's PCIe tree, in Gbit/s.
    pub root_gbps: f64,
}

/// How reads are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scheduler {
    /// What a class serves next; the paper's `reference` has only its own order.
    pub order: ServiceOrder,
    /// For the order `due`: how long a read is delayed on purpose, so that others of its group join
    /// it.
    pub patience: Duration,
    /// Maximum spin-ups of a disk in any 24 hours; no limit if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_spinups_per_day: Option<u32>,
    /// Which disks of a group are spun up for reads: all, or as few as give each read 15 stacks.
    pub spin_ups: SpinUpScope,
    /// Additional disks per read, where only the needed ones are spun up.
    pub spare: u32,
    /// Maximum number of reads waiting in a class; more are rejected.
    pub queue_max: u32,
    /// How far a read may be overtaken, in bytes of the reads that overtake it.
    pub reorder: ByteCount,
    /// Share of a class for a rebuild.
    pub rebuild_share: f64,
    /// Length of a turn of the rebuild.
    pub turn: Duration,
    /// Whether a read of the active group goes before those of other groups, as far as these may be
    /// overtaken, even if no other of its group waits.
    pub joins_running: bool,
    /// Whether the two classes of a half spin up one after the other, as in the paper's prototype
    /// (section 4.4).
    pub serial_spin_ups: bool,
}

/// What a class serves next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceOrder {
    /// Batches in the order of their first reads (section 2.2.3).
    #[default]
    Batches,
    /// The earliest deadline.
    Due,
}

/// Which disks of a group are spun up for reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpinUpScope {
    /// All of them, as in the paper.
    #[default]
    All,
    /// As few as give each waiting read enough of its stacks. Each blob has stacks on three of the
    /// four disks of each set, drawn at random.
    Needed,
}

/// A disk to rebuild.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rebuild {
    /// Its group.
    pub group: u32,
    /// Stacks on it. With 0, nothing is rebuilt, but the same figures are measured, for comparison.
    pub stacks: u32,
    /// Bytes per stack.
    pub stack: ByteCount,
}

const fn warm_up() -> Duration {
    Duration::from_secs(2 * 3600)
}

const fn window() -> Duration {
    Duration::from_secs(24 * 3600)
}

impl Default for Disks {
    fn default() -> Self {
        Self {
            rate: 105e6,
            seek: Duration::from_nanos(4_200_000),
            stacks: 15,
            read_stacks: 18,
            awake: DISKS_OF_GROUP,
            mount_each: false,
            spin_up: Law { floor_s: 8.0, median_s: 1.2, sigma: 0.33 },
            unmount: Law::new(0.5, 0.35),
            mount: Law::new(1.2, 0.35),
            mount_busy: Law::new(6.0, 0.45),
            busy_above: 600,
            standby_w: 1.56,
            spin_up_w: 21.53,
            active_w: 9.42,
        }
    }
}

impl Default for Network {
    fn default() -> Self {
        Self { servers: 2, nic_gbps: 20.0, root_gbps: 64.0 }
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            order: ServiceOrder::Batches,
            patience: Duration::ZERO,
            max_spinups_per_day: None,
            spin_ups: SpinUpScope::All,
            spare: 0,
            queue_max: 1_000,
            reorder: ByteCount::new(500_000_000_000),
            rebuild_share: 0.5,
            turn: Duration::from_secs(300),
            joins_running: false,
            serial_spin_ups: false,
        }
    }
}

impl Scenario {
    /// Returns the paper's rack under a workload.
    #[must_use]
    pub fn new(workload: Workload) -> Self {
        Self {
            system: SystemTag::Rack,
            configuration: Configuration::Driven,
            warm_up: warm_up(),
            window: window(),
            workload,
            disks: Disks::default(),
            network: Network::default(),
            scheduler: Scheduler::default(),
            rebuild: None,
        }
    }

    /// Returns the begin and end of the measured window.
    pub(crate) fn measured(&self) -> [Instant; 2] {
        let from = Instant::ZERO + self.warm_up;
        [from, from + self.window]
    }

    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        let refuse =
            |field, value: String, expected| Err(Error::Parameter { field, value, expected });
        if self.window == Duration::ZERO {
            return refuse("window", self.window.to_string(), "above 0");
        }
        if let Configuration::Random { look_ahead } = self.configuration
            && !(1..=10_000).contains(&look_ahead)
        {
            return refuse("look_ahead", look_ahead.to_string(), "from 1 to 10000");
        }
        if self.disks.mount_each && self.configuration != Configuration::Driven {
            return refuse(
                "disks.mount_each",
                "true".to_owned(),
                "false unless configuration is driven",
            );
        }
        if let Some(rebuild) = self.rebuild {
            let (field, expected) =
                ("rebuild", "omitted unless configuration is driven or reference");
            let sleeps = [Configuration::Driven, Configuration::Reference];
            if !sleeps.contains(&self.configuration) {
                return refuse(field, "set".to_owned(), expected);
            }
            if rebuild.group >= GROUPS {
                return refuse("rebuild.group", rebuild.group.to_string(), "below 48");
            }
            if rebuild.stack == ByteCount::ZERO {
                return refuse("rebuild.stack", "0B".to_owned(), "at least one byte");
            }
        }
        let is_papers = self.scheduler.order == ServiceOrder::Batches
            && self.scheduler.max_spinups_per_day.is_none();
        if !is_papers && self.configuration != Configuration::Driven {
            let field = "scheduler.order, scheduler.max_spinups_per_day";
            return refuse(
                field,
                "set".to_owned(),
                "at the default unless configuration is driven",
            );
        }
        if self.scheduler.spin_ups == SpinUpScope::Needed {
            let is_fit = self.disks.read_stacks == self.disks.stacks
                && self.disks.awake == DISKS_OF_GROUP
                && !self.disks.mount_each
                && self.configuration == Configuration::Driven;
            if !is_fit {
                let expected = "all unless configuration is driven, disks.read_stacks equals \
                                disks.stacks, disks.awake is 24 and disks.mount_each is false";
                return refuse("scheduler.spin_ups", "needed".to_owned(), expected);
            }
        }
        self.disks.validate()?;
        self.network.validate()?;
        self.scheduler.validate()?;
        self.workload.validate(GROUPS)
    }
}

impl Disks {
    fn validate(&self) -> Result<(), Error> {
        let refuse =
            |field, value: String, expected| Err(Error::Parameter { field, value, expected });
        if !(1e3..=1e11).contains(&self.rate) {
            return refuse("disks.rate", self.rate.to_string(), "from 1 kB/s to 100 GB/s");
        }
        if !(1..=STACKS_OF_BLOB).contains(&self.stacks) {
            return refuse("disks.stacks", self.stacks.to_string(), "from 1 to 18");
        }
        if !(self.stacks..=STACKS_OF_BLOB).contains(&self.read_stacks) {
            let expected = "from disks.stacks to 18";
            return refuse("disks.read_stacks", self.read_stacks.to_string(), expected);
        }
        if !(1..=DISKS_OF_GROUP).contains(&self.awake) {
            return refuse("disks.awake", self.awake.to_string(), "from 1 to 24");
        }
        // Enough disks of any blob must be among those that are up.
        let asleep = DISKS_OF_GROUP - self.awake;
        if self.read_stacks + asleep > STACKS_OF_BLOB {
            let expected = "at least disks.read_stacks + 6";
            return refuse("disks.awake", self.awake.to_string(), expected);
        }
        for (field, watts) in [
            ("disks.standby_w", self.standby_w),
            ("disks.active_w", self.active_w),
            ("disks.spin_up_w", self.spin_up_w),
        ] {
            if !(0.0..=1_000.0).contains(&watts) {
                return refuse(field, watts.to_string(), "from 0 to 1000");
            }
        }
        self.spin_up.validate("disks.spin_up")?;
        self.unmount.validate("disks.unmount")?;
        self.mount.validate("disks.mount")?;
        self.mount_busy.validate("disks.mount_busy")
    }
}

impl Network {
    fn validate(&self) -> Result<(), Error> {
        if !(1..=2).contains(&self.servers) {
            let (field, value) = ("network.servers", self.servers.to_string());
            return Err(Error::Parameter { field, value, expected: "1 or 2" });
        }
        for (field, gbps) in
            [("network.nic_gbps", self.nic_gbps), ("network.root_gbps", self.root_gbps)]
        {
            if gbps.is_nan() || gbps <= 0.0 {
                let (value, expected) = (gbps.to_string(), "above 0");
                return Err(Error::Parameter { field, value, expected });
            }
        }
        Ok(())
    }
}

impl Scheduler {
    fn validate(&self) -> Result<(), Error> {
        let refuse =
            |field, value: String, expected| Err(Error::Parameter { field, value, expected });
        if !(1..=1_000_000).contains(&self.queue_max) {
            let value = self.queue_max.to_string();
            return refuse("scheduler.queue_max", value, "from 1 to 1000000");
        }
        if !(self.rebuild_share > 0.0 && self.rebuild_share < 1.0) {
            let value = self.rebuild_share.to_string();
            return refuse("scheduler.rebuild_share", value, "above 0 and below 1");
        }
        if self.max_spinups_per_day == Some(0) {
            let field = "scheduler.max_spinups_per_day";
            return refuse(field, "0".to_owned(), "at least 1 or omitted");
        }
        if self.turn == Duration::ZERO {
            return refuse("scheduler.turn", self.turn.to_string(), "above 0");
        }
        Ok(())
    }
}

impl scenario::Scenario for Scenario {
    const ALIASES: &'static [&'static str] = &["rate", "reads", "reorder_gb"];

    fn check(&self) -> Result<(), Error> {
        self.validate()
    }

    fn window(&self) -> [Duration; 2] {
        self.measured().map(|at| at.since(Instant::ZERO))
    }

    /// Fills in omitted tables, so that their fields can be set.
    fn resolve(table: Table) -> Result<Table, String> {
        scenario::fill_defaults(table, &Self::new(Workload::poisson(1.0)), &TABLES)
    }

    /// Resolves a word: `rate` is the rate of Poisson reads, `reads` the count of a burst,
    /// `reorder_gb` the reordering in GB.
    fn field(_: &Table, word: &str, value: &Value) -> Result<(String, Value), String> {
        let path = match word {
            "rate" => "workload.arrivals.poisson.rate",
            "reads" => "workload.arrivals.burst.reads",
            "reorder_gb" => {
                let gigabytes = value.as_integer().filter(|count| *count >= 0);
                let gigabytes = gigabytes.ok_or("reorder_gb must be a whole number of GB")?;
                let bytes = Value::String(format!("{gigabytes}000000000B"));
                return Ok(("scheduler.reorder".to_owned(), bytes));
            }
            word => return Err(format!("there is no word {word}")),
        };
        Ok((path.to_owned(), value.clone()))
    }
}
