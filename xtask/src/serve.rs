//! `cargo xtask serve`: the shortest way from a fresh clone to a running archive.

use std::process::Command;

use anyhow::Result;

use crate::shell;

/// Data directory when none is given.
const DATA_DEFAULT: &str = "./fulgurite-data";

/// Tiers of the profile `demo`: a small rack of simulated disks, and some tomes.
const DEMO_TIERS: [&str; 4] = ["--tier", "rack=rack:laptop", "--tier", "tomes=tome:8"];

/// Builds for release, and replaces itself by `fulgurite serve`.
pub(crate) fn run(args: Vec<String>) -> Result<()> {
    shell::run(shell::cargo().args(["build", "--release", "--package", "fulgurite"]))?;
    let mut command = Command::new(shell::target().join("release/fulgurite"));
    command.arg("serve").args(with_tiers(with_data(args)));
    replace_process(&mut command)
}

/// Adds the default data directory if the arguments name none.
fn with_data(mut args: Vec<String>) -> Vec<String> {
    let is_given = args.iter().any(|arg| arg == "--data" || arg.starts_with("--data="));
    if !is_given {
        args.extend(["--data".to_owned(), DATA_DEFAULT.to_owned()]);
    }
    args
}

/// For the profile `demo`, adds tiers, unless the arguments have some, or a configuration that may.
fn with_tiers(mut args: Vec<String>) -> Vec<String> {
    let pair = ["--profile", "demo"];
    let is_demo =
        args.windows(2).any(|two| two == pair) || args.iter().any(|arg| arg == "--profile=demo");
    if is_demo && !has_flag(&args, "--tier") && !has_flag(&args, "--config") {
        args.extend(DEMO_TIERS.map(str::to_owned));
    }
    args
}

/// Returns whether a flag is among the arguments.
fn has_flag(args: &[String], name: &str) -> bool {
    let with_value = format!("{name}=");
    args.iter().any(|arg| arg == name || arg.starts_with(&with_value))
}

/// Replaces this process, so that signals meant for the server reach it.
#[cfg(unix)]
fn replace_process(command: &mut Command) -> Result<()> {
    use std::os::unix::process::CommandExt as _;
    let error = command.exec();
    Err(anyhow::Error::new(error).context(format!("cannot start `{}`", shell::text(command))))
}

#[cfg(not(unix))]
fn replace_process(command: &mut Command) -> Result<()> {
    shell::run(command)
}

#[cfg(test)]
mod tests {
    use super::{with_data, with_tiers};

    #[test]
    fn data_directory_is_added_only_when_missing() {
        let args = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(with_data(Vec::new()), args("--data ./fulgurite-data"));
        assert_eq!(with_data(args("--data=x")), args("--data=x"));
        assert_eq!(with_data(args("--tls auto --data x")), args("--tls auto --data x"));
    }

    #[test]
    fn demo_gets_a_rack_and_tomes_unless_configured() {
        let args = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let demo = "--profile demo --tier rack=rack:laptop --tier tomes=tome:8";
        assert_eq!(with_tiers(args("--profile demo")), args(demo));
        assert_eq!(
            with_tiers(args("--profile=demo")),
            args("--profile=demo --tier rack=rack:laptop --tier tomes=tome:8")
        );
        for said in
            ["--profile desk", "--profile demo --tier a=tome:8", "--config c --profile demo"]
        {
            assert_eq!(with_tiers(args(said)), args(said));
        }
    }
}
