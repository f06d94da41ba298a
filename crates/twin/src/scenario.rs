//! Scenarios as files: a table of fields, changed by dotted path and then read, so that a path that
//! leads nowhere is an error.
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

/// What is simulated of a system, as a file says it.
pub trait Scenario: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Words that can be set and swept in place of a field, like `shuttles` for those of all
    /// panels.
    const WORDS: &'static [&'static str] = &[];

    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    fn check(&self) -> Result<(), Error>;

    /// What arrives from the first on and before the second is measured.
    fn window(&self) -> [Duration; 2];

    /// A table in which things that are given by name are spelled out.
    ///
    /// # Errors
    /// When nothing has a name.
    fn resolve(table: Table) -> Result<Table, String> {
        Ok(table)
    }

    /// The field that a word stands for, and its value there.
    ///
    /// # Errors
    /// When there is no such value.
    fn field(_table: &Table, word: &str, _value: &Value) -> Result<(String, Value), String> {
        Err(format!("there is no word {word}"))
    }
}

/// The systems that a scenario file can be of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemName {
    /// A glass library. What a file is of that says nothing.
    #[default]
    Glass,
    /// A queue, whose waits are known in closed form.
    Queue,
    /// A rack of cold disks (Pelican).
    Pelican,
    /// A set of tomes (Pergamum).
    Pergamum,
    /// Several sites (Giza).
    Giza,
}

/// What is looked at first in a scenario file: of which system it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Head {
    /// The system.
    #[serde(default)]
    pub system: SystemName,
}

/// A scenario file with fields set by dotted path; what has a name may be named.
///
/// # Errors
/// What is wrong, in one line: the path that leads nowhere, the field that is unknown, or the
/// value that is out of its limits.
pub fn changed<C: Scenario>(scenario: Table, set: &Table) -> Result<C, String> {
    parse(&change::<C>(C::resolve(scenario)?, set, &[])?)
}

/// `from` with fields set by path, then words, which depend on fields, then fields taken away.
pub(crate) fn change<C: Scenario>(
    from: Table,
    set: &Table,
    unset: &[String],
) -> Result<Table, String> {
    let mut table = from;
    // In the order of their names, so that `policy` is set before `policy.customer_slots`.
    let sorted: BTreeMap<_, _> = set.iter().collect();
    let is_word = |path: &str| C::WORDS.contains(&path);
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

/// `table` with the fields that it leaves out of the tables `names`, as they are in `defaults`, so
/// that they can be set.
pub(crate) fn fill_in<C: Scenario>(
    table: Table,
    defaults: &C,
    names: &[&str],
) -> Result<Table, String> {
    // As text, for scenarios are written as text as well: one serializer of them is enough.
    let defaults = toml::to_string(defaults).map_err(|error| error.to_string())?;
    filled_in(table, &defaults, names)
}

fn filled_in(mut table: Table, defaults: &str, names: &[&str]) -> Result<Table, String> {
    let defaults: Table = defaults.parse().map_err(|error: toml::de::Error| error.to_string())?;
    for name in names {
        let Some(Value::Table(fields)) = defaults.get(*name) else { continue };
        let given = table.entry(*name).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(given) = given else { continue };
        for (field, value) in fields {
            given.entry(field.clone()).or_insert_with(|| value.clone());
        }
    }
    Ok(table)
}

/// The table a dotted path leads to, and the last word of the path.
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

/// The scenario a table spells out.
///
/// # Errors
/// What is wrong, in one line.
pub fn parse<C: Scenario>(table: &Table) -> Result<C, String> {
    let scenario: C = settings::from_table(table)
        .map_err(|error| error.to_string().trim_end().replace('\n', " "))?;
    scenario.check().map_err(|error| error.to_string())?;
    Ok(scenario)
}

/// A value as a point is named by it.
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

/// A value as a number, if it is one.
pub(crate) fn number(value: &Value) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "values of a sweep are small")]
    let integer = value.as_integer().map(|number| number as f64);
    integer.or_else(|| value.as_float())
}
