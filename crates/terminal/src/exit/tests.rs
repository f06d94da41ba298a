//! Every error maps to its exit code, however deep its cause lies, and the table is complete.

use std::io;

use super::{EXIT_CODES_HELP, Exit, ExitError};

fn exit_of(error: &anyhow::Error) -> Exit {
    super::exit_of(error, |_| None)
}

#[test]
fn first_cause_with_exit_code_wins() {
    let io = |kind| anyhow::Error::from(io::Error::from(kind));
    assert_eq!(exit_of(&io(io::ErrorKind::BrokenPipe)), Exit::Success);
    assert_eq!(exit_of(&io(io::ErrorKind::NotFound).context("outer")), Exit::NotFound);
    assert_eq!(exit_of(&io(io::ErrorKind::Other)), Exit::Failure);
    assert_eq!(exit_of(&anyhow::anyhow!("unknown")), Exit::Failure);
    let exit_error = anyhow::Error::from(ExitError::new(Exit::Archived, "inner")).context("outer");
    assert_eq!(exit_of(&exit_error), Exit::Archived);
}

#[test]
fn help_lists_every_exit_code() {
    let all = [
        Exit::Success,
        Exit::Failure,
        Exit::Usage,
        Exit::Config,
        Exit::NotFound,
        Exit::Archived,
        Exit::Denied,
        Exit::Unavailable,
        Exit::Corrupt,
        Exit::Locked,
        Exit::Partial,
        Exit::KeysFailed,
        Exit::KeysWithoutBodies,
    ];
    let manual = include_str!("../../../../docs/operating.md");
    for (row, exit) in EXIT_CODES_HELP.lines().skip(1).zip(all) {
        let (code, meaning) = row.trim().split_once("  ").unwrap();
        assert_eq!(code, (exit as u8).to_string());
        let shown = format!("| {code} | {} |", meaning.replace("`", ""));
        assert!(manual.replace('`', "").contains(&shown), "docs/operating.md lacks: {shown}");
    }
    assert_eq!(EXIT_CODES_HELP.lines().count(), all.len() + 1);
}
