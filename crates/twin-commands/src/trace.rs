//! `twin trace`: generates or imports traces of reads.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, group_digits};
use fulgurite_terminal::progress::spinner;
use fulgurite_twin::Error;
use fulgurite_twin::import::{CsvImport, Imported, Malformed, S3LogImport, S3Size, TimeFormat};
use fulgurite_twin::trace::write_trace;
use fulgurite_units::Seed;
use serde_json::json;

use super::{create, invalid_input, open, workload};

/// Subcommands of `twin trace`.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum TraceCommand {
    /// Generate a trace from a workload
    Generate(GenerateArgs),
    /// Import a trace from the log of another system
    Import(ImportArgs),
}

/// Flags of `twin trace generate`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct GenerateArgs {
    /// Workload: typical, iops, volume, six-months, full-library, or a file (TOML)
    #[arg(value_name = "WORKLOAD")]
    workload: String,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// File to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Flags of `twin trace import`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// File to import
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Its format: csv (with a header), or s3 (Amazon S3 server access logs)
    #[arg(long, value_enum, value_name = "FORM", hide_possible_values = true)]
    format: ImportFormat,
    /// File to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Column of times (csv)
    #[arg(long, value_name = "NAME", default_value = "time")]
    time: String,
    /// Column of sizes (csv)
    #[arg(long, value_name = "NAME", default_value = "size")]
    size: String,
    /// Column of keys (csv)
    #[arg(long, value_name = "NAME", default_value = "key")]
    key: String,
    /// Format of times: rfc3339, unix-seconds or unix-nanos (csv)
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value = "rfc3339",
        hide_possible_values = true
    )]
    time_format: TimeFormatName,
    /// Take the size of the whole object instead of the bytes sent (s3)
    #[arg(long)]
    object_size: bool,
    /// Skip and count malformed lines (s3)
    #[arg(long)]
    skip_malformed: bool,
}

/// Format of a file to import.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ImportFormat {
    /// CSV with a header.
    Csv,
    /// Amazon S3 server access logs.
    S3,
}

/// Format of times.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TimeFormatName {
    /// RFC 3339 timestamps.
    Rfc3339,
    /// Seconds since 1970 or another start.
    UnixSeconds,
    /// Nanoseconds since 1970 or another start.
    UnixNanos,
}

/// Runs `twin trace`.
pub(super) fn trace(command: &TraceCommand, out: &Output) -> anyhow::Result<()> {
    match command {
        TraceCommand::Generate(args) => generate(args, out),
        TraceCommand::Import(args) => import(args, out),
    }
}

fn generate(args: &GenerateArgs, out: &Output) -> anyhow::Result<()> {
    let workload = workload(&args.workload)?;
    let refuse = |error: &Error| invalid_input(&args.workload, error, Exit::Config);
    let reads = workload.reads(Seed::new(args.seed)).map_err(|error| refuse(&error))?;
    let bar = spinner("drawing", false);
    let (mut count, mut bytes) = (0_u64, 0_u64);
    let counted = reads.inspect(|read| {
        count += 1;
        bytes = bytes.saturating_add(read.size.get());
    });
    write(&args.out, |sink| write_trace(sink, counted))?;
    bar.finish_and_clear();
    out.json("trace", &json!({ "reads": count, "bytes": bytes, "file": args.out }))?;
    out.text(format!("{} reads of {} bytes", group_digits(count), group_digits(bytes)))
}

fn import(args: &ImportArgs, out: &Output) -> anyhow::Result<()> {
    let source = open(&args.file)?;
    let bar = spinner("importing", false);
    let imported = match args.format {
        ImportFormat::Csv => args.csv().import(source),
        ImportFormat::S3 => args.s3_logs().import(source),
    };
    let Imported { trace, begin, lines, skipped, .. } = imported.map_err(|error| {
        invalid_input(&format!("\"{}\"", args.file.display()), &error, Exit::Corrupt)
    })?;
    write(&args.out, |sink| trace.write(sink))?;
    bar.finish_and_clear();
    let reads = trace.reads().len();
    let begin = begin.as_millis();
    out.json(
        "trace",
        &json!({
            "reads": reads, "lines": lines, "skipped": skipped,
            "begin_ms": begin, "file": args.out,
        }),
    )?;
    out.text(format!("{} reads from {} lines", group_digits(reads as u64), group_digits(lines)))?;
    for (reason, count) in skipped {
        out.text(format!("left out {} lines: {reason:?}", group_digits(count)))?;
    }
    Ok(())
}

impl ImportArgs {
    fn csv(&self) -> CsvImport {
        CsvImport {
            time: self.time.clone(),
            size: self.size.clone(),
            key: self.key.clone(),
            time_format: match self.time_format {
                TimeFormatName::Rfc3339 => TimeFormat::Rfc3339,
                TimeFormatName::UnixSeconds => TimeFormat::UnixSeconds,
                TimeFormatName::UnixNanos => TimeFormat::UnixNanos,
            },
            ..CsvImport::default()
        }
    }

    fn s3_logs(&self) -> S3LogImport {
        S3LogImport {
            size: if self.object_size { S3Size::ObjectSize } else { S3Size::BytesSent },
            malformed: if self.skip_malformed { Malformed::Skip } else { Malformed::Refuse },
            ..S3LogImport::default()
        }
    }
}

fn write(
    path: &Path,
    write: impl FnOnce(&mut dyn std::io::Write) -> Result<(), Error>,
) -> anyhow::Result<()> {
    let mut sink = create(path)?;
    let shown = || format!("cannot write \"{}\"", path.display());
    write(&mut sink).map_err(|error| {
        if let Error::Write { source } = error {
            return anyhow::Error::from(source).context(shown());
        }
        ExitError::new(Exit::Config, error.to_string()).into()
    })?;
    sink.flush().with_context(shown)
}
