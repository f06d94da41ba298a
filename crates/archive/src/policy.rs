//! When staged bodies are sealed without an order.

use std::ops::ControlFlow;

use fulgurite_catalog::{Direction, KeyRange, ReadView as _, keys};
use fulgurite_platters::Excluded;
use fulgurite_units::UnixTime;

use crate::Result;
use crate::ground::Ground;
use crate::objects::commit::rows_in;
use crate::rows::{self, QUEUE, QueueRow};

/// Whether the policy, or an unfinished set that does not wait, requires sealing now.
pub(crate) fn is_due(ground: &Ground) -> Result<bool> {
    let under_way = ground.platters.under_way()?;
    if under_way.is_ready || under_way.is_full {
        return Ok(under_way.is_ready);
    }
    let (policy, excluded) = (&ground.config.seal, &under_way.excluded);
    let staged = rows::totals(&*ground.kv)?.staged_bytes.saturating_sub(excluded.bytes);
    if staged >= policy.staged_bytes.get() {
        return Ok(true);
    }
    let oldest = oldest_but(ground, excluded)?;
    Ok(oldest.is_some_and(|arrived| ground.now().since(arrived) >= policy.age))
}

/// Returns the arrival of the oldest staged body that is not excluded.
fn oldest_but(ground: &Ground, excluded: &Excluded) -> Result<Option<UnixTime>> {
    let all = KeyRange::prefix(b"");
    if excluded.is_empty() {
        let first: Vec<(Vec<u8>, QueueRow)> = rows_in(&*ground.kv, QUEUE, &all, 1)?;
        return Ok(first.first().map(|(_, row)| row.arrived));
    }
    let mut found = Ok(None);
    ground.kv.scan(QUEUE, &all, Direction::Ascending, &mut |key, value| {
        match keys::KeyReader::new(key).u64() {
            Ok(place) if excluded.contains(place) => return ControlFlow::Continue(()),
            Ok(_) => {
                let row = rows::decode_of::<QueueRow>(&*ground.kv, QUEUE, value);
                found = row.map(|row| Some(row.arrived));
            }
            Err(error) => found = Err(error.into()),
        }
        ControlFlow::Break(())
    })?;
    found
}
