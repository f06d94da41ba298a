//! `twin run`: a scenario, with one or more seeds.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use fulgurite_library::log::{End, LogError, LogWriter};
use fulgurite_library::{
    Library, LibraryShape, MechanicsParameters, POLICY_NAMES, Policy, Throughput,
};
use fulgurite_twin::Scenario;
use fulgurite_twin::engine::{self, Observer, Silent, System, run_observed};
use fulgurite_twin::giza::{self, Sites};
use fulgurite_twin::glass::scenario::{Named, Recovery, Writes};
use fulgurite_twin::glass::{Glass, Seen};
use fulgurite_twin::measured::Measured;
use fulgurite_twin::queue::{self, Queue};
use fulgurite_twin::rack::{self, Rack};
use fulgurite_twin::report::{ResultRow, run_page};
use fulgurite_twin::reported::{Number, Reported, Shown};
use fulgurite_twin::scenario::{Head, SystemName, changed};
use fulgurite_twin::tomes::{self, Tomes};
use fulgurite_units::{ByteCount, Instant, Ratio};
use serde_json::json;

use super::pool::{share, thread_count};
use super::report::{facts, write_report};
use super::{create, located, named_workload, percent, read_toml, wrong};
use crate::exit::{Coded, Exit};
use crate::output::{Output, grouped, seconds};
use crate::progress::count_bar;

/// Flags of `twin scenario`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ScenarioArgs {
    /// Reads: typical, iops or volume
    #[arg(value_name = "WORKLOAD", value_parser = ["typical", "iops", "volume"])]
    workload: String,
    /// How the library decides
    #[arg(long, value_name = "NAME", default_value = "fulgurite",
        value_parser = PossibleValuesParser::new(POLICY_NAMES))]
    policy: String,
}

/// Flags of `twin run`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Scenario file (TOML); `twin scenario` prints one
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    /// Seeds to run
    #[arg(long, value_name = "N", default_value = "1")]
    seeds: NonZero<u64>,
    /// The first of them
    #[arg(long, value_name = "SEED", default_value = "1")]
    first_seed: u64,
    /// Change a field of the scenario, by its dotted path; may be given several times
    #[arg(long, value_name = "FIELD=VALUE", value_parser = change)]
    set: Vec<(String, toml::Value)>,
    /// Runs at one time; by default as many as there are processors
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Write what the library of the first seed is told and decides
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Folder for run.html, what waits and what each machine does over time, and run.json
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

/// A change of a field: the value as in the file, or a text without its quotes.
pub(super) fn change(text: &str) -> Result<(String, toml::Value), String> {
    let (field, text) = text.split_once('=').ok_or("it is not FIELD=VALUE")?;
    let (field, text) = (field.trim(), text.trim());
    if field.is_empty() || text.is_empty() {
        return Err("it is not FIELD=VALUE".to_owned());
    }
    Ok((field.to_owned(), value(text)))
}

/// A value as in a file, or a text without its quotes.
pub(super) fn value(text: &str) -> toml::Value {
    let read = toml::from_str::<toml::Table>(&format!("value = {text}"));
    let read = read.ok().filter(|table| table.len() == 1);
    let read = read.and_then(|mut table| table.remove("value"));
    read.unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// Prints a scenario: the paper's minimum deployment with some workload.
pub(super) fn scenario(args: &ScenarioArgs, out: &Output) -> anyhow::Result<()> {
    let workload = named_workload(&args.workload).unwrap_or_default();
    let (platters, shard_size) = match args.workload.as_str() {
        "volume" => (8_000, 4_000_000_000),
        _ => (2_000, 1_000_000_000),
    };
    let scenario = Scenario {
        system: Named::Glass,
        library: LibraryShape { spare_slots_per_shelf: 1, ..LibraryShape::mdu() },
        policy: Policy::named(&args.policy)?,
        mechanics: MechanicsParameters::PAPER,
        throughput: Throughput::PAPER,
        track_size: ByteCount::new(20_000_000),
        platters,
        shard_size: ByteCount::new(shard_size),
        unavailable: Ratio::ZERO,
        recovery_reads: 16,
        recovery: Recovery::Anywhere,
        measure_from: workload.envelope.window_from().since(Instant::ZERO),
        measure_until: workload.envelope.window_until().since(Instant::ZERO),
        workload,
        writes: Writes::Saturated { platter_size: ByteCount::new(2_000_000_000_000) },
        faults: Vec::new(),
        restores: None,
        battery: None,
    };
    out.json(&scenario)?;
    out.text(toml::to_string(&scenario)?.trim_end())
}

/// Runs `twin run`.
pub(super) fn run(args: &RunArgs, out: &Output) -> anyhow::Result<()> {
    match read_toml::<Head>(&args.scenario)?.system {
        SystemName::Glass => run_system::<Glass>(args, out),
        SystemName::Queue => run_system::<Queue>(args, out),
        SystemName::Pelican => run_system::<Rack>(args, out),
        SystemName::Pergamum => run_system::<Tomes>(args, out),
        SystemName::Giza => run_system::<Sites>(args, out),
    }
}

fn run_system<S: Logged>(args: &RunArgs, out: &Output) -> anyhow::Result<()>
where
    S::Result: Send,
{
    let shown = format!("\"{}\"", args.scenario.display());
    let scenario = read_scenario::<S::Scenario>(args, &shown)?;
    let count = usize::try_from(args.seeds.get())?;
    let bar = count_bar("seeds", args.seeds.get(), false);
    let mut results: Vec<Option<anyhow::Result<Watched<S>>>> = Vec::new();
    results.resize_with(count, || None);
    let work = |index: usize| {
        let log = args.log.as_deref().filter(|_| index == 0);
        let seed = args.first_seed.saturating_add(index as u64);
        simulate::<S>(&scenario, seed, log, args.report.is_some())
    };
    share(thread_count(args.threads), count, work, &mut |index, result| {
        bar.inc(1);
        results[index] = Some(result);
    });
    bar.finish_and_clear();
    let results: Vec<Watched<S>> = results.into_iter().flatten().collect::<Result<_, _>>()?;
    let (results, courses): (Vec<S::Result>, Vec<Option<S::Course>>) = results.into_iter().unzip();
    for result in &results {
        let held = S::findings(&scenario, result);
        out.json(&json!({ "type": "run", "run": result, "constraints": held }))?;
    }
    let rows = print(&results, &S::rows(&scenario, &results), out)?;
    let (of, summary) = (S::constraints(&scenario), S::summary(&scenario, &results));
    out.json(&json!({ "type": "constraints", "of": of, "summary": summary }))?;
    out.text(format!("{:<22}{}", "constraints", summary.line()))?;
    let Some(folder) = &args.report else { return Ok(()) };
    let courses: Vec<S::Course> = courses.into_iter().flatten().collect();
    let facts = facts(&args.scenario, &args.set, args.first_seed, args.seeds, &scenario)?;
    let json = json!({ "scenario": scenario, "runs": results, "courses": courses });
    write_report(folder, "run", &run_page::<S>(&scenario, &courses, &rows, &facts), &json)
}

fn read_scenario<C: fulgurite_twin::scenario::Scenario>(
    args: &RunArgs,
    shown: &str,
) -> anyhow::Result<C> {
    if args.set.is_empty() {
        let scenario: C = read_toml(&args.scenario)?;
        scenario.check().map_err(|error| {
            wrong(&located(&args.scenario, &error.to_string()), &error, Exit::Config)
        })?;
        return Ok(scenario);
    }
    changed(read_toml(&args.scenario)?, &changes(&args.set)?).map_err(|problem| {
        let changes: Vec<String> =
            args.set.iter().map(|(field, value)| format!("{field}={value}")).collect();
        let message = format!("{shown} with --set {}: {problem}", changes.join(" --set "));
        Coded::new(Exit::Config, message).into()
    })
}

/// The changes of `--set`, each field once.
pub(super) fn changes(set: &[(String, toml::Value)]) -> anyhow::Result<toml::Table> {
    let mut changes = toml::Table::new();
    for (field, value) in set {
        if changes.insert(field.clone(), value.clone()).is_some() {
            let message = format!("--set {field}: it is given twice");
            return Err(Coded::new(Exit::Usage, message).into());
        }
    }
    Ok(changes)
}

/// What a run measured, and its course if that was recorded.
type Watched<S> = (<S as System>::Result, Option<<S as Reported>::Course>);

/// A system whose runs may be logged.
trait Logged: Reported {
    type Log: Observer<Self>;

    fn log(scenario: &Self::Scenario, path: &Path) -> anyhow::Result<Self::Log>;

    /// Ends a log, and says whether all of it was written.
    fn end(log: Self::Log) -> anyhow::Result<()>;
}

impl Logged for Glass {
    type Log = Logging<std::io::BufWriter<std::fs::File>>;

    fn log(scenario: &Scenario, path: &Path) -> anyhow::Result<Self::Log> {
        Logging::new(scenario, path)
    }

    fn end(Logging { log, failed }: Self::Log) -> anyhow::Result<()> {
        if let Some(error) = failed {
            return Err(error.into());
        }
        log.end(End::Stopped)?;
        Ok(())
    }
}

impl Logged for Queue {
    type Log = Silent;

    fn log(_: &queue::Scenario, _: &Path) -> anyhow::Result<Silent> {
        let message = "--log: a queue has no library, and only libraries have logs";
        Err(Coded::new(Exit::Usage, message).into())
    }

    fn end(_: Silent) -> anyhow::Result<()> {
        Ok(())
    }
}

impl Logged for Rack {
    type Log = Silent;

    fn log(_: &rack::Scenario, _: &Path) -> anyhow::Result<Silent> {
        let message = "--log: a rack has no library, and only libraries have logs";
        Err(Coded::new(Exit::Usage, message).into())
    }

    fn end(_: Silent) -> anyhow::Result<()> {
        Ok(())
    }
}

impl Logged for Tomes {
    type Log = Silent;

    fn log(_: &tomes::Scenario, _: &Path) -> anyhow::Result<Silent> {
        let message = "--log: tomes have no library, and only libraries have logs";
        Err(Coded::new(Exit::Usage, message).into())
    }

    fn end(_: Silent) -> anyhow::Result<()> {
        Ok(())
    }
}

impl Logged for Sites {
    type Log = Silent;

    fn log(_: &giza::Scenario, _: &Path) -> anyhow::Result<Silent> {
        let message = "--log: sites have no library, and only libraries have logs";
        Err(Coded::new(Exit::Usage, message).into())
    }

    fn end(_: Silent) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Runs one seed; with its log written, and its course recorded, if that is asked for.
fn simulate<S: Logged>(
    scenario: &S::Scenario,
    seed: u64,
    log: Option<&Path>,
    report: bool,
) -> anyhow::Result<Watched<S>> {
    let wrong_scenario = |error| wrong("scenario", &error, Exit::Config);
    if log.is_none() && !report {
        let result = engine::run::<S>(scenario, seed).map_err(wrong_scenario)?;
        return Ok((result, None));
    }
    let log = log.map(|path| S::log(scenario, path)).transpose()?;
    let mut watching = (log, report.then(|| S::recorder(scenario, seed)));
    let result = run_observed::<S, _>(scenario, seed, &mut watching).map_err(wrong_scenario)?;
    let (log, recorder) = watching;
    log.map(S::end).transpose()?;
    Ok((result, recorder.map(S::course)))
}

/// Writes the log of a simulated library.
struct Logging<W> {
    log: LogWriter<W>,
    failed: Option<LogError>,
}

impl Logging<std::io::BufWriter<std::fs::File>> {
    fn new(scenario: &Scenario, path: &Path) -> anyhow::Result<Self> {
        let library = Library::with_policy(&scenario.library, scenario.policy.clone())?;
        Ok(Self { log: LogWriter::new(create(path)?, &library)?, failed: None })
    }
}

impl<W: std::io::Write> Logging<W> {
    fn note(&mut self, written: Result<(), LogError>) {
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

impl<W: std::io::Write> Observer<Glass> for Logging<W> {
    fn see(&mut self, now: Instant, seen: Seen<'_>) {
        match seen {
            Seen::Event(event) => {
                let written = self.log.event(now, event);
                self.note(written);
            }
            Seen::Output(output) => {
                let written = self.log.output(output);
                self.note(written);
            }
            Seen::Stepped(_) | Seen::Told(_) | Seen::Decided(_) => {}
        }
    }
}

/// A number of a run in words.
fn show(shown: Shown, value: f64) -> String {
    match shown {
        Shown::Time => seconds(value),
        Shown::Share => percent(value),
        Shown::Count => number(value),
        Shown::Decimal => ratio(value),
    }
}

fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are whole, not negative, and float casts saturate"
)]
fn number(value: f64) -> String {
    grouped(value as u64)
}

/// Seeds that get a column of their own.
const COLUMNS_MAX: usize = 5;

/// Prints all metrics, and hands on what it printed.
fn print<R: Measured>(
    results: &[R],
    numbers: &[Number<R>],
    out: &Output,
) -> anyhow::Result<Vec<ResultRow>> {
    let mut medians = serde_json::Map::new();
    let mut rows = Vec::new();
    let seeds: String =
        results.iter().take(COLUMNS_MAX).map(|r| format!("{:>12}", r.seed())).collect();
    out.text(format!("{:<22}{:>12}{:>12}{:>12}   seeds{seeds}", "", "median", "min", "max"))?;
    for &Number { name, shown, of } in numbers {
        let mut values: Vec<f64> = results.iter().map(of).collect();
        let each: Vec<String> = values.iter().take(COLUMNS_MAX).map(|v| show(shown, *v)).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (values[0], values[values.len() - 1]);
        let median = values[values.len() / 2];
        medians.insert(name.replace([' ', '-'], "_").replace('.', "_"), json!(median));
        let all = [median, min, max].map(|value| show(shown, value));
        let wide = |texts: &[String]| -> String {
            texts.iter().map(|text| format!("{text:>12}")).collect()
        };
        out.text(format!("{name:<22}{}        {}", wide(&all), wide(&each)))?;
        rows.push(ResultRow { name: name.to_owned(), all, each });
    }
    out.json(&json!({ "type": "medians", "seeds": results.len(), "medians": medians }))?;
    let hashes: Vec<String> = results.iter().map(|r| format!("{:016x}", r.hash())).collect();
    out.text(format!("{:<22}{}", "hash", hashes.join(" ")))?;
    Ok(rows)
}
