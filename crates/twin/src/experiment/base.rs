//! Base scenarios, from which the runs of statements start.

use std::collections::BTreeMap;

use fulgurite_units::settings::{self, Spanned};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::error::{ExperimentError, SourceLocation};
use crate::scenario::{Scenario, change, parse};

/// Maximum depth of bases that extend other bases.
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
    /// Why it was chosen.
    pub source: String,
}

/// A base scenario.
#[derive(Clone, Debug)]
pub struct Base {
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) unknowns: Vec<Unknown>,
    pub(crate) table: Table,
}

/// Base scenarios by name.
#[derive(Clone, Debug, Default)]
pub struct Bases(pub(crate) BTreeMap<String, Base>);

impl Bases {
    fn table(&self, name: &str) -> Result<&Table, String> {
        let base = self.0.get(name).ok_or_else(|| format!("there is no base {name}"))?;
        Ok(&base.table)
    }

    /// Returns a base as a scenario.
    ///
    /// # Errors
    /// When there is no base of that name.
    pub fn scenario<C: Scenario>(&self, name: &str) -> Result<C, String> {
        parse(self.table(name)?)
    }

    /// Returns the number at a dotted path of a base.
    ///
    /// # Errors
    /// When there is no such base, or no number.
    pub fn number(&self, name: &str, path: &str) -> Result<f64, String> {
        number(self.table(name)?, path)
    }
}

/// Reads all bases; one may extend another, in any order.
pub(crate) fn read<C: Scenario>(files: &[SourceLocation<'_>]) -> Result<Bases, ExperimentError> {
    let mut written = BTreeMap::new();
    for place in files {
        let file: BaseFile =
            settings::from_toml(place.text).map_err(|error| place.syntax(&error))?;
        let offset = file.name.span().start;
        let name = file.name.get_ref().clone();
        if file.scenario.is_some() == file.extends.is_some() {
            let problem = "a base needs either a scenario or a base to extend, not both";
            return Err(place.meaning(offset, "scenario", problem));
        }
        if written.insert(name.clone(), (place, file)).is_some() {
            return Err(place.meaning(offset, "name", format!("there are two bases {name}")));
        }
    }
    let mut bases = BTreeMap::new();
    for (name, (place, file)) in &written {
        let offset = file.name.span().start;
        let table = table::<C>(&written, file, EXTENDS_MAX)
            .and_then(|table| parse::<C>(&table).map(|_| table))
            .map_err(|problem| place.meaning(offset, "scenario", problem))?;
        let (summary, unknowns) = (file.summary.clone(), file.unknown.clone());
        bases.insert(name.clone(), Base { name: name.clone(), summary, unknowns, table });
    }
    Ok(Bases(bases))
}

fn table<C: Scenario>(
    written: &BTreeMap<String, (&SourceLocation<'_>, BaseFile)>,
    file: &BaseFile,
    left: usize,
) -> Result<Table, String> {
    let from = match (&file.scenario, &file.extends) {
        (Some(scenario), _) => C::resolve(scenario.clone())?,
        (None, Some(name)) => {
            let (_, extended) =
                written.get(name).ok_or_else(|| format!("there is no base {name}"))?;
            let left = left.checked_sub(1).ok_or("bases extend each other without end")?;
            table::<C>(written, extended, left)?
        }
        (None, None) => return Err("a base needs a scenario".to_owned()),
    };
    change::<C>(from, &file.set, &file.unset)
}

/// Returns the number at a dotted path of a base: an integer or a float. Durations and sizes are
/// strings, which are errors here.
fn number(table: &Table, path: &str) -> Result<f64, String> {
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
