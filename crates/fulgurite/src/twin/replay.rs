//! `twin replay`: a log played again, decision by decision.

use std::path::PathBuf;

use fulgurite_library::log::{Divergence, LogError, ReplayedStep, Replayer};
use fulgurite_units::{Duration, Instant};
use serde_json::json;

use super::{open, state, wrong};
use crate::exit::{Coded, Exit};
use crate::output::{Output, grouped, seconds};
use crate::progress::spinner;

/// Flags of `twin replay`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// Log of a library (`[library] log`, or `twin run --log`)
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Show the library at this time since its start (2h, 90s, 1500ms), and stop there
    #[arg(long, value_name = "TIME")]
    at: Option<Duration>,
    /// Show every event and what was decided
    #[arg(long)]
    step: bool,
}

/// Runs `twin replay`.
pub(super) fn replay(args: &ReplayArgs, out: &Output) -> anyhow::Result<()> {
    let shown = format!("\"{}\"", args.log.display());
    let wrong = |error: LogError| {
        let is_read = matches!(error, LogError::Read { .. });
        wrong(&shown, &error, if is_read { Exit::Failure } else { Exit::Corrupt })
    };
    let mut replayer = Replayer::new(open(&args.log)?).map_err(wrong)?;
    let bar = spinner("playing", args.step);
    let until = args.at.map(|at| Instant::ZERO + at);
    while replayer.next_at().is_some_and(|at| until.is_none_or(|until| at <= until)) {
        let Some(step) = replayer.step().map_err(wrong)? else { break };
        if args.step {
            print_step(&step, out)?;
        }
        if replayer.played().events.is_multiple_of(10_000) {
            bar.set_message(grouped(replayer.played().events));
        }
    }
    bar.finish_and_clear();
    if let Some(at) = args.at {
        let snapshot = replayer.library().snapshot();
        out.json(&json!({ "type": "state", "at_ns": at.as_nanos(), "state": snapshot }))?;
        out.text(format!("after {}:", seconds(at.as_secs_f64())))?;
        state::print(&snapshot, out)?;
    }
    let played = replayer.played();
    out.json(&json!({ "type": "replay", "replay": played }))?;
    if let Some(divergence) = &played.divergence {
        return Err(diverged(&shown, divergence));
    }
    let (events, outputs) = (grouped(played.events), grouped(played.outputs));
    let lasted = seconds(played.until.since(Instant::ZERO).as_secs_f64());
    out.text(format!("{events} events and {outputs} decisions in {lasted}: all the same"))?;
    if played.outputs_lost > 0 {
        out.text(format!("{} decisions are lost with the end of the log", played.outputs_lost))?;
    }
    played.ending.map_or(Ok(()), |ending| out.text(format!("end: {ending}")))
}

fn diverged(shown: &str, divergence: &Divergence) -> anyhow::Error {
    let [then, now] = [&divergence.expected, &divergence.found].map(|output| match output {
        Some(output) => serde_json::to_string(output).unwrap_or_default(),
        None => "nothing".to_owned(),
    });
    let line = divergence.line;
    let message = format!(
        "{shown}, line {line}: another decision\n  in the log: {then}\n  now:        {now}"
    );
    Coded::new(Exit::Failure, message).into()
}

fn print_step(step: &ReplayedStep, out: &Output) -> anyhow::Result<()> {
    out.json(&json!({
        "type": "step",
        "line": step.line,
        "t": step.at.as_nanos(),
        "event": step.event,
        "outputs": step.outputs,
    }))?;
    let at = step.at.since(Instant::ZERO).as_secs_f64();
    out.text(format!("{at:.6} s  {:?}", step.event))?;
    step.outputs.iter().try_for_each(|output| out.text(format!("    {output:?}")))
}
