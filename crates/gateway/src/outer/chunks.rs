//! The framing of `aws-chunked` bodies, guarded before s3s takes it apart.
//!
//! s3s holds every chunk whole in memory before it passes the first byte on, and a client may send
//! a 5 GiB body as one chunk (the Go SDK does for unsigned ones). So:
//! * unsigned chunks are cut smaller: each piece that arrives becomes a chunk of its own, without
//!   copying it. The framing carries no signature, so nobody can tell;
//! * signed chunks cannot be cut, so large ones are refused.
//!
//! ```text
//!   400000;chunk-signature=..\r\n  DATA  \r\n  ...  0;chunk-signature=..\r\n  trailers
//!   `------------ line ---------'        `end'      `------- line -------'
//! ```

use std::collections::VecDeque;

use bytes::{Buf as _, Bytes};

use super::fault::BodyFault;
use crate::limits::{CHUNK_LINE_BYTES_MAX, SIGNED_CHUNK_BYTES_MAX};

const CRLF: Bytes = Bytes::from_static(b"\r\n");

/// Where in the framing the next byte stands.
#[derive(Debug)]
enum Place {
    /// In the line that introduces a chunk; what came of it so far.
    Line(Vec<u8>),
    /// In a chunk's data.
    Data { left: u64 },
    /// In the line end after a chunk's data.
    DataEnd { left: u64 },
    /// After the last chunk.
    Trailer,
}

/// Follows the framing of one body.
#[derive(Debug)]
pub(super) struct ChunkGuard {
    signed: bool,
    place: Place,
}

impl ChunkGuard {
    pub(super) const fn new(signed: bool) -> Self {
        Self { signed, place: Place::Line(Vec::new()) }
    }

    /// Takes the next bytes of the body and appends what s3s shall see of them.
    pub(super) fn push(
        &mut self,
        mut bytes: Bytes,
        out: &mut VecDeque<Bytes>,
    ) -> Result<(), BodyFault> {
        let whole = self.signed.then(|| bytes.clone());
        while !bytes.is_empty() {
            match &mut self.place {
                Place::Line(line) => {
                    let Some(chunk) = take_line(line, &mut bytes)? else { break };
                    self.begin_chunk(chunk, out)?;
                }
                Place::Data { left } => {
                    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    let piece = bytes.split_to(count);
                    *left -= count as u64;
                    if *left == 0 {
                        self.place = Place::DataEnd { left: CRLF.len() as u64 };
                    }
                    if !self.signed {
                        out.push_back(Bytes::from(format!("{count:x}\r\n")));
                        out.push_back(piece);
                        out.push_back(CRLF);
                    }
                }
                Place::DataEnd { left } => {
                    let at = CRLF.len() - usize::try_from(*left).unwrap_or(0);
                    if bytes.get_u8() != CRLF[at] {
                        return Err(BodyFault::Framing);
                    }
                    *left -= 1;
                    if *left == 0 {
                        self.place = Place::Line(Vec::new());
                    }
                }
                Place::Trailer => {
                    let rest = bytes.split_to(bytes.len());
                    if !self.signed {
                        out.push_back(rest);
                    }
                }
            }
        }
        out.extend(whole);
        Ok(())
    }

    /// Whether the last chunk was seen; a body that ends before was cut off.
    pub(super) const fn is_complete(&self) -> bool {
        matches!(self.place, Place::Trailer)
    }

    fn begin_chunk(&mut self, line: ChunkLine, out: &mut VecDeque<Bytes>) -> Result<(), BodyFault> {
        if self.signed && line.bytes > SIGNED_CHUNK_BYTES_MAX {
            return Err(BodyFault::ChunkTooLarge);
        }
        if line.bytes > 0 {
            self.place = Place::Data { left: line.bytes };
            return Ok(());
        }
        self.place = Place::Trailer;
        if !self.signed {
            out.push_back(Bytes::from_static(b"0\r\n"));
        }
        Ok(())
    }
}

/// What the line before a chunk says.
struct ChunkLine {
    bytes: u64,
}

/// The finished line, once its end has come.
fn take_line(line: &mut Vec<u8>, bytes: &mut Bytes) -> Result<Option<ChunkLine>, BodyFault> {
    let end = bytes.iter().position(|&b| b == b'\n');
    let part = bytes.split_to(end.map_or(bytes.len(), |at| at + 1));
    if line.len() + part.len() > CHUNK_LINE_BYTES_MAX {
        return Err(BodyFault::Framing);
    }
    line.extend_from_slice(&part);
    if end.is_none() {
        return Ok(None);
    }
    let digits = line.split(|&b| b == b';' || b == b'\r').next().unwrap_or_default();
    let bytes = std::str::from_utf8(digits)
        .ok()
        .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or(BodyFault::Framing)?;
    Ok(Some(ChunkLine { bytes }))
}

#[cfg(test)]
mod tests;
