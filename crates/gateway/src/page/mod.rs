//! Unauthenticated pages: some for monitoring systems, and one for a person. None of them reveals
//! anything about objects. The page at `/-/` gets what it shows of the archive by admin calls,
//! which it signs with keys that a person entered.

mod asset;
pub(crate) mod front;
mod health;
mod metrics;

pub(crate) use self::asset::Asset;
pub(crate) use self::health::{Health, HealthPage};
pub(crate) use self::metrics::{FinishedRequest, Metrics};
