//! `twin sweep`: runs a scenario at all combinations of the values of one or two of its fields.

use std::num::NonZero;
use std::path::PathBuf;

use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::Output;
use fulgurite_terminal::progress::count_bar;
use fulgurite_twin::report::{sweep_page, with_range};
use fulgurite_twin::scenario::SystemName;
use fulgurite_twin::sweep::{InvalidSweep, SweepAxis, SweepMetric, SweepResult};
use fulgurite_twin::systems::{self, AnySweep, SweepError, Workers};
use serde_json::json;

use super::pool::{ThreadPool, thread_count};
use super::report::{facts, write_report};
use super::run::{change, changes, value};
use super::{invalid_input, read, read_toml, toml_error, with_line};

/// Flags of `twin sweep`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SweepArgs {
    /// Scenario file (TOML); `twin scenario` prints one
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    /// A field by its dotted path, or `shuttles` for those of the whole library, and its values; a
    /// second --over gives all combinations
    #[arg(long, value_name = "FIELD=VALUE,...", required = true, value_parser = over)]
    over: Vec<SweepAxis>,
    /// Set another field, by its dotted path; may be given several times
    #[arg(long, value_name = "FIELD=VALUE", value_parser = change)]
    set: Vec<(String, toml::Value)>,
    /// Number of seeds of each combination
    #[arg(long, value_name = "N", default_value = "3")]
    seeds: NonZero<u64>,
    /// First seed
    #[arg(long, value_name = "SEED", default_value = "1")]
    first_seed: u64,
    /// Metric to show, by its name in `run --json`; may be given several times; the default depends
    /// on the system, for example `completion.p999`
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// Maximum number of concurrent runs; default: number of processors
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Folder for sweep.html (tables and pictures) and sweep.json
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

/// Parses a field and its values. A comma inside brackets, braces or quotes does not end a value.
fn over(text: &str) -> Result<SweepAxis, String> {
    const FORM: &str = "expected FIELD=VALUE,VALUE,...";
    let (field, text) = text.split_once('=').ok_or(FORM)?;
    let mut parts = vec![String::new()];
    let (mut depth, mut quote) = (0_i32, None);
    for character in text.chars() {
        match character {
            '"' | '\'' if quote == Some(character) => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some(character),
            '[' | '{' if quote.is_none() => depth += 1,
            ']' | '}' if quote.is_none() => depth -= 1,
            ',' if quote.is_none() && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(character);
        }
    }
    let field = field.trim().to_owned();
    if field.is_empty() || parts.iter().any(|part| part.trim().is_empty()) {
        return Err(FORM.to_owned());
    }
    Ok(SweepAxis { field, values: parts.iter().map(|part| value(part.trim())).collect() })
}

/// Runs `twin sweep`.
pub(super) fn sweep(args: &SweepArgs, out: &Output) -> anyhow::Result<()> {
    let path = &args.scenario;
    let system = systems::system_of(&read(path)?).map_err(|error| toml_error(path, &error))?;
    let metrics = systems::metrics(system, &args.metric)
        .map_err(|problem| ExitError::new(Exit::Usage, format!("--metric: {problem}")))?;
    let sweep = build_sweep(system, args)?;
    let seeds: Vec<u64> =
        (0..args.seeds.get()).map(|seed| args.first_seed.saturating_add(seed)).collect();
    let labels = sweep.labels();
    let bar = count_bar("runs", (labels.len() * seeds.len()) as u64, false);
    let threads = ThreadPool(thread_count(args.threads));
    let workers = Workers { runner: &threads, done: &|| bar.inc(1) };
    let result = sweep.run(&metrics, &seeds, workers).map_err(|error| match error {
        SweepError::Scenario(error) => invalid_input("scenario", &error, Exit::Config),
        SweepError::Metric(problem) => anyhow::Error::msg(problem),
    })?;
    bar.finish_and_clear();
    print(&labels, &result, out)?;
    let Some(folder) = &args.report else { return Ok(()) };
    let text = format!("# At the first combination.\n{}", sweep.first_to_toml()?);
    let facts = facts(path, &args.set, args.first_seed, args.seeds, text);
    write_report(folder, "sweep", &sweep_page(&result, &facts), &result)
}

/// Returns all combinations, each of them valid.
fn build_sweep(system: SystemName, args: &SweepArgs) -> anyhow::Result<Box<dyn AnySweep>> {
    let table: toml::Table = read_toml(&args.scenario)?;
    let set = changes(&args.set)?;
    if let Some(over) = args.over.iter().find(|over| set.contains_key(&over.field)) {
        let message = format!("--over {}: --set changes the same field", over.field);
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    let sweep = systems::sweep(system, &table, &set, args.over.clone());
    sweep.map_err(|InvalidSweep { at, problem }| {
        let flag = |field: &str| problem.starts_with(field.rsplit('.').next().unwrap_or(field));
        let mut from_flags = args.over.iter().map(|over| &over.field).chain(set.keys());
        let file = if from_flags.any(|field| flag(field)) {
            format!("\"{}\"", args.scenario.display())
        } else {
            with_line(&args.scenario, &problem)
        };
        let at = if at.is_empty() { at } else { format!(" with {at}") };
        ExitError::new(Exit::Config, format!("{file}{at}: {problem}")).into()
    })
}

fn print(labels: &[&[String]], result: &SweepResult, out: &Output) -> anyhow::Result<()> {
    print_json_points(labels, result, out)?;
    let seeds = match result.seeds.as_slice() {
        [only] => format!("seed {only}"),
        all => format!("medians of {} seeds (min to max)", all.len()),
    };
    for metric in &result.metrics {
        out.text(format!("{}{}, simulated, {seeds}", metric.name, unit(metric)))?;
        for line in aligned(&cells(result, metric)) {
            out.text(line)?;
        }
        out.text("")?;
    }
    out.text(format!("{} runs", result.hashes.len()))
}

/// Prints a JSON line per combination, with all metrics asked for.
fn print_json_points(
    labels: &[&[String]],
    result: &SweepResult,
    out: &Output,
) -> anyhow::Result<()> {
    let seeds = result.seeds.len();
    for (index, labels) in labels.iter().enumerate() {
        let fields = result.fields.iter().zip(*labels);
        let at: serde_json::Map<String, serde_json::Value> =
            fields.map(|(field, label)| (field.field.clone(), json!(label))).collect();
        let metrics: serde_json::Map<String, serde_json::Value> = result
            .metrics
            .iter()
            .map(|metric| (metric.name.clone(), json!(metric.cells[index])))
            .collect();
        let hashes = &result.hashes[index * seeds..(index + 1) * seeds];
        out.json(
            "point",
            &json!({
                "at": at, "seeds": result.seeds, "metrics": metrics, "hashes": hashes,
            }),
        )?;
    }
    Ok(())
}

fn unit(metric: &SweepMetric) -> String {
    match metric.unit.suffix().trim() {
        "" => String::new(),
        unit => format!(", {unit}"),
    }
}

/// Returns the cells of a table with its head: rows and columns, or one row per value.
fn cells(result: &SweepResult, metric: &SweepMetric) -> Vec<Vec<String>> {
    let (rows, columns) = match result.fields.as_slice() {
        [rows, columns] => (rows, columns.values.clone()),
        [rows, ..] => (rows, vec![String::new()]),
        [] => return Vec::new(),
    };
    let corner = match result.fields.get(1) {
        Some(across) => format!("{} \\ {}", rows.field, across.field),
        None => rows.field.clone(),
    };
    let mut table = vec![std::iter::once(corner).chain(columns.iter().cloned()).collect()];
    for (value, cells) in rows.values.iter().zip(metric.cells.chunks(columns.len())) {
        let shown = cells.iter().map(|cell| with_range(cell, metric.unit));
        table.push(std::iter::once(value.clone()).chain(shown).collect());
    }
    table
}

/// Formats lines with aligned columns.
fn aligned(table: &[Vec<String>]) -> Vec<String> {
    let widths: Vec<usize> = (0..table.first().map_or(0, Vec::len))
        .map(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let padded = row.iter().zip(&widths).map(|(text, width)| format!("{text:<width$}"));
        format!("  {}", padded.collect::<Vec<_>>().join("   ").trim_end())
    };
    table.iter().map(line).collect()
}
