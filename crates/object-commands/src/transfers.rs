//! Many objects in one run: a bounded number at a time, each failure reported, one exit code at the
//! end.

use std::fmt::Display;
use std::future::Future;

use fulgurite_client::s3::S3Error;
use fulgurite_terminal::exit::{Exit, ExitError, exit_of};
use fulgurite_terminal::output::{self, Output, note, pluralize};
use futures::StreamExt as _;
use indicatif::ProgressBar;

use crate::limits;

/// The failures of a run: each is reported once, and together they decide the exit code.
#[derive(Debug, Default)]
pub struct Failures {
    count: u64,
    exit: Option<Exit>,
}

impl Failures {
    /// Counts a failure and prints it on standard error, up to a limit.
    pub fn add(&mut self, bar: &ProgressBar, name: impl Display, error: &anyhow::Error) {
        self.count += 1;
        let exit = exit_of(error, |cause| Some(cause.downcast_ref::<S3Error>()?.kind().exit()));
        self.exit = Some(match self.exit {
            None => exit,
            Some(earlier) if earlier == exit => exit,
            Some(_) => Exit::Failure,
        });
        if self.count <= limits::FAILURES_SHOWN_MAX as u64 {
            bar.suspend(|| note(format_args!("{name}: {error:#}")));
        }
    }

    /// Adds the failures of another step of the same run.
    pub fn join(&mut self, other: Self) {
        self.count += other.count;
        self.exit = match (self.exit, other.exit) {
            (None, exit) | (exit, None) => exit,
            (Some(one), Some(two)) if one == two => Some(one),
            (Some(_), Some(_)) => Some(Exit::Failure),
        };
    }

    /// Number of failures.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the error that ends the run, if any object failed; `done` objects did not.
    pub fn into_result(self, verb: &str, done: u64) -> anyhow::Result<()> {
        let Some(exit) = self.exit else { return Ok(()) };
        let exit = if done > 0 { Exit::Partial } else { exit };
        let count = self.count;
        let message = format!("{count} of {} objects could not be {verb}", done + count);
        Err(ExitError::new(exit, message).into())
    }
}

/// Runs `work` on all `items`, at most `concurrency` at one time, and passes each result to `done`.
pub(crate) async fn for_each<I, T, F>(
    items: impl IntoIterator<Item = I>,
    concurrency: usize,
    work: impl Fn(I) -> F,
    mut done: impl FnMut(T) -> anyhow::Result<()>,
) -> anyhow::Result<()>
where
    F: Future<Output = T>,
{
    let mut results = futures::stream::iter(items).map(work).buffer_unordered(concurrency);
    while let Some(result) = results.next().await {
        done(result)?;
    }
    Ok(())
}

/// Parses `--transfers`.
pub(crate) fn parse_transfers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=limits::TRANSFERS_MAX).contains(&count) => Ok(count),
        _ => Err(format!("write a number from 1 to {}", limits::TRANSFERS_MAX)),
    }
}

/// Prints how much was moved, how long it took and how fast that was.
pub(crate) fn show_rate(
    objects: u64,
    bytes: u64,
    seconds: f64,
    out: &Output,
) -> anyhow::Result<()> {
    out.text(format_args!(
        "{}, {} in {} ({})",
        pluralize(objects, "object"),
        output::bytes(bytes),
        output::seconds(seconds),
        output::rate(bytes, seconds)
    ))
}
