//! `durability`: the probabilities that tracks, large groups and platter-sets cannot be decoded,
//! and that a blob of a rack is lost.
//!
//! A table of probabilities for one geometry, each with its formula and, where sectors can be
//! drawn, with a simulation; then the sizes at which the claims of Silica section 6 hold; and at
//! last everything that the model leaves out. The arithmetic is in `fulgurite_codes::durability`.

mod rack;

use std::path::PathBuf;

use fulgurite_codes::durability::simulate::{Estimate, failure_probability};
use fulgurite_codes::durability::{
    LargeGroup, Overhead, Probability, SectorLoss, Track, binomial_tail, smallest_group,
    smallest_track,
};
use fulgurite_platter::Geometry;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::Output;
use serde::Serialize;

use crate::config::{Config, Overrides, process_environment};

/// Flags of `durability`.
#[derive(Clone, Debug, clap::Args)]
pub struct DurabilityArgs {
    /// Platter profile: sliver, demo, desk or silica
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Configuration file (TOML) with the geometry
    #[arg(long, value_name = "FILE", env = "FULGURITE_CONFIG")]
    config: Option<PathBuf>,
    /// Probability that a sector is lost
    #[arg(long, value_name = "CHANCE", default_value_t = 1e-3)]
    sector_loss: f64,
    /// Variation of that probability between tracks: standard deviation over mean
    #[arg(long, value_name = "RATIO", default_value_t = 1.0)]
    variation: f64,
    /// Probability that a platter cannot be read
    #[arg(long, value_name = "CHANCE", default_value_t = 1e-3)]
    platter_loss: f64,
    /// Annual failure rate of a rack's disks
    #[arg(long, value_name = "SHARE", default_value_t = 0.0131)]
    disk_failures: f64,
    /// Hours to rebuild a disk of a rack, once its failure is detected
    #[arg(long, value_name = "HOURS", default_value_t = 24.0)]
    rebuild_hours: f64,
    /// Interval in days at which each group of a rack is verified, to detect failures of spun-down
    /// disks
    #[arg(long, value_name = "DAYS", default_value_t = 30.0)]
    verify_days: f64,
    /// Tracks per simulation; 0 for none
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 20_000,
        value_parser = clap::value_parser!(u64).range(..=100_000_000)
    )]
    samples: u64,
    /// Seed of the simulations
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// A probability, or the size that a claim needs.
#[derive(Clone, Debug, Serialize)]
struct Row {
    /// What is lost, or what is claimed.
    what: &'static str,
    /// The inputs.
    inputs: String,
    /// The formula.
    formula: &'static str,
    /// The probability in scientific notation, even below 1e-308.
    chance: String,
    /// Its decimal logarithm.
    log10: f64,
    /// The simulated probability, in scientific notation.
    simulated: Option<String>,
    /// Relative standard error of the simulation.
    relative_error: Option<f64>,
}

const TRACK_FORMULA: &str = "sum over x > R_t of C(n, x) p^x (1-p)^(n-x), n = I_t + R_t";
const VARYING_FORMULA: &str =
    "sum over x > R_t of C(n, x) B(x+a, n-x+b) / B(a, b), p of each track from Beta(a, b)";
const GROUP_FORMULA: &str = "tracks with x > R_t lose their sectors of the codeword, \
     hypergeometric; summed over tracks, more than R_l span of them; times the codewords";
const SET_FORMULA: &str = "sum over x > R_p of C(n, x) u^x (1-u)^(n-x), n = I_p + R_p";

/// What the model leaves out, for the last lines.
const LEFT_OUT: [&str; 6] = [
    "independent rows: every sector fails by itself; no dust grain lies over two of them",
    "varying rows: one rate for all sectors of a track, tracks independent of one another",
    "large group: failed tracks do not use their own redundancy in it; joint decoding does better",
    "rack rows: disks fail independently; disks of a group have one history, of a tray one \
     power supply, of a batch one maker, and all of a rack one program",
    "rack rows: one blob; of many the chance that any is lost is more, up to their number times \
     it, the less the more of them share their disks",
    "all rows: no writer that damages all it writes, no reader, software or people that err, no \
     loss that no check sees",
];

/// Prints the table.
pub fn durability(args: &DurabilityArgs, out: &Output) -> anyhow::Result<()> {
    let overrides = Overrides { profile: args.profile.clone(), ..Overrides::default() };
    let config = Config::load(args.config.as_deref(), process_environment(), overrides)?;
    let geometry = config.glass.effective_geometry()?;
    let rows =
        rows(args, &geometry).map_err(|error| ExitError::new(Exit::Usage, error.to_string()))?;
    out.text(format_args!("Profile {}\n", geometry.profile))?;
    for row in &rows {
        out.json("durability", row)?;
        out.text(format_args!("{:<46} {:>10}", row.what, row.chance))?;
        if let (Some(simulated), Some(error)) = (&row.simulated, row.relative_error) {
            out.text(format_args!(
                "{:<46} {simulated:>10} +- {:.1} %",
                "  by simulation",
                error * 100.0
            ))?;
        }
        out.text(format_args!("  {}", row.inputs))?;
        out.text(format_args!("  {}\n", row.formula))?;
    }
    out.text("Left out:")?;
    for line in LEFT_OUT {
        out.text(format_args!("  {line}"))?;
    }
    Ok(())
}

fn rows(
    args: &DurabilityArgs,
    geometry: &Geometry,
) -> Result<Vec<Row>, fulgurite_codes::CodeError> {
    let independent = SectorLoss::new(args.sector_loss, 0.0)?;
    let track = Track {
        information: geometry.track_information_sectors.into(),
        redundancy: geometry.track_redundancy_sectors.into(),
    };
    let group = LargeGroup {
        track,
        information_tracks: geometry.group_information_tracks.into(),
        redundancy_tracks: geometry.group_redundancy_tracks.into(),
        span: geometry.group_span_sectors.into(),
    };
    let mut random = splitmix(args.seed);
    let mut rows = Vec::new();
    let varying = SectorLoss::new(args.sector_loss, args.variation)?;
    for (loss, names, formula) in [
        (
            independent,
            ["track, independent sectors", "large group, independent sectors"],
            TRACK_FORMULA,
        ),
        (varying, ["track, rate varies", "large group, rate varies"], VARYING_FORMULA),
    ] {
        let estimate =
            (args.samples > 0).then(|| failure_probability(track, loss, args.samples, &mut random));
        let inputs = format!("{}, {}", describe_track(track), describe_loss(loss));
        rows.push(row(names[0], inputs, formula, track.failure_probability(loss)).with(estimate));
        let inputs = format!(
            "I_l = {}, R_l = {} tracks, span {} sectors; {}, {}",
            group.information_tracks,
            group.redundancy_tracks,
            group.span,
            describe_track(track),
            describe_loss(loss)
        );
        rows.push(row(names[1], inputs, GROUP_FORMULA, group.failure_probability(loss)));
    }
    let platters = [geometry.set_information_platters, geometry.set_redundancy_platters];
    let [information, redundancy] = platters.map(u64::from);
    let set = binomial_tail(information + redundancy, args.platter_loss, redundancy)?;
    let inputs = format!("I_p = {information}, R_p = {redundancy}, u = {:e}", args.platter_loss);
    rows.push(row("platter-set", inputs, SET_FORMULA, set));
    rows.extend(rack_rows(args)?);
    rows.extend(claims(args, independent, &mut random)?);
    Ok(rows)
}

/// Computes the durability of a blob in a rack with Pelican's code (OSDI 2014, section 3): when
/// each failure is detected at once, and when as late as possible.
fn rack_rows(args: &DurabilityArgs) -> Result<Vec<Row>, fulgurite_codes::CodeError> {
    let code @ [information, redundancy] = [15, 3];
    let rebuild_days = args.rebuild_hours / 24.0;
    let row_for = |what, discovery_days: f64| {
        let days = discovery_days + rebuild_days;
        let chance = rack::yearly_loss(code, args.disk_failures, days, rack::YEAR_DAYS)?;
        let inputs = format!(
            "k = {information}, r = {redundancy}, AFR = {:e}, found within {discovery_days} d, \
             rebuilt within {rebuild_days:.2} d: T = {days:.2} d; {:.1} nines",
            args.disk_failures,
            rack::nines(chance)
        );
        Ok(row(what, inputs, rack::FORMULA, chance))
    };
    Ok(vec![
        row_for("blob of a rack in a year, found at once", 0.0)?,
        row_for("blob of a rack in a year, found by verifying", args.verify_days)?,
    ])
}

/// Computes the sizes from which on the claims of Silica section 6 hold.
fn claims(
    args: &DurabilityArgs,
    loss: SectorLoss,
    random: &mut impl FnMut() -> u64,
) -> Result<Vec<Row>, fulgurite_codes::CodeError> {
    let target = Probability::from_ln(1e-24f64.ln());
    let share =
        |redundancy, is_information_only| Overhead { redundancy, per: 100, is_information_only };
    // A large group must tolerate losses of half its overhead.
    let residual = SectorLoss::new(1e-2, 0.0)?;
    let codes = [
        (
            "smallest track below 1e-24, R_t <= 8 % of I_t",
            smallest_track(share(8, true), loss, target, 255),
            loss,
        ),
        (
            "smallest track below 1e-24, R_t <= 8 % of all",
            smallest_track(share(8, false), loss, target, 255),
            loss,
        ),
        (
            "smallest group below 1e-24, 2 % for 1 % lost",
            smallest_group(share(2, true), residual, target, 65_535),
            residual,
        ),
    ];
    let mut rows = Vec::new();
    for (what, code, loss) in codes {
        let Some(code) = code else {
            rows.push(
                row(
                    what,
                    format!("none; {}", describe_loss(loss)),
                    TRACK_FORMULA,
                    Probability::ZERO,
                )
                .without(),
            );
            continue;
        };
        let estimate =
            (args.samples > 0).then(|| failure_probability(code, loss, args.samples, random));
        let inputs =
            format!("{} + {} sectors, {}", code.information, code.redundancy, describe_loss(loss));
        rows.push(row(what, inputs, TRACK_FORMULA, code.failure_probability(loss)).with(estimate));
    }
    Ok(rows)
}

fn row(what: &'static str, inputs: String, formula: &'static str, chance: Probability) -> Row {
    Row {
        what,
        inputs,
        formula,
        chance: chance.to_string(),
        log10: chance.ln() / std::f64::consts::LN_10,
        simulated: None,
        relative_error: None,
    }
}

impl Row {
    fn with(mut self, estimate: Option<Estimate>) -> Self {
        if let Some(estimate) = estimate {
            self.simulated = Some(estimate.chance.to_string());
            self.relative_error = Some(estimate.relative_error);
        }
        self
    }

    /// Marks the row: no size satisfies the claim.
    fn without(mut self) -> Self {
        self.chance = "none".to_owned();
        self.log10 = 0.0;
        self
    }
}

fn describe_track(track: Track) -> String {
    format!("I_t = {}, R_t = {}", track.information, track.redundancy)
}

fn describe_loss(loss: SectorLoss) -> String {
    let mean = loss.mean();
    match loss.beta_parameters() {
        None => format!("p = {mean:e}"),
        Some([a, b]) => {
            format!("mean p = {mean:e}, variation {} (a = {a:.4}, b = {b:.2})", loss.variation())
        }
    }
}

/// Returns a splitmix64 generator.
fn splitmix(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests;
