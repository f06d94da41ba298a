//! `completions SHELL` and `man DIR`: shell completions and manual pages, generated from the
//! definitions that parse the command line.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap_complete::Shell;
use clap_mangen::Man;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::Output;
use serde_json::json;

/// Flags of `completions`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Shell: bash, zsh or fish
    #[arg(value_name = "SHELL", value_parser = parse_shell)]
    shell: Shell,
}

/// Flags of `man`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages, like /usr/local/share/man/man1; created if missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Parses one of the three shells that are tested.
fn parse_shell(text: &str) -> Result<Shell, String> {
    match text {
        "bash" => Ok(Shell::Bash),
        "zsh" => Ok(Shell::Zsh),
        "fish" => Ok(Shell::Fish),
        _ => Err("write bash, zsh or fish".to_owned()),
    }
}

/// Runs `completions`, for the command line `root`.
pub(crate) fn completions(
    args: &CompletionsArgs,
    mut root: clap::Command,
    out: &Output,
) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut root, "fulgurite", &mut script);
    let script = String::from_utf8(script).context("the completions are not UTF-8")?;
    out.json("completions", &json!({"shell": args.shell.to_string(), "script": script}))?;
    out.text(script.trim_end())
}

/// Runs `man`, for the command line `root`.
pub(crate) fn man(args: &ManArgs, mut root: clap::Command, out: &Output) -> anyhow::Result<()> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).map_err(|error| {
        ExitError::new(Exit::Failure, format!("cannot create \"{}\": {error}", folder.display()))
    })?;
    root.build();
    let pages = write_pages(&root, "fulgurite", folder)?;
    out.json("man", &json!({"folder": folder.to_string_lossy(), "pages": pages}))?;
    out.text(format_args!("{pages} pages; man -l {}", folder.join("fulgurite.1").display()))
}

/// Writes the page of `command` and those of its subcommands; returns how many.
fn write_pages(command: &clap::Command, name: &str, folder: &Path) -> anyhow::Result<u64> {
    let page = render(command, name)?;
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page).with_context(|| format!("cannot write \"{}\"", path.display()))?;
    let mut pages = 1;
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        pages += write_pages(inner, &format!("{name}-{}", inner.get_name()), folder)?;
    }
    Ok(pages)
}

fn render(command: &clap::Command, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command.clone()).title(name).section("1");
    man.render(&mut page).context("cannot render a page")?;
    Ok(page)
}

#[cfg(test)]
mod tests;
