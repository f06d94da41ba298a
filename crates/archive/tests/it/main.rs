//! The archive through its public API, on real files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "tests poll until a condition holds")]

mod acknowledged;
mod checked;
mod conformance;
mod copies;
mod far;
mod forget;
mod given_up;
mod harness;
mod jobs;
mod library;
mod life;
mod mediums;
mod model;
mod newer_logs;
mod older_catalog;
mod older_tier;
mod orphans;
mod parts;
mod places;
mod reclassified;
mod recover;
mod reference;
mod restores;
mod sealing;
mod shards;
mod sleeping_tier;
mod space;
mod tiers;
mod tiers_away;
mod tiers_left_out;
mod tiers_swapped;
mod toy_tier;
mod uploads;
mod world;
