//! Progress bars on standard error, for people who watch; silent otherwise.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::is_watched;

/// A bar that counts bytes and names what is done.
pub(crate) fn bytes_bar(what: &'static str, bytes: u64, is_quiet: bool) -> ProgressBar {
    let template = "{prefix} {bar:32} {bytes}/{total_bytes} {bytes_per_sec} {eta} {msg}";
    bar(what, Some(bytes), template, is_quiet)
}

/// A bar that counts things.
pub(crate) fn count_bar(what: &'static str, count: u64, is_quiet: bool) -> ProgressBar {
    bar(what, Some(count), "{prefix} {bar:32} {pos}/{len} {elapsed} {msg}", is_quiet)
}

/// A sign of life for work of unknown length.
pub(crate) fn spinner(what: &'static str, is_quiet: bool) -> ProgressBar {
    let bar = bar(what, None, "{prefix} {spinner} {elapsed} {msg}", is_quiet);
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(120));
    }
    bar
}

fn bar(what: &'static str, length: Option<u64>, template: &str, is_quiet: bool) -> ProgressBar {
    let target = if is_watched() && !is_quiet {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(length, target).with_prefix(what);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}
