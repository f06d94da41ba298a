//! What the space `meta` records about tiers: the ones that belong to the archive, the store behind
//! each name, and the last run that used it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use fulgurite_catalog::keys::{KeyReader, KeyWriter};
use fulgurite_catalog::{Direction, KeyRange, ReadView, Transaction};
use serde::{Deserialize, Serialize};

use super::{META, decode, get, put};
use crate::Result;
use crate::model::classes::TierName;

const CLAIM: &str = "tier";
const STORE: &str = "tier-store";
const RUN: &str = "tier-run";

/// The id of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoreRow {
    pub(crate) id: String,
}

fn key(record: &str, tier: &TierName) -> Vec<u8> {
    KeyWriter::new().string(record).string(tier.as_str()).finish()
}

fn parse_key(record: &str, key: &[u8]) -> Option<TierName> {
    let mut reader = KeyReader::new(key);
    (reader.string().ok()? == record).then_some(())?;
    TierName::new(&reader.string().ok()?).ok()
}

/// Whether a tier of this name belonged to this archive before.
pub(crate) fn is_claimed(view: &dyn ReadView, tier: &TierName) -> Result<bool> {
    Ok(get::<u64>(view, META, &claim_key(tier))?.is_some())
}

/// Records that a tier belongs to this archive, and the id of its store if it has one.
pub(crate) fn record_claim(
    tx: &mut Transaction<'_>,
    tier: &TierName,
    store: Option<String>,
) -> Result<()> {
    if let Some(id) = store {
        put(tx, META, store_key(tier), &StoreRow { id })?;
    }
    put(tx, META, claim_key(tier), &1u64)
}

/// Returns the key of the record that a tier belongs to this archive.
pub(crate) fn claim_key(tier: &TierName) -> Vec<u8> {
    key(CLAIM, tier)
}

/// Returns the tier of such a record; `None` for the key of any other.
pub(crate) fn parse_claim_key(key: &[u8]) -> Option<TierName> {
    parse_key(CLAIM, key)
}

/// Returns the range of these records.
pub(crate) fn claims() -> KeyRange {
    KeyRange::prefix(&KeyWriter::new().string(CLAIM).finish())
}

/// Returns the key of the id of a tier's store.
pub(crate) fn store_key(tier: &TierName) -> Vec<u8> {
    key(STORE, tier)
}

/// Returns the id of a tier's store, if it is known.
pub(crate) fn store(view: &dyn ReadView, tier: &TierName) -> Result<Option<String>> {
    Ok(get::<StoreRow>(view, META, &store_key(tier))?.map(|row| row.id))
}

/// Returns the tier of each known store, by its id.
pub(crate) fn by_store(view: &dyn ReadView) -> Result<BTreeMap<String, TierName>> {
    let range = KeyRange::prefix(&KeyWriter::new().string(STORE).finish());
    let mut found = Ok(BTreeMap::new());
    view.scan(META, &range, Direction::Ascending, &mut |key, value| {
        let Some(tier) = parse_key(STORE, key) else { return ControlFlow::Continue(()) };
        match (decode::<StoreRow>(META, value), &mut found) {
            (Ok(row), Ok(found)) => drop(found.insert(row.id, tier)),
            (Err(error), found) => {
                *found = Err(error);
                return ControlFlow::Break(());
            }
            (Ok(_), Err(_)) => {}
        }
        ControlFlow::Continue(())
    })?;
    found
}

/// Returns the last run that used a tier; 0 when unknown.
pub(crate) fn run(view: &dyn ReadView, tier: &TierName) -> Result<u64> {
    Ok(get::<u64>(view, META, &key(RUN, tier))?.unwrap_or(0))
}

/// Records that a run uses a tier.
pub(crate) fn record_run(tx: &mut Transaction<'_>, tier: &TierName, run: u64) -> Result<()> {
    put(tx, META, key(RUN, tier), &run)
}
