//! Progress bars on standard error if it is a terminal; silent otherwise.
//!
//! Bytes and rates look as they do in results.

use std::sync::Arc;
use std::time::Duration;

use fulgurite_units::ByteCount;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::output::{bytes, is_stderr_terminal, rate};

/// How often `run_with_progress` updates its bar.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Creates a bar that counts bytes, named `what`, with the estimated time left.
pub fn bytes_bar(what: &'static str, bytes: u64, is_quiet: bool) -> ProgressBar {
    let template = "{prefix} {bar:32} {done} of {all}  {elapsed}  {rate}  {left} {msg}";
    bar(what, Some(bytes), template, is_quiet)
}

/// Creates a byte bar for work whose progress is reported only now and then; the bar ticks in
/// between.
pub fn polled_bar(what: &'static str, is_quiet: bool) -> ProgressBar {
    ticking(bytes_bar(what, 0, is_quiet).with_message("waiting"))
}

/// Runs `work` and shows its progress. `work` reports to the `P` that it is passed; `read_progress`
/// reads from it bytes done, bytes in total, and what is done now.
pub async fn run_with_progress<P: Default, T>(
    what: &'static str,
    is_quiet: bool,
    read_progress: impl Fn(&P) -> (ByteCount, ByteCount, String),
    work: impl AsyncFnOnce(Arc<P>) -> T,
) -> T {
    let (bar, progress) = (polled_bar(what, is_quiet), Arc::<P>::default());
    let mut work = std::pin::pin!(work(Arc::clone(&progress)));
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            _ = ticks.tick() => {
                let (done, total, message) = read_progress(&progress);
                bar.set_length(total.get());
                bar.set_position(done.get());
                bar.set_message(message);
            }
        }
    };
    bar.finish_and_clear();
    done
}

/// Creates a bar that counts bytes of an unknown total.
pub fn stream_bar(what: &'static str, is_quiet: bool) -> ProgressBar {
    ticking(bar(what, None, "{prefix} {spinner} {done}  {rate}  {elapsed} {msg}", is_quiet))
}

/// Creates a bar that counts items.
pub fn count_bar(what: &'static str, count: u64, is_quiet: bool) -> ProgressBar {
    bar(what, Some(count), "{prefix} {bar:32} {pos}/{len} {elapsed} {msg}", is_quiet)
}

/// Creates a spinner for work of unknown length.
pub fn spinner(what: &'static str, is_quiet: bool) -> ProgressBar {
    ticking(bar(what, None, SPINNER, is_quiet))
}

const SPINNER: &str = "{prefix} {spinner} {elapsed} {msg}";

/// Makes a bar redraw itself periodically.
fn ticking(bar: ProgressBar) -> ProgressBar {
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(120));
    }
    bar
}

fn bar(what: &'static str, length: Option<u64>, template: &str, is_quiet: bool) -> ProgressBar {
    let target = if is_stderr_terminal() && !is_quiet {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(length, target).with_prefix(what);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(with_units(style)),
        Err(_) => bar,
    }
}

/// Formats bytes, rates and times as in results, not in the style of the library.
fn with_units(style: ProgressStyle) -> ProgressStyle {
    let left = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        let left = state.eta();
        // There is no estimate before anything is done.
        if state.pos() > 0 && !left.is_zero() {
            let _ = write!(text, "{} left", whole_seconds(left.as_secs()));
        }
    };
    style
        .progress_chars("=> ")
        .with_key("done", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = text.write_str(&bytes(state.pos()));
        })
        .with_key("all", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = text.write_str(&bytes(state.len().unwrap_or(0)));
        })
        .with_key("rate", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let seconds = state.elapsed().as_secs_f64();
            let _ = text.write_str(&rate(state.pos(), seconds));
        })
        .with_key("elapsed", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = text.write_str(&whole_seconds(state.elapsed().as_secs()));
        })
        .with_key("left", left)
}

/// Formats elapsed or remaining time to the second: `40 s`, `3 min 20 s`, `2 h 5 min`.
fn whole_seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests;
