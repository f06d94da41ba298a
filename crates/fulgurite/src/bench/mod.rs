//! `bench ...`: measurements of the codes that are too long for a test.

mod chart;
mod curve;
mod ldpc;

use crate::output::Output;

/// What is measured.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum BenchCommand {
    /// Frame and bit errors of an LDPC code against symbol errors
    Ldpc(ldpc::LdpcArgs),
}

/// Runs a measurement.
pub(crate) fn bench(command: &BenchCommand, out: &Output) -> anyhow::Result<()> {
    match command {
        BenchCommand::Ldpc(args) => ldpc::run(args, out),
    }
}
