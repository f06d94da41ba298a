//! `decode-worker`: decodes for archives on other machines.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use fulgurite_archive::config::QueueAddress;
use fulgurite_archive::{DecodeWorker, WorkerOptions, WorkerTotals};
use fulgurite_decode::{Model, standard_model};
use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::output::{Output, group_digits, pluralize};
use fulgurite_units::Duration as Span;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::Engine;

/// The variable with the credentials for the queue's server: `USER:PASSWORD` or a token.
pub const CREDENTIALS: &str = "FULGURITE_QUEUE_CREDENTIALS";

/// The variable with the secret key for the MACs of the queue's messages.
pub const KEY: &str = "FULGURITE_QUEUE_KEY";

/// `decode-worker`
#[derive(Clone, Debug, clap::Args)]
pub struct DecodeWorkerArgs {
    /// The NATS server (with JetStream) that the archives' `tiers.glass.medium.decode_queue` names:
    /// nats://HOST:PORT or tls://HOST:PORT
    #[arg(long, value_name = "ADDRESS", env = "FULGURITE_GLASS_MEDIUM_DECODE_QUEUE")]
    queue: QueueAddress,
    /// Concurrent jobs; 0 means one per processor
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    threads: usize,
    /// A learned decoder besides the built-in one (ONNX, with its card beside it)
    #[arg(long, value_name = "FILE")]
    model: Vec<PathBuf>,
    /// Engine of the learned decoders
    #[arg(long, value_enum, value_name = "NAME", default_value = "builtin")]
    engine: Engine,
    /// Exit after this long without a job, like 5m
    #[arg(long, value_name = "TIME")]
    idle_exit: Option<Span>,
}

/// Adds the server's credentials and the key for messages to an address.
pub fn with_credentials(address: QueueAddress) -> QueueAddress {
    let secret = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let address = address.with_credentials(secret(CREDENTIALS)).with_key(secret(KEY));
    if !address.is_authenticated() {
        tracing::warn!(
            "anyone who reaches the decode queue {address} can forge jobs and answers: set {KEY}, \
             the same for archives and workers"
        );
    }
    address
}

/// Works until it is stopped; then reports its totals.
pub fn decode_worker<'a>(args: &'a DecodeWorkerArgs, out: &'a Output) -> CommandFuture<'a> {
    Box::pin(run(args, out))
}

async fn run(args: &DecodeWorkerArgs, out: &Output) -> anyhow::Result<()> {
    let mut models = vec![standard_model()?];
    for path in &args.model {
        models.push(Arc::new(Model::open(path)?));
    }
    let threads = match args.threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        count => count,
    };
    let idle_exit = args.idle_exit.map(|span| Duration::from_nanos(span.as_nanos()));
    let options = WorkerOptions {
        queue: with_credentials(args.queue.clone()),
        threads,
        name: format!("{}:{}", host(), std::process::id()),
        models,
        engine: args.engine.choice(),
        idle_exit,
    };
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let (worker, stop) = DecodeWorker::new(options);
    out.text(format_args!(
        "decoding for {}, {} at a time; to stop: Ctrl-C, which ends what was begun",
        args.queue,
        pluralize(threads as u64, "job")
    ))?;
    out.flush()?;
    let work = worker.run();
    tokio::pin!(work);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            _ = terminate.recv() => stop.stop(),
            _ = interrupt.recv() => stop.stop(),
        }
    };
    let totals = done.map_err(anyhow::Error::msg)?;
    out.json(
        "decode_worker",
        &json!({
            "jobs": totals.jobs, "sectors": totals.sectors, "lost": totals.lost,
            "voxels": totals.voxels, "refused": totals.refused,
            "busy_seconds": totals.busy_seconds,
        }),
    )?;
    out.text(summary(&totals))
}

fn summary(totals: &WorkerTotals) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = totals.voxels as f64 / totals.busy_seconds.max(1e-9) / 1e6;
    format!(
        "{} with {}, {} of them lost; {} refused; {rate:.2} million voxels a second and thread, \
         simulation of light included",
        pluralize(totals.jobs, "job"),
        pluralize(totals.sectors, "sector"),
        group_digits(totals.lost),
        group_digits(totals.refused),
    )
}

/// The machine's host name.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "worker".to_owned() } else { name.to_owned() }
}
