//! `lab compare`: compares the fidelities, metric by metric.
//!
//! The `analog` sectors are not those that the statistics were fitted to. The spread of sectors is
//! wide, so two samples of one fidelity differ too: a metric agrees when the values are within 5 %,
//! or their 95 % intervals overlap. However many sectors are drawn from statistics, they know no
//! more about rare events than the sectors that these were fitted to: the share of lost sectors at
//! `soft` and `sector` has at least the interval of the statistics.

use std::path::PathBuf;

use anyhow::Context as _;
use fulgurite_decode::{Interval, SoftStatistics};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::Output;
use serde::Serialize;

use super::ReaderArgs;
use super::picture::{self, Panel};
use super::sample::{Read, Reads, Sample, mean, sector, soft, wilson};

/// Flags of `lab compare`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct CompareArgs {
    /// Statistics written by lab calibrate
    #[arg(value_name = "STATISTICS")]
    statistics: PathBuf,
    #[command(flatten)]
    reader: ReaderArgs,
    /// Sectors at analog
    #[arg(long, value_name = "COUNT", default_value_t = 500,
          value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    sectors: u64,
    /// Sectors at soft, and at sector
    #[arg(long, value_name = "COUNT", default_value_t = 20_000,
          value_parser = clap::value_parser!(u64).range(2..=100_000_000))]
    soft_sectors: u64,
    /// Seed of the sectors, drives and platters
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    seed: u64,
    /// File to draw the comparison into, as SVG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

/// Tolerated relative difference of values.
const TOLERANCE: f64 = 0.05;

/// One metric at each fidelity.
#[derive(Clone, Copy, Debug, Serialize)]
struct Row {
    metric: &'static str,
    analog: Interval,
    soft: Interval,
    /// `None` if fidelity `sector` does not have the metric.
    sector: Option<Interval>,
    agree: bool,
}

/// Runs `lab compare`.
pub(super) fn compare(args: &CompareArgs, out: &Output) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(&args.statistics)
        .with_context(|| format!("cannot read \"{}\"", args.statistics.display()))?;
    let statistics = SoftStatistics::from_json(&text).map_err(|error| {
        let message = format!("\"{}\": {error}", args.statistics.display());
        anyhow::Error::from(ExitError::new(Exit::Config, message))
    })?;
    if statistics.preset != args.reader.channel {
        let message = format!(
            "\"{}\" is of channel {}; say --channel {0}",
            args.statistics.display(),
            statistics.preset
        );
        return Err(ExitError::new(Exit::Config, message).into());
    }
    let channel = args.reader.channel()?;
    let (decoder, make) = args.reader.decoder()?;
    let sample =
        Sample { channel: &channel, decoder: &make, seed: args.seed, sectors: args.sectors };
    let analog = sample.analog(out, &mut |_, _, _, _| {})?;
    let drawn = soft(&statistics, args.seed, args.soft_sectors)?;
    let outcomes = sector(&statistics, args.seed, args.soft_sectors)?;
    let rows = rows(&analog, &drawn, &outcomes, &statistics.failure_rate);
    for row in &rows {
        out.json("comparison", row)?;
    }
    out.text(format!(
        "channel {} (simulated), decoder {decoder}; statistics of {}\n\
         {} sectors at analog, {} at soft and sector; 95 % intervals\n\n\
         {:20} {:^30} {:^30} {:^30}  agree",
        args.reader.channel,
        statistics.decoder,
        args.sectors,
        args.soft_sectors,
        "",
        "analog",
        "soft",
        "sector"
    ))?;
    for row in &rows {
        let show = |Interval { value, low, high }: &Interval| {
            format!("{value:.3e} ({low:.2e}, {high:.2e})")
        };
        let sector = row.sector.as_ref().map_or_else(|| "-".to_owned(), show);
        let agree = if row.agree { "yes" } else { "NO" };
        out.text(format!(
            "{:20} {:^30} {:^30} {sector:^30}  {agree}",
            row.metric,
            show(&row.analog),
            show(&row.soft)
        ))?;
    }
    if let Some(path) = &args.picture {
        let title = format!(
            "channel {} (simulated), decoder {decoder}: {} sectors at analog, {} at soft, sector",
            args.reader.channel, args.sectors, args.soft_sectors
        );
        let picture = picture::draw(&title, &rows.iter().map(Row::panel).collect::<Vec<_>>())?;
        std::fs::write(path, picture)
            .with_context(|| format!("cannot write \"{}\"", path.display()))?;
    }
    let wrong = |reads: &Reads| reads.0.iter().filter(|read| read.is_wrong).count();
    let wrong = wrong(&analog) + wrong(&drawn);
    if wrong > 0 {
        let message = format!("{wrong} sectors were read with other bytes than were written");
        return Err(ExitError::new(Exit::Corrupt, message).into());
    }
    if rows.iter().all(|row| row.agree) {
        return Ok(());
    }
    Err(ExitError::new(Exit::Failure, "the fidelities do not agree").into())
}

impl Row {
    /// Creates the row of a metric.
    fn new(
        metric: &'static str,
        analog: Interval,
        soft: Interval,
        sector: Option<Interval>,
    ) -> Self {
        let agree = agree(&analog, &soft)
            && sector.is_none_or(|sector| agree(&analog, &sector) && agree(&soft, &sector));
        Self { metric, analog, soft, sector, agree }
    }

    fn panel(&self) -> Panel {
        let mut levels = vec![("analog", self.analog), ("soft", self.soft)];
        levels.extend(self.sector.map(|sector| ("sector", sector)));
        Panel { metric: self.metric, agree: self.agree, levels }
    }
}

fn rows(analog: &Reads, drawn: &Reads, outcomes: &[Option<u8>], fitted: &Interval) -> Vec<Row> {
    let row = |metric, metric_of: &dyn Fn(&Read) -> f64| {
        Row::new(metric, analog.mean(metric_of), drawn.mean(metric_of), None)
    };
    let lost = wilson(outcomes.iter().filter(|margin| margin.is_none()).count(), outcomes.len());
    let margin = mean(outcomes.iter().map(|margin| f64::from(margin.unwrap_or(0)) / 100.0));
    let report_margin = |read: &Read| f64::from(read.report.margin);
    vec![
        row("symbol errors", &|read| read.symbol_error_rate),
        row("information", &|read| read.information),
        row("iterations", &|read| read.report.iterations_mean()),
        Row::new(
            "lost sectors",
            analog.failure_rate(),
            widen_to(drawn.failure_rate(), fitted),
            Some(widen_to(lost, fitted)),
        ),
        wrong_bytes(analog, drawn),
        Row::new("margin", analog.mean(report_margin), drawn.mean(report_margin), Some(margin)),
    ]
}

/// Compares the sectors that were read wrong: there must be none.
fn wrong_bytes(analog: &Reads, drawn: &Reads) -> Row {
    let [analog, soft] = [analog, drawn].map(|reads| reads.share(|read| read.is_wrong));
    let agree = analog.value + soft.value <= 0.0;
    Row { metric: "wrong bytes", analog, soft, sector: None, agree }
}

/// Widens the interval of drawn sectors to that of the statistics they were drawn from.
const fn widen_to(drawn: Interval, fitted: &Interval) -> Interval {
    Interval {
        value: drawn.value,
        low: drawn.low.min(fitted.low),
        high: drawn.high.max(fitted.high),
    }
}

fn agree(a: &Interval, b: &Interval) -> bool {
    let is_near = (a.value - b.value).abs() <= TOLERANCE * a.value.abs().max(b.value.abs());
    is_near || (a.low <= b.high && b.low <= a.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(value: f64, half: f64) -> Interval {
        Interval { value, low: value - half, high: value + half }
    }

    #[test]
    fn drawn_interval_is_no_narrower_than_the_fitted_one() {
        let drawn = Interval { value: 0.0, low: 0.0, high: 4e-6 };
        let fitted = Interval { value: 0.0, low: 0.0, high: 4e-4 };
        let analog = Interval { value: 5e-5, low: 9e-6, high: 3e-4 };
        assert!(!agree(&analog, &drawn) && agree(&analog, &widen_to(drawn, &fitted)));
        let fitted = Interval { value: 1e-2, low: 8e-3, high: 1.2e-2 };
        let found = widen_to(Interval { value: 1e-2, low: 9e-3, high: 1.1e-2 }, &fitted);
        assert!((found.low - 8e-3).abs() < 1e-9 && (found.high - 1.2e-2).abs() < 1e-9);
    }

    #[test]
    fn values_agree_within_tolerance_or_overlapping_intervals() {
        for (a, b, expected) in [
            (interval(1.0, 0.01), interval(1.04, 0.01), true),
            (interval(1.0, 0.01), interval(1.10, 0.01), false),
            (interval(1.0, 0.06), interval(1.10, 0.06), true),
            (interval(0.0, 0.0), interval(0.0, 0.0), true),
        ] {
            assert_eq!(agree(&a, &b), expected, "{a:?} {b:?}");
        }
    }
}
