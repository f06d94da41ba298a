//! Runs the program: once to its end, or as a server that stops with the test.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// Returns the program, without the environment settings of the test runner.
pub(crate) fn fulgurite(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fulgurite"));
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("FULGURITE_") || name_text.starts_with("AWS_") {
            command.env_remove(&name);
        }
    }
    command.args(args).stdin(Stdio::null()).env_remove("RUST_LOG");
    command
}

/// Runs to the end and returns everything: standard output, standard error, exit code.
pub(crate) fn transcript(command: &mut Command) -> String {
    let output = command.output().unwrap();
    show(&output)
}

/// Breaks long lines at a space, so that transcripts can be read in the source.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::new();
    for line in text.lines() {
        let mut rest = line;
        while rest.len() > 80
            && let Some(space) = rest[..80].rfind(' ').filter(|space| *space > 10)
        {
            folded.push_str(&rest[..space]);
            folded.push_str("\n   ");
            rest = &rest[space..];
        }
        folded.push_str(rest);
        folded.push('\n');
    }
    folded
}

fn show(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        text.push_str(&format!("err: {line}\n"));
    }
    text.push_str(&format!("exit: {}\n", output.status.code().unwrap_or(-1)));
    text
}

/// A server of a data directory, on a free port.
pub(crate) struct Server {
    child: Child,
    /// Its message when it started to listen.
    pub(crate) listening: Value,
}

impl Server {
    /// Starts a server of `data` and waits until it listens.
    pub(crate) fn start(data: &Path, more: &[&str]) -> Self {
        let data = data.to_string_lossy();
        let mut args = vec!["serve", "--json", "--data", &*data, "--listen", "127.0.0.1:0"];
        args.extend(["--profile", "demo"]);
        args.extend(more);
        let mut child =
            fulgurite(&args).env("FULGURITE_LOG", "warn").stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let listening = serde_json::from_str(&line).expect("the server listens");
        Self { child, listening }
    }

    /// Sends SIGTERM and returns the exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone after `terminate`: then both calls fail, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
