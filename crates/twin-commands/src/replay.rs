//! `twin replay`: replays a log, decision by decision.

use std::io::BufRead;
use std::path::PathBuf;

use fulgurite_glass_core::control::log::{Divergence, LogError, ReplayedStep, Replayer};
use fulgurite_restore::log as restore_log;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, group_digits, seconds};
use fulgurite_terminal::progress::spinner;
use fulgurite_units::{Duration, Instant};
use serde::Serialize;
use serde_json::json;

use super::{invalid_input, open, state};

/// Flags of `twin replay`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// Log of a library (`[tiers.glass.library] log`, or `twin run --log`), or of an archive's
    /// restores (`[restore] log`)
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Show the library at this time since its start (2h, 90s, 1500ms), and stop there
    #[arg(long, value_name = "TIME")]
    at: Option<Duration>,
    /// Show every event and the decisions that followed
    #[arg(long)]
    step: bool,
}

/// Runs `twin replay`.
pub(super) fn replay(args: &ReplayArgs, out: &Output) -> anyhow::Result<()> {
    let shown = format!("\"{}\"", args.log.display());
    let invalid_input = |error: LogError| {
        let is_read = matches!(error, LogError::Read { .. });
        invalid_input(&shown, &error, if is_read { Exit::Failure } else { Exit::Corrupt })
    };
    let mut source = open(&args.log)?;
    if is_restore_log(&mut source)? {
        return replay_restores(source, args, &shown, out);
    }
    let mut replayer = Replayer::new(source).map_err(invalid_input)?;
    let bar = spinner("playing", args.step);
    let until = args.at.map(|at| Instant::ZERO + at);
    while replayer.next_at().is_some_and(|at| until.is_none_or(|until| at <= until)) {
        let Some(step) = replayer.step().map_err(invalid_input)? else { break };
        if args.step {
            print_step(&step, out)?;
        }
        if replayer.summary().events.is_multiple_of(10_000) {
            bar.set_message(group_digits(replayer.summary().events));
        }
    }
    bar.finish_and_clear();
    if let Some(at) = args.at {
        let snapshot = replayer.library().snapshot();
        out.json("state", &json!({ "at_ns": at.as_nanos(), "state": snapshot }))?;
        out.text(format!("after {}:", seconds(at.as_secs_f64())))?;
        state::print(&snapshot, out)?;
    }
    let summary = replayer.summary();
    out.json("replay", &json!({ "replay": summary }))?;
    if let Some(Divergence { line, expected, found }) = &summary.divergence {
        return Err(diverged(&shown, *line, expected.as_ref(), found.as_ref()));
    }
    let (events, outputs) = (group_digits(summary.events), group_digits(summary.outputs));
    let lasted = seconds(summary.until.since(Instant::ZERO).as_secs_f64());
    out.text(format!("{events} events and {outputs} decisions in {lasted}: all the same"))?;
    if summary.outputs_lost > 0 {
        out.text(format!("{} decisions are lost with the end of the log", summary.outputs_lost))?;
    }
    summary.ending.map_or(Ok(()), |ending| out.text(format!("end: {ending}")))
}

/// Whether a log is one of restores, by its first line.
fn is_restore_log(source: &mut impl BufRead) -> anyhow::Result<bool> {
    let begin = source.fill_buf()?;
    let line = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let name = restore_log::FORMAT.as_bytes();
    Ok(line.windows(name.len()).any(|part| part == name))
}

/// Replays the log of a restore controller.
fn replay_restores(
    source: impl BufRead,
    args: &ReplayArgs,
    shown: &str,
    out: &Output,
) -> anyhow::Result<()> {
    if args.at.is_some() || args.step {
        let message = format!("{shown}: --at and --step are for the log of a library");
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    let summary = restore_log::replay(source).map_err(|error| {
        let is_read = matches!(error, restore_log::LogError::Read { .. });
        invalid_input(shown, &error, if is_read { Exit::Failure } else { Exit::Corrupt })
    })?;
    out.json("replay", &json!({ "replay": summary }))?;
    if let Some(restore_log::Divergence { line, expected, found }) = &summary.divergence {
        return Err(diverged(shown, *line, expected.as_ref(), found.as_ref()));
    }
    let (events, commands) = (group_digits(summary.events), group_digits(summary.commands));
    out.text(format!("{events} events and {commands} decisions: all the same"))
}

fn diverged<T: Serialize>(
    shown: &str,
    line: u64,
    expected: Option<&T>,
    found: Option<&T>,
) -> anyhow::Error {
    let [then, now] = [expected, found].map(|decided| match decided {
        Some(decided) => serde_json::to_string(decided).unwrap_or_default(),
        None => "nothing".to_owned(),
    });
    let message = format!(
        "{shown}, line {line}: another decision\n  in the log: {then}\n  now:        {now}"
    );
    ExitError::new(Exit::Failure, message).into()
}

fn print_step(step: &ReplayedStep, out: &Output) -> anyhow::Result<()> {
    out.json(
        "step",
        &json!({
            "line": step.line,
            "at_ns": step.at.as_nanos(),
            "event": step.event,
            "outputs": step.outputs,
        }),
    )?;
    let at = step.at.since(Instant::ZERO).as_secs_f64();
    out.text(format!("{at:.6} s  {:?}", step.event))?;
    step.outputs.iter().try_for_each(|output| out.text(format!("    {output:?}")))
}
