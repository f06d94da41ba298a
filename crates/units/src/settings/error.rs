//! Errors in settings, shown with the offending line.

use std::fmt;
use std::ops::Range;

use serde::de::{Expected, Unexpected};

use super::value::{Content, Entry, Value};

/// An error in a text or a table, with its location.
///
/// Displayed as the toml crate displays its own errors:
///
/// ```text
/// TOML parse error at line 2, column 8
///   |
/// 2 | panels = "six"
///   |          ^^^^^
/// invalid type: string "six", expected u32
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    message: String,
    /// The whole text, to show the line of the span.
    text: Option<String>,
    /// Path to the value, the outermost key last.
    keys: Vec<String>,
    span: Option<Range<usize>>,
}

impl Error {
    /// Returns the error on one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the byte range of the offending text, if known.
    #[must_use]
    pub fn span(&self) -> Option<Range<usize>> {
        self.0.span.clone()
    }

    #[cold]
    pub(super) fn new(message: String, span: Option<Range<usize>>) -> Self {
        Self(Box::new(Inner { message, text: None, keys: Vec::new(), span }))
    }

    /// Converts a syntax error of toml's parser for `text`.
    #[cold]
    pub(super) fn syntax(error: &toml::de::Error, text: &str) -> Self {
        Self::new(error.message().to_owned(), error.span()).with_text(text)
    }

    /// Attaches the text that the span refers to.
    #[cold]
    pub(super) fn with_text(mut self, text: &str) -> Self {
        self.0.text = Some(text.to_owned());
        self
    }

    /// Sets the location to `value`'s, unless an inner value has set it.
    #[cold]
    pub(super) fn locate(&mut self, value: &Value) {
        if self.0.span.is_none() {
            self.0.span.clone_from(&value.span);
        }
    }

    /// Sets the location to the entry's value, unless an inner value has, and adds the key to the
    /// path.
    #[cold]
    pub(super) fn add_key(&mut self, entry: &Entry) {
        self.locate(&entry.value);
        self.0.keys.push(entry.key_text().to_owned());
    }

    /// Creates the error for a value of another type than expected.
    #[cold]
    pub(super) fn mismatch(value: &Value, expected: &dyn Expected) -> Self {
        let unexpected = match &value.content {
            Content::Null => Unexpected::Unit,
            Content::Boolean(flag) => Unexpected::Bool(*flag),
            Content::Integer(number) => Unexpected::Signed(*number),
            Content::Unsigned(number) => Unexpected::Unsigned(*number),
            Content::BigInteger(number) => Unexpected::Other(number),
            Content::Overflow(message) => {
                return Self::new((*message).to_owned(), value.span.clone());
            }
            Content::Float(number) => Unexpected::Float(*number),
            Content::String(text) | Content::Key(text) => Unexpected::Str(text),
            Content::Datetime(_) | Content::Table(_) => Unexpected::Map,
            Content::Array(_) => Unexpected::Seq,
        };
        let mut error: Self = serde::de::Error::invalid_type(unexpected, expected);
        error.locate(value);
        error
    }
}

impl serde::de::Error for Error {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string(), None)
    }
}

impl std::error::Error for Error {}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { message, text, keys, span } = &*self.0;
        match (text, span) {
            (Some(text), Some(span)) => {
                show_line(f, text, span)?;
                writeln!(f, "{message}")
            }
            _ if keys.is_empty() => writeln!(f, "{message}"),
            _ => {
                let path: Vec<&str> = keys.iter().rev().map(String::as_str).collect();
                writeln!(f, "{message}\nin `{}`", path.join("."))
            }
        }
    }
}

/// Prints the line in which a span begins, with carets below the span.
fn show_line(f: &mut fmt::Formatter<'_>, text: &str, span: &Range<usize>) -> fmt::Result {
    let (line, column) = position(text, span.start);
    let content = text.split('\n').nth(line).unwrap_or_default();
    let number = (line + 1).to_string();
    let gutter = " ".repeat(number.len() + 1);
    // At most to the end of the line, and at least one: the end of a text is an empty span.
    let carets = (span.end - span.start).min(content.len().saturating_sub(column)).max(1);
    writeln!(f, "TOML parse error at line {number}, column {}", column + 1)?;
    writeln!(f, "{gutter}|")?;
    writeln!(f, "{number} | {content}")?;
    writeln!(f, "{gutter}|{}{}", " ".repeat(column + 1), "^".repeat(carets))
}

/// Returns line and column of a byte, counted from 0, columns in characters. Offsets beyond the
/// last byte continue the column.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let Some(last) = bytes.len().checked_sub(1) else { return (0, offset) };
    let index = offset.min(last);
    let start = bytes[..index].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let line = bytes[..start].iter().filter(|&&byte| byte == b'\n').count();
    // Inside a multi-byte character, columns count bytes.
    let column = std::str::from_utf8(&bytes[start..=index])
        .map_or(index - start, |before| before.chars().count() - 1);
    (line, column + offset - index)
}
