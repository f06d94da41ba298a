//! Logs of controllers, line by line: what all of them write and read alike.
//!
//! ```text
//! controller's log: what a line says --> LineWriter: whole lines, bytes, no time before another
//! ```
//!
//! What a line says is its log's, and so is the format (`docs/formats`). Sources and sinks are
//! handed in.

use std::io::{self, BufRead, Read as _, Write};

use crate::Instant;

/// Writes lines, and knows how many bytes and up to when.
#[derive(Clone, Debug)]
pub struct LineWriter<W> {
    sink: W,
    /// The line at hand.
    buffer: Vec<u8>,
    bytes: u64,
    latest: Instant,
}

impl<W: Write> LineWriter<W> {
    /// Nothing is written yet.
    pub const fn new(sink: W) -> Self {
        Self { sink, buffer: Vec::new(), bytes: 0, latest: Instant::ZERO }
    }

    /// It is `now`. No controller lets its clock run backwards, and no line does.
    pub fn pass_to(&mut self, now: Instant) {
        self.latest = self.latest.max(now);
    }

    /// The latest time that it was told.
    pub const fn latest(&self) -> Instant {
        self.latest
    }

    /// Bytes written so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes a line: what `fill` puts there, and its end.
    ///
    /// # Errors
    /// When `fill` or the sink fails; the log is of no use then.
    pub fn put(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        self.buffer.clear();
        fill(&mut self.buffer)?;
        self.buffer.push(b'\n');
        self.bytes += self.buffer.len() as u64;
        self.sink.write_all(&self.buffer)
    }

    /// Hands everything written so far on.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    /// The sink, with all lines in it.
    pub fn into_sink(self) -> W {
        self.sink
    }
}

/// What there was to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRead {
    /// A line, whose end is taken off.
    Whole,
    /// The last one, without an end, if it is not empty.
    Cut,
    /// More bytes than a line has.
    TooLong,
}

/// Reads a line of at most so many bytes into `buffer`, without its end.
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
        return Ok(LineRead::Whole);
    }
    Ok(if buffer.len() > bytes_max { LineRead::TooLong } else { LineRead::Cut })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_and_what_is_no_line_is_told_apart() {
        let mut writer = LineWriter::new(Vec::new());
        for (now, text) in [(5, "one"), (3, "four"), (9, "")] {
            writer.pass_to(Instant::from_nanos(now));
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
        let whole = |text: &str| (LineRead::Whole, text.to_owned());
        assert_eq!([next(), next(), next()], [whole("one"), whole("four"), whole("")]);
        assert_eq!(next(), (LineRead::TooLong, "toolo".to_owned()));
        assert_eq!(next(), whole("ng"));
        assert_eq!(next(), (LineRead::Cut, "cut".to_owned()));
        assert_eq!(next(), (LineRead::Cut, String::new()));
    }
}
