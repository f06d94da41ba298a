//! What is simulated of a rack of cold disks. Everything that a file leaves out is the paper's
//! (Pelican, OSDI 2014, section 4.2), or stands beside it as a value that the paper does not give.

use fulgurite_units::{ByteCount, Duration, Instant};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::laws::Law;
use super::shape::{DISKS_OF_GROUP, GROUPS, STACKS_OF_BLOB};
use super::workload::Workload;
use crate::{Error, scenario};

/// Fields of a scenario that are tables and may be left out.
const TABLES: [&str; 3] = ["disks", "network", "scheduler"];

/// A rack, and what is read of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What is simulated.
    #[serde(default)]
    pub system: Named,
    /// How the rack is provisioned and laid out.
    #[serde(default)]
    pub configuration: Configuration,
    /// How long reads come before any is measured.
    #[serde(default = "warm_up")]
    pub warm_up: Duration,
    /// How long they come after that: what comes in this time is measured.
    #[serde(default = "window")]
    pub window: Duration,
    /// What is read.
    pub workload: Workload,
    /// Disks: how fast they are, what they take to wake, what they draw.
    #[serde(default)]
    pub disks: Disks,
    /// What the servers have of links.
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
pub enum Named {
    /// A Pelican rack.
    #[default]
    Pelican,
}

/// How a rack is provisioned and laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Configuration {
    /// Groups in classes, one group of a class awake at a time, as the controller decides that also
    /// serves live.
    #[default]
    Pelican,
    /// The same as the paper says it, as simply as it can be done, to hold the controller against.
    Reference,
    /// The same groups with power and cooling for all disks, which never sleep: a queue for each
    /// group, first come first served (section 4.1, FP).
    Provisioned,
    /// The straw man of section 2.2.2: each blob on 18 disks drawn at random that share no domain,
    /// and reads at the same time only of sets of disks that share none either.
    Random {
        /// So many of the oldest reads are looked at: 1 is first come first served.
        look_ahead: u32,
    },
}

/// Disks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disks {
    /// Bytes per second of one that reads or writes.
    pub rate: f64,
    /// Before the first byte of each stack.
    pub seek: Duration,
    /// Data stacks of a blob, which its bytes are divided by.
    pub stacks: u32,
    /// Stacks that a read takes: all, 18, to check each, or as many as it needs, 15.
    pub read_stacks: u32,
    /// Disks of a group that must be awake before it is read: all 24, or 21, of which any blob has
    /// 15 of its 18.
    pub awake: u32,
    /// Whether each disk is mounted as soon as it turns, as a live rack does; else all are when the
    /// last one turns, which the laws were fitted to. Simulated of configuration pelican alone.
    pub mount_each: bool,
    /// From standby to turning.
    pub spin_up: Law,
    /// Of a volume that goes to sleep.
    pub unmount: Law,
    /// Of a volume that was woken.
    pub mount: Law,
    /// The same where more than `busy_above` reads of the class wait.
    pub mount_busy: Law,
    /// See `mount_busy`.
    pub busy_above: u32,
    /// What a disk draws in standby, in watts.
    pub standby_w: f64,
    /// While it spins up, in watts.
    pub spin_up_w: f64,
    /// While it turns, in watts.
    pub active_w: f64,
}

/// Links.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Servers that serve the rack: 2, or 1 that has all disks.
    pub servers: u32,
    /// The network of each server, in Gbit/s; `inf` if it is never full.
    pub nic_gbps: f64,
    /// The root of each server's PCIe tree, in Gbit/s.
    pub root_gbps: f64,
}

/// How reads are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scheduler {
    /// Whom a class serves next; the paper's `reference` knows but its own.
    pub order: Sequence,
    /// Of the order `due`: how long a read is made to wait on purpose, so that others of its group
    /// come with it.
    pub patience: Duration,
    /// How often a disk may spin up in any 24 hours; as often as it has to if there is no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_spinups_per_day: Option<u32>,
    /// Which disks of a group are woken for reads: all, or as few as give each 15 stacks.
    pub wakes: Woken,
    /// Where only those are woken that are needed: disks more for each read.
    pub spare: u32,
    /// Reads that wait in a class, at most; more are rejected.
    pub queue_max: u32,
    /// By how much a read may be overtaken, as the bytes of those that overtake it.
    pub reorder: ByteCount,
    /// The share of a class that a rebuild has.
    pub rebuild_share: f64,
    /// How long a turn of the rebuild is.
    pub turn: Duration,
    /// Whether a read of the group that is awake goes before those of others, as far as these may
    /// be overtaken, though none of its group waits.
    pub joins_running: bool,
    /// Whether the two classes of a half spin up one after the other, as in the paper's prototype
    /// (section 4.4).
    pub serial_spin_ups: bool,
}

/// Whom a class serves next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sequence {
    /// Batches in the order in which they began (section 2.2.3).
    #[default]
    Batches,
    /// What is due first.
    Due,
}

/// Which disks of a group are woken for reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Woken {
    /// All of them, as in the paper.
    #[default]
    All,
    /// As few as give each read that waits enough of its stacks. Of each blob, three of the four
    /// disks of each set, drawn, have one.
    Needed,
}

/// A disk that is rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rebuild {
    /// The group that it is of.
    pub group: u32,
    /// Stacks on it; with none, only what is measured is that of a rebuild, to compare with.
    pub stacks: u32,
    /// Bytes of each.
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
            order: Sequence::Batches,
            patience: Duration::ZERO,
            max_spinups_per_day: None,
            wakes: Woken::All,
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
    /// The paper's rack under a workload.
    #[must_use]
    pub fn pelican(workload: Workload) -> Self {
        Self {
            system: Named::Pelican,
            configuration: Configuration::Pelican,
            warm_up: warm_up(),
            window: window(),
            workload,
            disks: Disks::default(),
            network: Network::default(),
            scheduler: Scheduler::default(),
            rebuild: None,
        }
    }

    /// When what is measured begins and ends.
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
        if self.disks.mount_each && self.configuration != Configuration::Pelican {
            return refuse("disks.mount_each", "true".to_owned(), "of configuration pelican");
        }
        if let Some(rebuild) = self.rebuild {
            let (field, expected) = ("rebuild", "of configuration pelican or reference");
            let sleeps = [Configuration::Pelican, Configuration::Reference];
            if !sleeps.contains(&self.configuration) {
                return refuse(field, "asked for".to_owned(), expected);
            }
            if rebuild.group >= GROUPS {
                return refuse("rebuild.group", rebuild.group.to_string(), "below 48");
            }
            if rebuild.stack == ByteCount::ZERO {
                return refuse("rebuild.stack", "0B".to_owned(), "at least one byte");
            }
        }
        let is_papers = self.scheduler.order == Sequence::Batches
            && self.scheduler.max_spinups_per_day.is_none();
        if !is_papers && self.configuration != Configuration::Pelican {
            let field = "scheduler.order, scheduler.max_spinups_per_day";
            return refuse(field, "set".to_owned(), "of configuration pelican");
        }
        if self.scheduler.wakes == Woken::Needed {
            let is_fit = self.disks.read_stacks == self.disks.stacks
                && self.disks.awake == DISKS_OF_GROUP
                && !self.disks.mount_each
                && self.configuration == Configuration::Pelican;
            if !is_fit {
                let expected = "of configuration pelican, with disks.read_stacks as disks.stacks, \
                                disks.awake 24 and disks.mount_each false";
                return refuse("scheduler.wakes", "needed".to_owned(), expected);
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
        // Of any blob enough disks must be among those that are awake.
        let asleep = DISKS_OF_GROUP - self.awake;
        if self.read_stacks + asleep > STACKS_OF_BLOB {
            let expected = "24, or as many less as disks.read_stacks is less than 18";
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
            return refuse(field, "0".to_owned(), "at least 1, or no number");
        }
        if self.turn == Duration::ZERO {
            return refuse("scheduler.turn", self.turn.to_string(), "above 0");
        }
        Ok(())
    }
}

impl scenario::Scenario for Scenario {
    const WORDS: &'static [&'static str] = &["rate", "reads", "reorder_gb"];

    fn check(&self) -> Result<(), Error> {
        self.validate()
    }

    fn window(&self) -> [Duration; 2] {
        self.measured().map(|at| at.since(Instant::ZERO))
    }

    /// Tables that are left out are put there, so that their fields can be set.
    fn resolve(table: Table) -> Result<Table, String> {
        scenario::fill_in(table, &Self::pelican(Workload::poisson(1.0)), &TABLES)
    }

    /// `rate` is that of reads at random, `reads` the count of a burst, `reorder_gb` the
    /// reordering in GB.
    fn field(_: &Table, word: &str, value: &Value) -> Result<(String, Value), String> {
        let path = match word {
            "rate" => "workload.arrivals.poisson.rate",
            "reads" => "workload.arrivals.burst.reads",
            "reorder_gb" => {
                let gigabytes = value.as_integer().filter(|count| *count >= 0);
                let gigabytes = gigabytes.ok_or("reorder_gb is a whole number of GB")?;
                let bytes = Value::String(format!("{gigabytes}000000000B"));
                return Ok(("scheduler.reorder".to_owned(), bytes));
            }
            word => return Err(format!("there is no word {word}")),
        };
        Ok((path.to_owned(), value.clone()))
    }
}
