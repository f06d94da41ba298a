//! How the controller decides: a value, chosen in the configuration.
//!
//! `silica`, `shortest-paths` and `no-shuttles` are the paper's (Silica, sections 4.1 and 7.2);
//! `fulgurite` is the product's default; `thrifty` trades slack below the objective for fewer
//! fetches. Everything in which they differ is a field here, so that any mix can be tried.

mod names;

use fulgurite_units::{Duration, Ratio};
use serde::{Deserialize, Serialize};

use crate::control::Error;
use crate::control::limits::{BATTERY_PERCENT_MAX, CANDIDATES_MAX, CUSTOMER_SLOTS_MAX};

pub use names::POLICY_NAMES;

/// How the controller decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Where shuttles may go.
    pub movement: Movement,
    /// Slots of a drive that take platters for customers: 1, or 2 when no new platter needs one.
    pub customer_slots: u8,
    /// A shuttle that is not at a drive fetches a platter before it returns finished ones, so that
    /// it goes to a drive with one platter and leaves with another.
    pub pairs: bool,
    /// Batch size: the oldest platters are taken in batches of this many, nearest first; 1 is
    /// strictly oldest first.
    pub candidates: u16,
    /// A batch older than this is served oldest first: the bound on being passed over.
    pub age_bound: Duration,
    /// Work-stealing threshold: tracks by which the most loaded partition of the panel must exceed
    /// a shuttle's own for the shuttle to fetch from there first; `None` never.
    pub steal_tracks: Option<u64>,
    /// Queue length, in platters, from which a shuttle that has nothing to fetch helps with the
    /// longest queue of the panel. One that has something to fetch helps a neighbor whose customers
    /// wait much longer than its own. `None` never.
    pub help_platters: Option<u16>,
    /// How often the partition boundaries are moved to where the load is; `None` never.
    pub rebalance: Option<Duration>,
    /// How long a platter is held in its slot to gather reads, as a share of the time its oldest
    /// read has until its deadline; zero fetches at once.
    pub hold: Ratio,
    /// Time limit for the verification of a new platter: from its latest start on its drive does
    /// nothing else. At least 1.5 times as long as verifying takes. Only with two customer slots.
    pub verify_within: Duration,
    /// Which of two shuttles gives way.
    pub right_of_way: RightOfWay,
    /// Percent of its battery below which a shuttle takes no errand but charges.
    #[serde(default = "charge_below")]
    pub charge_below: u8,
    /// Percent up to which a shuttle charges that was low or has nothing else to do.
    #[serde(default = "charge_until")]
    pub charge_until: u8,
}

/// Where shuttles may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Movement {
    /// Each shuttle has a partition of the panel, with at least one drive (section 4.1).
    Partitions,
    /// Any shuttle goes anywhere on its panel on the shortest path (section 7.2, "SP").
    ShortestPaths,
    /// Platters appear in drives by themselves: the bound "NS" of section 7.2. Never for real
    /// machines.
    NoShuttles,
}

/// Which of two shuttles in each other's way goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RightOfWay {
    /// The one with the higher identifier (section 4.1).
    Identifier,
    /// The one longer on its trip, so that all of them eventually arrive, however busy the others.
    Age,
}

impl Policy {
    /// Returns the product's default.
    #[must_use]
    pub fn fulgurite() -> Self {
        Self {
            customer_slots: 2,
            pairs: true,
            candidates: 16,
            help_platters: Some(1),
            rebalance: Some(Duration::from_secs(300)),
            right_of_way: RightOfWay::Age,
            ..Self::silica()
        }
    }

    /// Returns the default, but with platters held for half of the slack.
    #[must_use]
    pub fn thrifty() -> Self {
        Self { hold: Ratio::new(0.5).unwrap_or(Ratio::ZERO), ..Self::fulgurite() }
    }

    /// Returns the paper's policy: partitions, oldest first, one customer slot, work stealing from
    /// 25,000 tracks (500 GB of 20 MB tracks; the paper does not give its threshold).
    #[must_use]
    pub const fn silica() -> Self {
        Self {
            movement: Movement::Partitions,
            customer_slots: 1,
            pairs: false,
            candidates: 1,
            age_bound: Duration::from_secs(3600),
            steal_tracks: Some(25_000),
            help_platters: None,
            rebalance: None,
            hold: Ratio::ZERO,
            verify_within: Duration::from_secs(24 * 3600),
            right_of_way: RightOfWay::Identifier,
            charge_below: charge_below(),
            charge_until: charge_until(),
        }
    }

    /// Returns the paper's straw man: no partitions.
    #[must_use]
    pub const fn shortest_paths() -> Self {
        Self { movement: Movement::ShortestPaths, steal_tracks: None, ..Self::silica() }
    }

    /// Returns the paper's bound: shuttles that need no time.
    #[must_use]
    pub const fn no_shuttles() -> Self {
        Self { movement: Movement::NoShuttles, steal_tracks: None, ..Self::silica() }
    }

    /// Returns the policy with a name of [`POLICY_NAMES`].
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            "fulgurite" => Ok(Self::fulgurite()),
            "thrifty" => Ok(Self::thrifty()),
            "silica" => Ok(Self::silica()),
            "shortest-paths" => Ok(Self::shortest_paths()),
            "no-shuttles" => Ok(Self::no_shuttles()),
            _ => Err(Error::NoSuchPolicy { name: name.to_owned() }),
        }
    }

    /// Checks the ranges of all values.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        let ranges = [
            ("customer_slots", u64::from(self.customer_slots), u64::from(CUSTOMER_SLOTS_MAX)),
            ("candidates", u64::from(self.candidates), u64::from(CANDIDATES_MAX)),
        ];
        for (field, value, max) in ranges {
            if !(1..=max).contains(&value) {
                return Err(Error::ShapeRange { field, value, min: 1, max });
            }
        }
        if self.rebalance == Some(Duration::ZERO) {
            return Err(Error::RebalanceZero);
        }
        let (below, until) = (self.charge_below, self.charge_until);
        if below == 0 || until <= below || until > BATTERY_PERCENT_MAX {
            return Err(Error::ChargeRange { below, until });
        }
        Ok(())
    }
}

/// Assumed: with the twin's battery a fifth is enough for twenty cycles.
const fn charge_below() -> u8 {
    20
}

/// Assumed: the last fifth charges slowly and wears a battery most.
const fn charge_until() -> u8 {
    80
}

impl Default for Policy {
    fn default() -> Self {
        Self::fulgurite()
    }
}
