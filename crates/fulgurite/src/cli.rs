//! The command line: its commands, and how each run ends.

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use fulgurite_archive_commands::archive::{ArchiveCommand, archive};
use fulgurite_archive_commands::bench::{BenchCommand, bench};
use fulgurite_archive_commands::config::ConfigArgs;
use fulgurite_archive_commands::decode_worker::{DecodeWorkerArgs, decode_worker};
use fulgurite_archive_commands::durability::{DurabilityArgs, durability};
use fulgurite_archive_commands::geo::{GeoCommand, geo};
use fulgurite_archive_commands::inspect::{InspectArgs, inspect};
use fulgurite_archive_commands::lab::{LabCommand, lab};
use fulgurite_archive_commands::recover::{RecoverArgs, recover};
use fulgurite_archive_commands::serve::{ServeArgs, serve};
use fulgurite_archive_commands::tier::{TierCommand, tier};
use fulgurite_archive_commands::tome::{TomeCommand, tome};
use fulgurite_object_commands::{ObjectCommand, object};
use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::exit::{EXIT_CODES_HELP, Exit, ExitError};
use fulgurite_terminal::output::{Output, note};
use fulgurite_terminal::style::{self, ColorChoice, Tone};
use fulgurite_twin_commands::{TwinCommand, twin};
use tracing_subscriber::EnvFilter;

use crate::demo::{DemoArgs, demo};
use crate::exit::exit_of;
use crate::log::{self, LogFormat};
use crate::shell::{CompletionsArgs, ManArgs, completions, man};

/// An open archive for data that must outlive its hardware.
#[derive(Debug, Parser)]
#[command(name = "fulgurite", version, about, after_help = EXIT_CODES_HELP, max_term_width = 80)]
struct Cli {
    /// Print one JSON object per line instead of text
    #[arg(long, global = true)]
    json: bool,
    /// Format of log lines on standard error: text or json
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
    /// When to color: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        global = true
    )]
    color: ColorChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve an archive over S3
    Serve(ServeArgs),
    /// Show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    #[command(flatten)]
    Objects(ObjectCommand),
    /// Seal, verify and watch a running archive
    Archive(ArchiveCommand),
    /// List, create, watch and repair the tiers: racks, tomes, sites
    Tier(TierCommand),
    /// Serve a tome of a set in a process of its own
    Tome(TomeCommand),
    /// Check stores for several sites, and serve those of one
    Geo(GeoCommand),
    /// Show what a platter file holds
    Inspect(InspectArgs),
    /// Show how likely tracks, groups and sets are to be lost
    Durability(DurabilityArgs),
    /// Rebuild the catalog from platters, logs and keys
    Recover(RecoverArgs),
    /// Archive a folder, damage the platters, bring every byte back
    Demo(DemoArgs),
    /// Decode for archives on other machines
    DecodeWorker(DecodeWorkerArgs),
    /// Measure the codes
    Bench(BenchCommand),
    /// Measure, compare and draw the simulated voxels
    Lab(LabCommand),
    /// Simulate libraries, replay their logs, generate traces
    Twin(TwinCommand),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Write the manual pages
    Man(ManArgs),
}

/// The commands in the order of the help, in groups.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Archive",
        &["serve", "config", "archive", "tier", "recover", "inspect", "durability", "demo"],
    ),
    (
        "Objects",
        &["put", "get", "cat", "cp", "mv", "sync", "ls", "rm", "mb", "rb", "restore", "status"],
    ),
    ("On other machines", &["tome", "geo", "decode-worker"]),
    ("Simulate and measure", &["twin", "lab", "bench"]),
    ("This program", &["completions", "man"]),
];

/// Lists the commands in groups in the help.
fn with_grouped_help(command: clap::Command) -> clap::Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let mut commands = String::new();
    for (title, names) in GROUPS {
        commands.push_str(&format!("{header}{title}:{header:#}\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            commands.push_str(&format!("  {literal}{name:<13}{literal:#}  {about}\n"));
        }
        commands.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

impl Command {
    /// Whether the command does its work even if no one reads its output.
    const fn ignores_broken_pipe(&self) -> bool {
        match self {
            Self::Objects(command) => command.ignores_broken_pipe(),
            Self::Tier(command) => command.ignores_broken_pipe(),
            Self::Serve(_)
            | Self::Recover(_)
            | Self::Demo(_)
            | Self::DecodeWorker(_)
            | Self::Man(_)
            | Self::Geo(_)
            | Self::Tome(_)
            | Self::Archive(_) => true,
            Self::Config(_)
            | Self::Inspect(_)
            | Self::Durability(_)
            | Self::Bench(_)
            | Self::Lab(_)
            | Self::Twin(_)
            | Self::Completions(_) => false,
        }
    }
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the effective configuration: file, environment and flags together, as a file
    Show(ConfigArgs),
}

/// Parses, runs, and turns the outcome into an exit code.
pub(crate) fn main() -> ExitCode {
    let cli = parse();
    style::choose(cli.color);
    start_log(&cli);
    let out = Output::new(cli.json);
    let out = if cli.command.ignores_broken_pipe() { out.ignoring_broken_pipe() } else { out };
    let result =
        check_processor().and_then(|()| run(&cli.command, &out)).and_then(|()| out.flush());
    let exit = match result {
        Ok(()) => Exit::Success,
        Err(error) => {
            let exit = exit_of(&error);
            if exit != Exit::Success {
                // What was printed before the failure is still a result.
                let _ = out.flush();
                let message = format!("{error:#}");
                note(format_args!(
                    "{} {}",
                    style::error(Tone::Bad, "fulgurite:"),
                    message.trim_end()
                ));
            }
            exit
        }
    };
    ExitCode::from(exit as u8)
}

/// Parses the command line; help and error messages use the requested color.
fn parse() -> Cli {
    let choice = requested_color(std::env::args_os());
    let matches = with_grouped_help(Cli::command()).color(choice).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Finds the value of `--color` before anything else is parsed, so that the error of a wrong
/// command line is in color too.
fn requested_color(arguments: impl Iterator<Item = std::ffi::OsString>) -> clap::ColorChoice {
    let mut choice = clap::ColorChoice::Auto;
    let mut is_value = false;
    for argument in arguments.skip(1) {
        let text = argument.to_string_lossy();
        let value = match text.strip_prefix("--color=") {
            Some(value) => Some(value),
            None if is_value => Some(&*text),
            None => None,
        };
        is_value = text == "--color";
        match value {
            Some("always") => choice = clap::ColorChoice::Always,
            Some("never") => choice = clap::ColorChoice::Never,
            _ if text == "--" => break,
            _ => {}
        }
    }
    choice
}

/// Returns the command line as clap knows it, for completions and manual pages.
pub(crate) fn command_line() -> clap::Command {
    Cli::command()
}

/// Rejects instructions that the environment forces and this processor lacks, and an impossible
/// cache size: silently using others would falsify a measurement or a test.
fn check_processor() -> anyhow::Result<()> {
    match fulgurite_codes::Isa::from_env().and_then(|_| fulgurite_codes::l2_cache_bytes_from_env())
    {
        Ok(_) => Ok(()),
        Err(error) => Err(ExitError::new(Exit::Config, error.to_string()).into()),
    }
}

fn run(command: &Command, out: &Output) -> anyhow::Result<()> {
    // For everything that speaks TLS: clients, and tiers in a bucket, which a recovery reads as
    // well. If a provider was installed before, it is this one: there is no other.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match command {
        Command::Config(ConfigCommand::Show(args)) => show_config(args, out),
        Command::Inspect(args) => inspect(args, out),
        Command::Bench(command) => bench(command, out),
        Command::Lab(command) => lab(command, out),
        Command::Twin(command) => twin(command, out),
        Command::Durability(args) => durability(args, out),
        Command::Recover(args) => recover(args, out),
        Command::Completions(args) => completions(args, command_line(), out),
        Command::Man(args) => man(args, command_line(), out),
        Command::Serve(args) => block_on(serve(args, out)),
        Command::Archive(command) => block_on(archive(command, out)),
        Command::Tier(command) => block_on(tier(command, out)),
        Command::Geo(command) => block_on(geo(command, out)),
        Command::Tome(command) => block_on(tome(command, out)),
        Command::DecodeWorker(args) => block_on(decode_worker(args, out)),
        Command::Demo(args) => block_on(Box::pin(demo(args, out))),
        Command::Objects(command) => block_on(object(command, out)),
    }
}

/// Runs an async command.
fn block_on(work: CommandFuture<'_>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

fn show_config(args: &ConfigArgs, out: &Output) -> anyhow::Result<()> {
    let config = args.load()?;
    out.json("config", &config.in_file())?;
    out.text(config.show()?.trim_end())
}

/// Starts the log on standard error; `FULGURITE_LOG` (or `RUST_LOG`) sets the filter.
fn start_log(cli: &Cli) {
    // The gateway itself logs the result of a request; s3s logs every refused one as an error. A
    // demo damages its archive on purpose, so its warnings are expected.
    let default = match &cli.command {
        Command::Serve(_) => "info,s3s=off,fjall=warn,lsm_tree=warn,async_nats=warn",
        Command::DecodeWorker(_) => "info,async_nats=warn",
        Command::Tome(_) => "info,fjall=warn,lsm_tree=warn",
        Command::Demo(_) => "error,s3s=off",
        Command::Config(_)
        | Command::Objects(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Archive(_)
        | Command::Geo(_)
        | Command::Tier(_)
        | Command::Inspect(_)
        | Command::Bench(_)
        | Command::Durability(_)
        | Command::Lab(_)
        | Command::Recover(_)
        | Command::Twin(_) => "warn",
    };
    let filter = EnvFilter::try_from_env("FULGURITE_LOG")
        .or_else(|_| EnvFilter::try_from_default_env())
        .unwrap_or_else(|_| EnvFilter::new(default));
    log::start(cli.log_format, filter);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let all: BTreeSet<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), all);
        assert_eq!(listed.len(), all.len(), "a command is listed twice");
    }
}
