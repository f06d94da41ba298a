//! The project's own tool: `cargo xtask COMMAND`.
//!
//! It starts other programs (cargo, python, the archive itself), reads their exit codes and prints
//! what happened. It is not part of the product: nothing under `crates/` may use it.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a terminal tool: standard output and error are where its results go"
)]

#[cfg(feature = "bench")]
mod bench;
mod check;
mod deny;
mod e2e;
mod environment;
mod fuzz;
mod lab;
mod serve;
mod shell;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  serve [ARGS]                       build for release and run `fulgurite serve ARGS`
                                     (--data ./fulgurite-data unless given)
  test                               every test: Rust, documentation examples, end to end, lab
  ci                                 the gate: fmt, clippy, tidy, licenses, advisories, test, doc,
                                     ruff, end to end, lab
  tidy                               the house rules that no compiler checks
  fuzz [SECONDS]                     every fuzz target for so long (60 s)
  bench [NAME] [--json] [--record]   measure speed; --record appends to bench/history.ndjson;
                                     --objects COUNT makes `bench recover` smaller or larger
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let result = match command.as_str() {
        "serve" => serve::run(rest),
        "test" => check::test(),
        "ci" => check::ci(),
        "tidy" => tidy::run(),
        "bench" => run_bench(&rest),
        "fuzz" => fuzz::run(&rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(feature = "bench")]
fn run_bench(args: &[String]) -> anyhow::Result<()> {
    bench::run(args)
}

/// Without the feature: rebuilds with it, for release, and runs that.
#[cfg(not(feature = "bench"))]
fn run_bench(args: &[String]) -> anyhow::Result<()> {
    let mut command = shell::cargo();
    let features = if cfg!(feature = "tract") { "bench,tract" } else { "bench" };
    command.args(["run", "--quiet", "--release", "--package", "xtask", "--features", features]);
    command.args(["--", "bench"]).args(args);
    shell::run(&mut command)
}
