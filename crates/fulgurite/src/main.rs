//! `fulgurite`: an open archive, as one program.

mod cli;
mod config;
mod credentials;
mod exit;
mod limits;
mod names;
mod objects;
mod output;
mod progress;
mod remote;
mod s3;
mod server_file;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
