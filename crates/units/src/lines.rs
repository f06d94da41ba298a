//! Line-based logs of controllers: what all of them share when they write and read.
//!
//! ```text
//! a controller's log: content of a line --> LineWriter: whole lines, byte count, monotonic time
//! ```
//!
//! The content of a line and the format belong to each log (`docs/formats`). Sources and sinks are
//! passed in.

use std::io::{self, BufRead, Read as _, Write};

use crate::Instant;

/// Writes lines, and keeps the byte count and the latest time.
#[derive(Clone, Debug)]
pub struct LineWriter<W> {
    sink: W,
    /// The line being written.
    buffer: Vec<u8>,
    bytes: u64,
    latest: Instant,
}

impl<W: Write> LineWriter<W> {
    /// Creates a writer that has written nothing yet.
    pub const fn new(sink: W) -> Self {
        Self { sink, buffer: Vec::new(), bytes: 0, latest: Instant::ZERO }
    }

    /// Advances the time to `now`. It never goes back, like a controller's clock.
    pub fn advance_to(&mut self, now: Instant) {
        self.latest = self.latest.max(now);
    }

    /// Returns the latest time passed to `advance_to`.
    pub const fn latest(&self) -> Instant {
        self.latest
    }

    /// Bytes written so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes a line: what `fill` appends, then a newline.
    ///
    /// # Errors
    /// When `fill` or the sink fails; the log is unusable then.
    pub fn put(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        self.buffer.clear();
        fill(&mut self.buffer)?;
        self.buffer.push(b'\n');
        self.bytes += self.buffer.len() as u64;
        self.sink.write_all(&self.buffer)
    }

    /// Flushes everything written so far.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    /// Returns the sink, with all lines in it.
    pub fn into_sink(self) -> W {
        self.sink
    }
}

/// What `read_line` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRead {
    /// A complete line; its newline is removed.
    Complete,
    /// The end of the source: empty, or a last line without a newline.
    Truncated,
    /// More bytes than a line may have.
    TooLong,
}

/// Reads a line of at most `bytes_max` bytes into `buffer`, without its newline.
///
/// # Errors
/// When the source fails.
pub fn read_line(
    source: &mut impl BufRead,
    buffer: &mut Vec<u8>,
    bytes_max: usize,
) -> io::Result<LineRead> {
    buffer.clear();
    source.take(bytes_max as u64 + 1).read_until(b'\n', buffer)?;
    if buffer.last() == Some(&b'\n') {
        buffer.pop();
        return Ok(LineRead::Complete);
    }
    Ok(if buffer.len() > bytes_max { LineRead::TooLong } else { LineRead::Truncated })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip_and_partial_lines_are_detected() {
        let mut writer = LineWriter::new(Vec::new());
        for (now, text) in [(5, "one"), (3, "four"), (9, "")] {
            writer.advance_to(Instant::from_nanos(now));
            writer.put(|buffer| buffer.write_all(text.as_bytes())).unwrap();
        }
        assert_eq!((writer.latest(), writer.bytes()), (Instant::from_nanos(9), 10));
        let mut text = writer.into_sink();
        text.extend(b"toolong\ncut");
        let (mut source, mut buffer) = (&text[..], Vec::new());
        let mut next = || {
            let read = read_line(&mut source, &mut buffer, 4).unwrap();
            (read, String::from_utf8(buffer.clone()).unwrap())
        };
        let complete = |text: &str| (LineRead::Complete, text.to_owned());
        assert_eq!([next(), next(), next()], [complete("one"), complete("four"), complete("")]);
        assert_eq!(next(), (LineRead::TooLong, "toolo".to_owned()));
        assert_eq!(next(), complete("ng"));
        assert_eq!(next(), (LineRead::Truncated, "cut".to_owned()));
        assert_eq!(next(), (LineRead::Truncated, String::new()));
    }
}
