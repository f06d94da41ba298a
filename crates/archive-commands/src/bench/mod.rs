//! `bench ...`: measurements of the codes that take too long for a test.

mod chart;
mod curve;
mod ldpc;

use fulgurite_terminal::output::Output;

/// `bench`, with one of its commands.
#[derive(Clone, Debug, clap::Args)]
pub struct BenchCommand {
    #[command(subcommand)]
    command: BenchAction,
}

/// The measurements.
#[derive(Clone, Debug, clap::Subcommand)]
enum BenchAction {
    /// Frame and bit errors of an LDPC code against symbol errors
    Ldpc(ldpc::LdpcArgs),
}

/// Runs a measurement.
pub fn bench(args: &BenchCommand, out: &Output) -> anyhow::Result<()> {
    match &args.command {
        BenchAction::Ldpc(args) => ldpc::run(args, out),
    }
}
