//! `fulgurite`: an open archive, as one program.

mod admin;
mod banner;
mod bench;
mod cli;
mod config;
mod credentials;
mod decode_worker;
mod demo;
mod descriptors;
mod durability;
mod exit;
mod file_time;
mod geo;
mod glass;
mod inspect;
mod limits;
mod log;
mod names;
mod objects;
mod orphans;
mod output;
mod process;
mod progress;
mod rack;
mod recover;
mod remote;
mod s3;
mod serve;
mod server_file;
mod shell;
mod style;
mod tome;
mod tomes;
mod twin;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
