//! Untrusted names stay within their line, in text and in JSON.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

use super::{EscapedFields, EscapedLines, escaped};

/// The log output.
#[derive(Clone, Debug, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// A line break with a forged line, colors, a bell, both forms of escape, and a reversed end.
const KEY: &str = "a\n2026-01-01 ERROR forged\r\u{1b}[31m\u{7}\u{9b}2J\u{7f}\u{202e}gpj";

/// Logs names in every way in which they get into an event: message, display, debug, string, span.
fn log_names() {
    let span = tracing::error_span!("request", id = KEY, shown = %KEY);
    let _inside = span.enter();
    tracing::error!(key = %KEY, bucket = KEY, found = ?KEY, "object {KEY} is gone");
}

fn check(text: &str) {
    assert_eq!(text.matches('\n').count(), 1, "one event is one line: {text:?}");
    assert!(text.ends_with('\n'));
    let control = text.trim_end_matches('\n').chars().find(|c| c.is_control() || *c == '\u{202e}');
    assert_eq!(control, None, "{text:?}");
    assert!(text.contains("forged"), "nothing is left out: {text:?}");
}

#[test]
fn text_log_lines_cannot_be_forged() {
    let sink = Sink::default();
    let builder = tracing_subscriber::fmt().with_ansi(false).fmt_fields(EscapedFields);
    tracing::subscriber::with_default(builder.with_writer(sink.clone()).finish(), log_names);
    check(&sink.text());
    assert!(sink.text().contains("object a\\n2026-01-01 ERROR forged\\r"), "{}", sink.text());
}

#[test]
fn json_log_lines_cannot_be_forged() {
    let sink = Sink::default();
    let builder = tracing_subscriber::fmt().json().with_writer(EscapedLines(sink.clone()));
    tracing::subscriber::with_default(builder.finish(), log_names);
    check(&sink.text());
    let line: serde_json::Value = serde_json::from_str(&sink.text()).unwrap();
    assert_eq!(line["fields"]["bucket"], KEY);
    assert_eq!(line["fields"]["key"], KEY);
}

#[test]
fn own_colors_stay_but_untrusted_ones_are_escaped() {
    let sink = Sink::default();
    let builder = tracing_subscriber::fmt().with_ansi(true).fmt_fields(EscapedFields);
    tracing::subscriber::with_default(builder.with_writer(sink.clone()).finish(), log_names);
    let text = sink.text();
    assert!(!text.contains("\u{1b}[31m\u{7}"), "{text:?}");
    assert!(text.contains("\u{1b}["), "a terminal has colors: {text:?}");
    assert_eq!(text.matches('\n').count(), 1, "{text:?}");
}

#[test]
fn plain_text_is_not_escaped() {
    for text in ["", "dir/file name.jpg", "\u{e9}\u{1f9ca}", "a\\nb"] {
        assert_eq!(escaped(text), text);
    }
    assert_eq!(escaped("a\nb\tc\u{0}"), "a\\nb\\tc\\u0000");
}
