//! The command line: what can be said, and how each run ends.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tracing_subscriber::EnvFilter;

use crate::admin::{AdminCommand, admin};
use crate::bench::{BenchCommand, bench};
use crate::config::{Config, Overrides, TlsChoice, of_process};
use crate::decode_worker::{DecodeWorkerArgs, decode_worker};
use crate::demo::{DemoArgs, demo};
use crate::durability::{DurabilityArgs, durability};
use crate::exit::{Coded, EXIT_CODES_HELP, Exit, exit_of};
use crate::glass::{GlassCommand, glass};
use crate::inspect::{InspectArgs, inspect};
use crate::objects;
use crate::output::{Output, is_watched, note};
use crate::recover::{RecoverArgs, recover};
use crate::remote::RemoteArgs;
use crate::serve::{ServeArgs, serve};
use crate::twin::{TwinCommand, twin};

/// An open archive: an S3 endpoint over (simulated) glass storage.
#[derive(Debug, Parser)]
#[command(name = "fulgurite", version, about, after_help = EXIT_CODES_HELP, max_term_width = 80)]
struct Cli {
    /// Print one JSON object a line instead of text
    #[arg(long, global = true)]
    json: bool,
    /// Form of log lines on standard error: text or json
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value = "text",
        env = "FULGURITE_LOG_FORMAT",
        hide_env = true,
        hide_possible_values = true,
        global = true
    )]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve an archive over S3
    Serve(ServeArgs),
    /// Show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Store files and folders as objects
    Put(WithRemote<objects::PutArgs>),
    /// Fetch objects into a folder
    Get(WithRemote<objects::GetArgs>),
    /// List buckets or objects
    Ls(WithRemote<objects::LsArgs>),
    /// Delete objects
    Rm(WithRemote<objects::RmArgs>),
    /// Make a bucket
    Mb(WithRemote<objects::BucketArgs>),
    /// Delete an empty bucket
    Rb(WithRemote<objects::BucketArgs>),
    /// Ask for readable copies of archived objects
    Restore(WithRemote<objects::RestoreArgs>),
    /// Show class and restore state of objects
    Status(WithRemote<objects::StatusArgs>),
    /// Seal, verify and watch a running archive
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Show what a platter file holds
    Inspect(InspectArgs),
    /// Show how likely tracks, groups and sets are to be lost
    Durability(DurabilityArgs),
    /// Rebuild the catalog from platters and keys
    Recover(RecoverArgs),
    /// Archive a folder, damage the platters, bring every byte back
    Demo(DemoArgs),
    /// Decode for archives on other machines
    DecodeWorker(DecodeWorkerArgs),
    /// Measure the codes
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Measure, compare and draw the simulated voxels
    #[command(subcommand)]
    Glass(GlassCommand),
    /// Simulate libraries, play their logs again, make traces
    #[command(subcommand)]
    Twin(TwinCommand),
}

/// A command's own flags and those of the server.
#[derive(Debug, Args)]
struct WithRemote<A: Args> {
    #[command(flatten)]
    own: A,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print what is in effect: file, environment and flags together, as a file
    Show(ConfigArgs),
}

/// Where configuration comes from.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE", env = "FULGURITE_CONFIG")]
    config: Option<PathBuf>,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<std::net::SocketAddr>,
    /// TLS: off, auto (self-signed) or CERT,KEY (PEM files)
    #[arg(long, value_name = "CHOICE")]
    tls: Option<TlsChoice>,
    /// Platter profile: sliver, demo, desk or silica
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

impl ConfigArgs {
    /// The configuration in effect.
    pub(crate) fn load(&self) -> anyhow::Result<Config> {
        let overrides =
            Overrides { listen: self.listen, tls: self.tls.clone(), profile: self.profile.clone() };
        Ok(Config::load(self.config.as_deref(), of_process(), overrides)?)
    }
}

/// Parses, runs, and turns the outcome into an exit code.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    start_log(&cli);
    let out = Output::new(cli.json);
    let result =
        check_instructions().and_then(|()| run(&cli.command, &out)).and_then(|()| out.flush());
    let exit = match result {
        Ok(()) => Exit::Success,
        Err(error) => {
            let exit = exit_of(&error);
            if exit != Exit::Success {
                // What was printed before the failure is still a result.
                let _ = out.flush();
                let said = format!("{error:#}");
                note(format_args!("fulgurite: {}", said.trim_end()));
            }
            exit
        }
    };
    ExitCode::from(exit as u8)
}

/// Refuses instructions that the environment forces and this processor lacks: quietly taking others
/// would make a measurement or a test of them a lie.
fn check_instructions() -> anyhow::Result<()> {
    match fulgurite_codes::Isa::forced() {
        Ok(_) => Ok(()),
        Err(error) => Err(Coded::new(Exit::Config, error.to_string()).into()),
    }
}

fn run(command: &Command, out: &Output) -> anyhow::Result<()> {
    match command {
        Command::Config(ConfigCommand::Show(args)) => show_config(args, out),
        Command::Inspect(args) => inspect(args, out),
        Command::Bench(command) => bench(command, out),
        Command::Glass(command) => glass(command, out),
        Command::Twin(command) => twin(command, out),
        Command::Durability(args) => durability(args, out),
        Command::Recover(args) => recover(args, out),
        Command::Serve(args) => block_on(serve(args, out)),
        Command::Admin(command) => block_on(admin(command, out)),
        Command::DecodeWorker(args) => block_on(decode_worker(args, out)),
        Command::Demo(args) => block_on(demo(args, out)),
        Command::Put(args) => block_on(objects::put(&args.own, &args.remote, out)),
        Command::Get(args) => block_on(objects::get(&args.own, &args.remote, out)),
        Command::Ls(args) => block_on(objects::ls(&args.own, &args.remote, out)),
        Command::Rm(args) => block_on(objects::rm(&args.own, &args.remote, out)),
        Command::Mb(args) => block_on(objects::make_bucket(&args.own, &args.remote, out)),
        Command::Rb(args) => block_on(objects::remove_bucket(&args.own, &args.remote, out)),
        Command::Restore(args) => block_on(objects::restore(&args.own, &args.remote, out)),
        Command::Status(args) => block_on(objects::status(&args.own, &args.remote, out)),
    }
}

fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    // Whoever installed a provider before us installed this one: there is no other.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

fn show_config(args: &ConfigArgs, out: &Output) -> anyhow::Result<()> {
    let config = args.load()?;
    out.json(&config)?;
    out.text(config.show()?.trim_end())
}

/// Log lines go to standard error; `FULGURITE_LOG` (or `RUST_LOG`) says which.
fn start_log(cli: &Cli) {
    // The gateway says itself what became of a request; s3s calls every refused one an error. A
    // demo damages its archive on purpose: warnings of it are no news.
    let default = match &cli.command {
        Command::Serve(_) => "info,s3s=off,fjall=warn,lsm_tree=warn,async_nats=warn",
        Command::DecodeWorker(_) => "info,async_nats=warn",
        Command::Demo(_) => "error,s3s=off",
        Command::Config(_)
        | Command::Put(_)
        | Command::Get(_)
        | Command::Ls(_)
        | Command::Rm(_)
        | Command::Mb(_)
        | Command::Rb(_)
        | Command::Restore(_)
        | Command::Status(_)
        | Command::Admin(_)
        | Command::Inspect(_)
        | Command::Bench(_)
        | Command::Durability(_)
        | Command::Glass(_)
        | Command::Recover(_)
        | Command::Twin(_) => "warn",
    };
    let filter = EnvFilter::try_from_env("FULGURITE_LOG")
        .or_else(|_| EnvFilter::try_from_default_env())
        .unwrap_or_else(|_| EnvFilter::new(default));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(is_watched())
        .with_writer(std::io::stderr);
    let started = match cli.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    if let Err(error) = started {
        note(format_args!("fulgurite: no log: {error}"));
    }
}
