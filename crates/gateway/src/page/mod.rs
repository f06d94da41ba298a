//! Unauthenticated pages: some for monitoring systems, and one for a person. None of them reveals
//! anything about objects. The page at `/-/` gets what it shows of the archive by admin calls,
//! which it signs with keys that a person entered.

mod asset;
pub(crate) mod front;
mod geo;
mod health;
mod metrics;
mod rack;
mod tiers;
mod tomes;

pub(crate) use self::asset::Asset;
use self::geo::{geo_failure, geo_page};
pub(crate) use self::health::{Health, HealthPage};
pub(crate) use self::metrics::{FinishedRequest, Metrics};
use self::rack::rack_page;
use self::tomes::tomes_page;
