//! `twin ...`: the digital twin of the glass library.

mod plan;

use crate::output::Output;

/// What is asked of the twin.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum TwinCommand {
    /// Find the cheapest libraries for an ingest and reads
    Plan(plan::PlanArgs),
}

/// Asks the twin.
pub(crate) fn twin(command: &TwinCommand, out: &Output) -> anyhow::Result<()> {
    match command {
        TwinCommand::Plan(args) => plan::run(args, out),
    }
}
