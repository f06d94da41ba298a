//! `twin paper`: compares the twin with every statement of the papers.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::Output;
use fulgurite_terminal::progress::count_bar;
use fulgurite_twin::experiment::{
    ErrorKind, Expected, ExperimentError, Kind, PointCompanions, Report, Row, SourceFile, Verdict,
};
use fulgurite_twin::report::{Head, html, relation};
use fulgurite_twin::scenario::SystemName;
use fulgurite_twin::systems::{self, Workers};

use super::pool::{ThreadPool, thread_count};

/// Flags of `twin paper`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PaperArgs {
    /// The paper: silica (the default), pelican, pergamum or giza; then the statements to check
    /// (E4, L2, ...), by default all
    #[arg(value_name = "PAPER|STATEMENT")]
    words: Vec<String>,
    /// Folder of the statements and their base scenarios, instead of `experiments/PAPER`
    #[arg(long, value_name = "DIR")]
    experiments: Option<PathBuf>,
    /// Maximum number of seeds of each run
    #[arg(long, value_name = "N")]
    seeds: Option<NonZero<u32>>,
    /// Maximum number of concurrent runs; default: number of processors
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Write a report with figures (HTML)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A paper whose statements are compared with the twin.
#[derive(Clone, Copy, Debug)]
struct Paper {
    /// Its name on the command line, and of its folder of experiments.
    name: &'static str,
    system: SystemName,
    title: &'static str,
    simulated: &'static str,
    /// The bands of tolerance, described for the report.
    bands: &'static str,
}

/// All papers.
const PAPERS: [Paper; 4] = [
    Paper {
        name: "silica",
        system: SystemName::Glass,
        title: "Project Silica (SOSP 2023)",
        simulated: "The glass library of Silica (SOSP 2023), simulated; no machine was moved.",
        bands: "a fifth to either side of a stated value unless the statement is a relation",
    },
    Paper {
        name: "pelican",
        system: SystemName::Rack,
        title: "Pelican (OSDI 2014)",
        simulated: "The rack of Pelican (OSDI 2014), simulated; no disk was spun up.",
        bands: "15 % to either side of a stated value, 10 points for a share that is rejected; \
                what a relation says is strict",
    },
    Paper {
        name: "pergamum",
        system: SystemName::Tome,
        title: "Pergamum (FAST 2008)",
        simulated: "The tomes of Pergamum (FAST 2008), simulated or computed; no disk was spun up.",
        bands: "15 % to either side of a stated value, a factor of 2 for about 10^10 hours; what a \
                relation says is strict, and where a check has another band its title says so",
    },
    Paper {
        name: "giza",
        system: SystemName::Geo,
        title: "Giza (USENIX ATC 2017)",
        simulated: "The sites of Giza (USENIX ATC 2017), simulated with the controllers and rows \
                    of this project; nothing was sent or stored.",
        bands: "15 % to either side of a stated time, 2 to 5 % of what is counted; what a relation \
                says is strict, and where a check has another band its title says so",
    },
];

/// Runs `twin paper`. If no paper is named, takes the first.
pub(super) fn paper(args: &PaperArgs, out: &Output) -> anyhow::Result<()> {
    let named = args.words.first().and_then(|word| PAPERS.iter().find(|entry| entry.name == word));
    let statements = &args.words[usize::from(named.is_some())..];
    let paper = named.unwrap_or(&PAPERS[0]);
    let refuse = |error: ExperimentError| {
        let names = PAPERS.map(|paper| paper.name).join(", ");
        let message = if error.kind() == ErrorKind::NotFound {
            format!("{error}, and no paper has that name: {names}")
        } else {
            error.to_string()
        };
        anyhow::Error::from(ExitError::new(Exit::Config, message))
    };
    let folder = Path::new("experiments").join(paper.name);
    let folder = args.experiments.as_ref().unwrap_or(&folder);
    let mut suite = systems::suite(paper.system, &read(folder)?).map_err(refuse)?;
    if !statements.is_empty() {
        suite = suite.only(statements).map_err(refuse)?;
    }
    if let Some(seeds) = args.seeds {
        suite = suite.with_seeds(seeds.get()).map_err(refuse)?;
    }
    let threads = thread_count(args.threads);
    let bar = count_bar("runs", suite.job_count() as u64, false);
    let started = std::time::Instant::now();
    let report = suite.run(Workers { runner: &ThreadPool(threads), done: &|| bar.inc(1) });
    bar.finish_and_clear();
    if let Some(path) = &args.out {
        let page = html(&report, &head(paper, threads, started.elapsed().as_secs_f64()));
        std::fs::write(path, page)
            .with_context(|| format!("cannot write \"{}\"", path.display()))?;
    }
    print(&report, out)
}

fn head(paper: &Paper, threads: usize, took: f64) -> Head {
    Head {
        paper: paper.title.to_owned(),
        simulated: paper.simulated.to_owned(),
        bands: paper.bands.to_owned(),
        commit: format!("version {}", env!("CARGO_PKG_VERSION")),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        machine: format!("{threads} threads, {took:.0} s"),
    }
}

/// Reads all TOML files of the folder.
fn read(folder: &Path) -> anyhow::Result<Vec<SourceFile>> {
    let shown = folder.display();
    let entries = std::fs::read_dir(folder).with_context(|| {
        format!(
            "cannot open folder \"{shown}\" with the statements: run from the root of the \
             repository, or name the folder with --experiments"
        )
    })?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        let message = format!("there are no statements (TOML files) in \"{shown}\"");
        return Err(ExitError::new(Exit::NotFound, message).into());
    }
    paths
        .into_iter()
        .map(|path| {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read \"{name}\""))?;
            Ok(SourceFile { name, text })
        })
        .collect()
}

fn print(report: &Report, out: &Output) -> anyhow::Result<()> {
    let rows = || report.statements.iter().flat_map(|statement| &statement.rows);
    for row in rows() {
        out.json("check", row)?;
        out.text(line(row))?;
    }
    for statement in &report.statements {
        for entry in &statement.beside {
            out.text(beside(&statement.id, entry))?;
        }
    }
    let kinds = Kind::ALL.map(|kind| (report.count(kind), kind.name()));
    let kinds = kinds.into_iter().filter(|((_, all), _)| *all > 0);
    let counts: Vec<String> =
        kinds.map(|((hits, all), name)| format!("{hits} of {all} {name}")).collect();
    out.text(format!("{} checks hit, {} runs", counts.join(", "), report.jobs))
}

/// Formats the side line of a run: its tail latency, and the constraints that it must not give up.
fn beside(statement: &str, entry: &PointCompanions) -> String {
    let words = entry.companions.numbers.iter().filter_map(|number| number.words.as_deref());
    let constraints = format!("constraints {}", entry.companions.constraints.line());
    let all: Vec<&str> = words.chain([constraints.as_str()]).collect();
    format!("     {statement:<10} {:<26} {}", entry.run, all.join(", "))
}

fn line(row: &Row) -> String {
    let unit = row.details.unit;
    let shown = |value: f64| format!("{:.4}{}", value, unit.suffix());
    let paper = match &row.expected {
        Expected::Value(value) => shown(*value),
        Expected::Words(_) => "-".to_owned(),
    };
    let ours = relation(row).or_else(|| row.ours.map(shown)).unwrap_or_else(|| "none".to_owned());
    let verdict = match row.verdict {
        Verdict::Hit => "hit ",
        Verdict::Miss => "MISS",
    };
    let fitted = if row.fitted { " (fitted)" } else { "" };
    let (id, title) = (&row.id, &row.details.title);
    let problem = row.details.problem.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{verdict} {id:<10} paper {paper:>16}, ours {ours:>16}  {title}{fitted}{problem}")
}
