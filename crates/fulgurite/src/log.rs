//! Log lines on standard error. One event is one line: untrusted names (keys, buckets, headers,
//! file names) can neither start a line of their own nor control the terminal.
//!
//! ```text
//!   text:  time level target: FIELDS       FIELDS are formatted, then escaped
//!   JSON:  {"timestamp":..}                serde escapes what JSON must; the rest is escaped after
//! ```

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io;

use fulgurite_terminal::output::note;
use fulgurite_terminal::style;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::fmt::{FormatFields, MakeWriter};

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// Starts the log of this process.
pub(crate) fn start(format: LogFormat, filter: EnvFilter) {
    // A line that cannot be written (its disk is full) is lost; reporting that on the same standard
    // error would panic, and end the request that the line was about.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(style::is_error_colored())
        .log_internal_errors(false);
    let started = match format {
        LogFormat::Text => builder.fmt_fields(EscapedFields).with_writer(io::stderr).try_init(),
        LogFormat::Json => builder.json().with_writer(EscapedLines(io::stderr)).try_init(),
    };
    if let Err(error) = started {
        note(format_args!("fulgurite: cannot start the log: {error}"));
    }
}

/// Escapes control characters as `\n`, `\t` or `\u001b`, which mean the same in JSON.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_control(c) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Whether a character is a control character of either range, a separator at which some viewers
/// break lines, or changes the direction of text.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The default format of fields, escaped as a whole: message, values and their output.
#[derive(Clone, Copy, Debug, Default)]
struct EscapedFields;

impl<'writer> FormatFields<'writer> for EscapedFields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), fields)?;
        writer.write_str(&escaped(&text))
    }
}

/// A writer of whole lines, each of which is escaped except for its end.
#[derive(Clone, Copy, Debug)]
struct EscapedLines<M>(M);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for EscapedLines<M> {
    type Writer = EscapedLines<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        EscapedLines(self.0.make_writer())
    }
}

impl<W: io::Write> io::Write for EscapedLines<W> {
    /// The subscriber writes one event at a time, whole.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let (line, end) = text.strip_suffix('\n').map_or((&*text, ""), |line| (line, "\n"));
        self.0.write_all(escaped(line).as_bytes())?;
        self.0.write_all(end.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests;
