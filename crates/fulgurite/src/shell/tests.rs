//! Completions and pages cover every command.

use super::*;
use crate::cli::command_line;

/// Returns every command by the words that call it.
fn commands() -> Vec<String> {
    fn add(command: &clap::Command, name: &str, names: &mut Vec<String>) {
        names.push(name.to_owned());
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            add(inner, &format!("{name}-{}", inner.get_name()), names);
        }
    }
    let mut root = command_line();
    root.build();
    let mut names = Vec::new();
    add(&root, "fulgurite", &mut names);
    names.sort();
    names
}

#[test]
fn command_line_definition_is_valid() {
    command_line().debug_assert();
}

#[test]
fn every_command_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    let args = ManArgs { folder: folder.path().join("man1") };
    man(&args, command_line(), &Output::silent()).unwrap();
    let mut pages: Vec<String> = std::fs::read_dir(&args.folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let mut expected: Vec<String> = commands().iter().map(|name| format!("{name}.1")).collect();
    expected.sort();
    assert_eq!(pages, expected);
    assert!(pages.contains(&"fulgurite-archive-seal.1".to_owned()));
    for page in pages {
        let text = std::fs::read_to_string(args.folder.join(&page)).unwrap();
        let title = page.trim_end_matches(".1");
        assert!(text.contains(&format!(".TH {title} 1")), "{page}: {text}");
    }
}

#[test]
fn completions_name_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let mut script = Vec::new();
        let shell = parse_shell(shell).unwrap();
        clap_complete::generate(shell, &mut command_line(), "fulgurite", &mut script);
        let script = String::from_utf8(script).unwrap();
        for word in commands().iter().flat_map(|name| name.split('-').skip(1)) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert!(parse_shell("tcsh").is_err());
}
