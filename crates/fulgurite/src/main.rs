//! `fulgurite`: an open archive, as one program.

mod cli;
mod demo;
mod exit;
mod log;
mod shell;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
