//! When output is colored.

use std::ffi::OsString;

use super::*;

fn check(choice: ColorChoice, is_terminal: bool, variables: &[(&str, &str)]) -> bool {
    is_colored(choice, is_terminal, &|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(*value))
    })
}

#[test]
fn auto_color_follows_terminal_and_no_color() {
    assert!(check(ColorChoice::Auto, true, &[]));
    assert!(check(ColorChoice::Auto, true, &[("NO_COLOR", ""), ("TERM", "xterm-256color")]));
    assert!(!check(ColorChoice::Auto, true, &[("NO_COLOR", "1")]));
    assert!(!check(ColorChoice::Auto, true, &[("TERM", "dumb")]));
    assert!(!check(ColorChoice::Auto, false, &[]), "a pipe gets none");
}

#[test]
fn explicit_color_choice_overrides_auto() {
    assert!(check(ColorChoice::Always, false, &[("NO_COLOR", "1")]));
    assert!(!check(ColorChoice::Never, true, &[]));
}

#[test]
fn colored_text_keeps_its_width() {
    let styled = StyledText { tone: Some(Tone::Good), text: "ok" };
    assert_eq!(format!("[{styled:>4}]"), "[\u{1b}[32m  ok\u{1b}[0m]");
    let plain = StyledText { tone: None, text: "ok" };
    assert_eq!(format!("[{plain:>4}]"), "[  ok]");
}
