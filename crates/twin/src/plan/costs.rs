//! What the cost tables of planners share: every default is assumed, and marked so.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::Error;

fn fields<T: Serialize>(table: &T) -> Map<String, Value> {
    let table = serde_json::to_value(table).unwrap_or_default();
    table.as_object().cloned().unwrap_or_default()
}

/// Returns the names of all fields with the assumed default.
pub(crate) fn assumed<T: Serialize + Default>(table: &T) -> Vec<String> {
    let default = fields(&T::default());
    let same = fields(table).into_iter().filter(|(name, value)| default.get(name) == Some(value));
    same.map(|(name, _)| name).collect()
}

/// Checks that all prices and powers are in range.
///
/// # Errors
/// Names the first that is not.
pub(crate) fn check<T: Serialize>(table: &T) -> Result<(), Error> {
    for (name, value) in fields(table).into_iter().filter(|(name, _)| name != "currency") {
        // JSON has no number for values that are not finite.
        if value.as_f64().is_none_or(|value| !(0.0..=1e12).contains(&value)) {
            return Err(Error::Costs { problem: format!("{name} must be from 0 to 1e12") });
        }
    }
    Ok(())
}
