//! How soon a server with a full catalog is ready.

use anyhow::Result;

use super::server::Server;
use super::{Bench, Measurement, REPEATS};
use crate::shell;

const ROW_COUNT: u64 = 1_000_000;

/// Measures the time from the start of the process to `/readyz`.
pub(super) fn start(bench: &Bench) -> Result<Vec<Measurement>> {
    let data = bench.folder.join("data");
    let mut fill = shell::program(&bench.fill_catalog);
    shell::run(fill.arg(&data).arg(ROW_COUNT.to_string()))?;
    let mut ours = Vec::new();
    for _ in 0..REPEATS {
        ours.push(Server::start(bench, &data)?.ready_after.as_secs_f64());
    }
    Ok(vec![Measurement {
        row: "ready",
        ours,
        peer: None,
        unit: "s",
        target: "<= 2",
        input: format!("{ROW_COUNT} object rows; started {REPEATS} times"),
    }])
}
