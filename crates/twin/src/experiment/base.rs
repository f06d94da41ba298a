//! Base scenarios, and how a run's scenario is made of one: fields set by path, then parsed, so
//! that a path that does not exist is an error.

use std::collections::BTreeMap;

use fulgurite_library::Policy;
use serde::{Deserialize, Serialize};
use toml::{Spanned, Table, Value};

use super::error::{ExperimentError, Whereabouts};
use crate::glass::scenario::Scenario;

/// Bases that extend bases that extend bases.
const EXTENDS_MAX: usize = 8;

/// A base scenario as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaseFile {
    name: Spanned<String>,
    summary: String,
    #[serde(default)]
    extends: Option<String>,
    #[serde(default)]
    set: Table,
    #[serde(default)]
    unset: Vec<String>,
    #[serde(default)]
    unknown: Vec<Unknown>,
    #[serde(default)]
    scenario: Option<Table>,
}

/// A value the paper does not give.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// The field.
    pub field: String,
    /// The value chosen.
    pub value: String,
    /// Why this one.
    pub source: String,
}

/// A base scenario.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) unknowns: Vec<Unknown>,
    pub(crate) table: Table,
}

/// Reads all bases; one may extend another, whatever their order.
pub(crate) fn read(files: &[Whereabouts<'_>]) -> Result<BTreeMap<String, Base>, ExperimentError> {
    let mut written = BTreeMap::new();
    for place in files {
        let file: BaseFile = toml::from_str(place.text).map_err(|error| place.syntax(&error))?;
        let offset = file.name.span().start;
        let name = file.name.get_ref().clone();
        if file.scenario.is_some() == file.extends.is_some() {
            let problem = "a base has either a scenario or a base that it extends";
            return Err(place.meaning(offset, "scenario", problem));
        }
        if written.insert(name.clone(), (place, file)).is_some() {
            return Err(place.meaning(offset, "name", format!("{name} is there twice")));
        }
    }
    let mut bases = BTreeMap::new();
    for (name, (place, file)) in &written {
        let offset = file.name.span().start;
        let table = table(&written, file, EXTENDS_MAX)
            .and_then(|table| parse(&table).map(|_| table))
            .map_err(|problem| place.meaning(offset, "scenario", problem))?;
        let (summary, unknowns) = (file.summary.clone(), file.unknown.clone());
        bases.insert(name.clone(), Base { name: name.clone(), summary, unknowns, table });
    }
    Ok(bases)
}

fn table(
    written: &BTreeMap<String, (&Whereabouts<'_>, BaseFile)>,
    file: &BaseFile,
    left: usize,
) -> Result<Table, String> {
    let from = match (&file.scenario, &file.extends) {
        (Some(scenario), _) => resolve(scenario.clone())?,
        (None, Some(name)) => {
            let (_, extended) =
                written.get(name).ok_or_else(|| format!("there is no base {name}"))?;
            let left = left.checked_sub(1).ok_or("bases extend each other without end")?;
            table(written, extended, left)?
        }
        (None, None) => return Err("a base needs a scenario".to_owned()),
    };
    change(from, &file.set, &file.unset)
}

/// A scenario file with fields set by dotted path; a policy may be named.
///
/// # Errors
/// What is wrong, in one line: the path that leads nowhere, the field that is unknown, or the
/// value that is out of its limits.
pub fn changed(scenario: Table, set: &Table) -> Result<Scenario, String> {
    parse(&change(resolve(scenario)?, set, &[])?)
}

/// `from` with fields set by path, then fields taken away.
pub(crate) fn change(from: Table, set: &Table, unset: &[String]) -> Result<Table, String> {
    let mut table = from;
    // In the order of their names, so that `policy` is set before `policy.customer_slots`.
    let sorted: BTreeMap<_, _> = set.iter().collect();
    for (path, value) in sorted {
        let (parent, key) = parent(&mut table, path)?;
        parent.insert(key.to_owned(), value.clone());
        table = resolve(table)?;
    }
    for path in unset {
        let (parent, key) = parent(&mut table, path)?;
        parent.remove(key);
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

/// A policy given by name becomes the policy.
pub(crate) fn resolve(mut table: Table) -> Result<Table, String> {
    if let Some(Value::String(name)) = table.get("policy") {
        let policy = Policy::named(name).map_err(|error| error.to_string())?;
        let value = Value::try_from(policy).map_err(|error| error.to_string())?;
        table.insert("policy".to_owned(), value);
    }
    Ok(table)
}

/// The scenario a table spells out.
pub(crate) fn parse(table: &Table) -> Result<Scenario, String> {
    let scenario = Scenario::deserialize(table.clone())
        .map_err(|error| error.to_string().trim_end().replace('\n', " "))?;
    scenario.validate().map_err(|error| error.to_string())?;
    scenario.workload.validate().map_err(|error| error.to_string())?;
    Ok(scenario)
}

/// The number at a dotted path of a base: integers, floats, and durations and sizes in their texts.
pub(crate) fn number(table: &Table, path: &str) -> Result<f64, String> {
    let none = || format!("{path} is not a number of the scenario");
    let mut words = path.split('.');
    let mut value = words.next().and_then(|word| table.get(word)).ok_or_else(none)?;
    for word in words {
        value = value.get(word).ok_or_else(none)?;
    }
    match value {
        #[expect(clippy::cast_precision_loss, reason = "counts of a scenario are small")]
        Value::Integer(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        Value::String(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_)
        | Value::Table(_) => Err(none()),
    }
}
