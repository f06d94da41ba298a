//! Scenarios as files: a table of fields, changed by dotted path and then parsed, so that an
//! invalid path is an error.
//!
//! ```text
//!   file --> Table --resolve: names--> set, unset: fields, then words --> parse --> Scenario
//! ```

use std::collections::BTreeMap;
use std::fmt::Debug;

use fulgurite_units::{Duration, settings};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::Error;

/// The scenario of a system, as read from a file.
pub trait Scenario: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Words that can be set and swept instead of a field, like `shuttles` for those of all panels.
    const ALIASES: &'static [&'static str] = &[];

    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    fn check(&self) -> Result<(), Error>;

    /// Returns the measured window: arrivals from the first time on, and before the second.
    fn window(&self) -> [Duration; 2];

    /// Returns a table in which named parts are replaced by their settings.
    ///
    /// # Errors
    /// When a name is unknown.
    fn resolve(table: Table) -> Result<Table, String> {
        Ok(table)
    }

    /// Returns the field that a word stands for, and its value there.
    ///
    /// # Errors
    /// When there is no such value.
    fn field(_table: &Table, word: &str, _value: &Value) -> Result<(String, Value), String> {
        Err(format!("there is no word {word}"))
    }
}

/// The systems that have scenario files: the tiers, and a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemName {
    /// A glass library; the default for a file that names no system.
    #[default]
    Glass,
    /// A rack of cold disks.
    Rack,
    /// A set of tomes.
    Tome,
    /// Several sites.
    Geo,
    /// A queue, whose waits are known in closed form.
    Queue,
}

/// The part of a scenario file that is read first: its system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Head {
    /// The system.
    #[serde(default)]
    pub system: SystemName,
}

/// Returns the scenario of a file with fields set by dotted path; named parts may be given by name.
///
/// # Errors
/// The problem, in one line: the invalid path, the unknown field, or the value out of range.
pub fn with_overrides<C: Scenario>(scenario: Table, set: &Table) -> Result<C, String> {
    parse(&change::<C>(C::resolve(scenario)?, set, &[])?)
}

/// Returns `from` with fields set by path, then words, which depend on fields, then fields removed.
pub(crate) fn change<C: Scenario>(
    from: Table,
    set: &Table,
    unset: &[String],
) -> Result<Table, String> {
    let mut table = from;
    // Sorted by name, so that `policy` is set before `policy.customer_slots`.
    let sorted: BTreeMap<_, _> = set.iter().collect();
    let is_word = |path: &str| C::ALIASES.contains(&path);
    for (path, value) in sorted.iter().filter(|(path, _)| !is_word(path)) {
        let (parent, key) = parent(&mut table, path)?;
        parent.insert(key.to_owned(), (*value).clone());
        table = C::resolve(table)?;
    }
    for (word, value) in sorted.iter().filter(|(path, _)| is_word(path)) {
        let (path, value) = C::field(&table, word, value)?;
        let (parent, key) = parent(&mut table, &path)?;
        parent.insert(key.to_owned(), value);
    }
    for path in unset {
        let (parent, key) = parent(&mut table, path)?;
        parent.remove(key);
    }
    Ok(table)
}

/// Fills in the fields that `table` omits in the tables `names` from `defaults`, so that they can
/// be set.
pub(crate) fn fill_defaults<C: Scenario>(
    table: Table,
    defaults: &C,
    names: &[&str],
) -> Result<Table, String> {
    // As text, because scenarios are written as text as well: one serializer is enough.
    let defaults = toml::to_string(defaults).map_err(|error| error.to_string())?;
    with_defaults(table, &defaults, names)
}

fn with_defaults(mut table: Table, defaults: &str, names: &[&str]) -> Result<Table, String> {
    let defaults: Table = defaults.parse().map_err(|error: toml::de::Error| error.to_string())?;
    for name in names {
        let Some(Value::Table(fields)) = defaults.get(*name) else { continue };
        let part = table.entry(*name).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(part) = part else { continue };
        for (field, value) in fields {
            part.entry(field.clone()).or_insert_with(|| value.clone());
        }
    }
    Ok(table)
}

/// Returns the table that a dotted path leads to, and the last word of the path.
fn parent<'a, 'p>(table: &'a mut Table, path: &'p str) -> Result<(&'a mut Table, &'p str), String> {
    let Some((way, key)) = path.rsplit_once('.') else {
        return Ok((table, path));
    };
    let mut table = table;
    for word in way.split('.') {
        let next = table.get_mut(word).and_then(Value::as_table_mut);
        table = next.ok_or_else(|| format!("{path}: there is no table {word}"))?;
    }
    Ok((table, key))
}

/// Parses the scenario of a table.
///
/// # Errors
/// The problem, in one line.
pub fn parse<C: Scenario>(table: &Table) -> Result<C, String> {
    let scenario: C = settings::from_table(table)
        .map_err(|error| error.to_string().trim_end().replace('\n', " "))?;
    scenario.check().map_err(|error| error.to_string())?;
    Ok(scenario)
}

/// Returns the label of a point with this value.
pub(crate) fn label(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_)
        | Value::Table(_) => value.to_string(),
    }
}

/// Returns a value as a number, if it is one.
pub(crate) fn number(value: &Value) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "values of a sweep are small")]
    let integer = value.as_integer().map(|number| number as f64);
    integer.or_else(|| value.as_float())
}
