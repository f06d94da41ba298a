//! `lab calibrate`: runs a decoder on many simulated sectors, and writes the statistics that the
//! fidelities `soft` and `sector` draw from.

use std::path::PathBuf;

use anyhow::Context as _;
use fulgurite_decode::{Interval, Provenance};
use fulgurite_terminal::output::Output;
use serde_json::json;

use super::ReaderArgs;
use super::sample::{RATE, SECTOR_BYTES, Sample};

/// Flags of `lab calibrate`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct CalibrateArgs {
    #[command(flatten)]
    reader: ReaderArgs,
    /// Sectors to simulate, each of its own drive and platter
    #[arg(long, value_name = "COUNT", default_value_t = 500,
          value_parser = clap::value_parser!(u64).range(32..=1_000_000))]
    sectors: u64,
    /// Seed of the sectors, drives and platters
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// File to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Runs `lab calibrate`.
pub(super) fn calibrate(args: &CalibrateArgs, out: &Output) -> anyhow::Result<()> {
    let channel = args.reader.channel()?;
    let (decoder, make) = args.reader.decoder()?;
    let sample =
        Sample { channel: &channel, decoder: &make, seed: args.seed, sectors: args.sectors };
    let (fit, reads, shape) = sample.fit(out)?;
    let errors = reads.mean(|read| read.symbol_error_rate);
    let information = reads.mean(|read| read.information);
    let failures = reads.failure_rate();
    let statistics = fit.finish(Provenance {
        preset: args.reader.channel.clone(),
        decoder: decoder.clone(),
        seed: args.seed,
        side: shape.columns(),
        shares: channel.shares,
        measured: [errors, information, failures],
        rate: RATE,
        sector_bytes: SECTOR_BYTES,
    })?;
    let text = statistics.to_json();
    std::fs::write(&args.out, &text)
        .with_context(|| format!("cannot write \"{}\"", args.out.display()))?;
    out.json(
        "calibration",
        &json!({
            "channel": args.reader.channel, "decoder": decoder,
            "sectors": args.sectors, "seed": args.seed, "rate": RATE.name(),
            "symbol_error_rate": errors, "information": information, "failure_rate": failures,
            "file": args.out, "bytes": text.len(),
        }),
    )?;
    let line = |what: &str, interval: &Interval, unit: &str| {
        let Interval { value, low, high } = interval;
        format!("{what:22} {value:.3e}  ({low:.3e} to {high:.3e}){unit}")
    };
    out.text(format!(
        "channel {} (simulated), decoder {decoder}\n\
         {} sectors of {} x {} voxels, each of its own drive and platter; 95 % intervals\n\
         {}\n{}\n{}\n\
         statistics for fidelities soft and sector: {}, {} bytes",
        args.reader.channel,
        args.sectors,
        shape.rows(),
        shape.columns(),
        line("symbol errors", &errors, ""),
        line("information", &information, " bits a voxel"),
        line(&format!("lost sectors, rate {}", RATE.name()), &failures, ""),
        args.out.display(),
        text.len(),
    ))
}
