//! When staged bodies are sealed without an order.

use std::ops::ControlFlow;

use fulgurite_catalog::{Direction, KeyRange, ReadView as _, keys};
use fulgurite_glass::Excluded;
use fulgurite_units::UnixTime;

use crate::Result;
use crate::rows::lookup::rows_in;
use crate::rows::{self, QUEUE, QueueRow};
use crate::state::ArchiveState;

/// Whether the policy, or an unfinished set that does not wait, requires sealing now.
pub(crate) fn is_due(state: &ArchiveState) -> Result<bool> {
    let seal_readiness = state.platters.seal_readiness()?;
    if seal_readiness.is_ready || seal_readiness.is_full {
        return Ok(seal_readiness.is_ready);
    }
    let (policy, excluded) = (&state.config.seal, &seal_readiness.excluded);
    let staged = rows::totals(&*state.kv)?.staged_bytes.saturating_sub(excluded.bytes);
    if staged >= policy.staged_bytes.get() {
        return Ok(true);
    }
    let oldest = oldest_but(state, excluded)?;
    Ok(oldest.is_some_and(|arrived| state.now().since(arrived) >= policy.age))
}

/// Returns the arrival of the oldest staged body that is not excluded.
fn oldest_but(state: &ArchiveState, excluded: &Excluded) -> Result<Option<UnixTime>> {
    let all = KeyRange::prefix(b"");
    if excluded.is_empty() {
        let first: Vec<(Vec<u8>, QueueRow)> = rows_in(&*state.kv, QUEUE, &all, 1)?;
        return Ok(first.first().map(|(_, row)| row.arrived));
    }
    let mut found = Ok(None);
    state.kv.scan(QUEUE, &all, Direction::Ascending, &mut |key, value| {
        match keys::KeyReader::new(key).u64() {
            Ok(place) if excluded.contains(place) => return ControlFlow::Continue(()),
            Ok(_) => {
                let row = rows::decode_row::<QueueRow>(&*state.kv, QUEUE, value);
                found = row.map(|row| Some(row.arrived));
            }
            Err(error) => found = Err(error.into()),
        }
        ControlFlow::Break(())
    })?;
    found
}
