//! Removes the framing of `aws-chunked` bodies as they stream.
//!
//! A client may send a 5 GiB body as one chunk (the Go SDK does), so chunks are never buffered:
//! their bytes are passed on as they arrive. When chunks are signed one by one, a running digest is
//! compared at the chunk's end. Bytes that were passed on are not visible under any name before the
//! body's end, so a wrong signature anywhere still stores nothing.
//!
//! ```text
//!   400000;chunk-signature=..\r\n  DATA  \r\n  ...  0;chunk-signature=..\r\n  trailers
//!   `------------ line ---------'        `end'      `------- line -------'
//! ```

use std::collections::VecDeque;

use bytes::{Buf as _, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::signature::ChunkSigner;
use crate::limits::{CHUNK_LINE_BYTES_MAX, TRAILER_BYTES_MAX};
use crate::request::BodyFault;

const CRLF: &[u8] = b"\r\n";
const TRAILER_SIGNATURE: &str = "x-amz-trailer-signature";

/// The parser's state: where in the framing the next byte is.
#[derive(Debug)]
enum State {
    /// In a chunk's header line; its bytes so far.
    Line(Vec<u8>),
    /// In a chunk's data.
    Data { left: u64, signature: [u8; 32] },
    /// In the line end after a chunk's data.
    DataEnd { offset: usize },
    /// After the last chunk; the trailer's bytes so far.
    Trailer(Vec<u8>),
}

/// Removes the framing of one body.
#[derive(Debug)]
pub(crate) struct ChunkDecoder {
    signer: Option<ChunkSigner>,
    has_trailer: bool,
    /// The one header that `x-amz-trailer` announced.
    announced: Option<&'static str>,
    state: State,
}

impl ChunkDecoder {
    pub(crate) const fn new(
        signer: Option<ChunkSigner>,
        has_trailer: bool,
        announced: Option<&'static str>,
    ) -> Self {
        Self { signer, has_trailer, announced, state: State::Line(Vec::new()) }
    }

    /// Takes the next bytes of the body and appends the data among them to the output, without
    /// copying.
    pub(crate) fn push(
        &mut self,
        mut bytes: Bytes,
        out: &mut VecDeque<Bytes>,
    ) -> Result<(), BodyFault> {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Line(line) => {
                    let Some(chunk) = take_line(line, &mut bytes)? else { break };
                    self.begin_chunk(&chunk)?;
                }
                State::Data { left, signature } => {
                    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    let piece = bytes.split_to(count);
                    *left -= count as u64;
                    let (is_end, signature) = (*left == 0, *signature);
                    if let Some(signer) = &mut self.signer {
                        signer.update(&piece);
                    }
                    if is_end {
                        self.end_chunk(&signature)?;
                        self.state = State::DataEnd { offset: 0 };
                    }
                    out.push_back(piece);
                }
                State::DataEnd { offset } => {
                    if bytes.get_u8() != CRLF[*offset] {
                        return Err(BodyFault::Framing);
                    }
                    *offset += 1;
                    if *offset == CRLF.len() {
                        self.state = State::Line(Vec::new());
                    }
                }
                State::Trailer(trailer) => {
                    if trailer.len() + bytes.len() > TRAILER_BYTES_MAX {
                        return Err(BodyFault::Trailer);
                    }
                    trailer.extend_from_slice(&bytes.split_to(bytes.len()));
                }
            }
        }
        Ok(())
    }

    /// Ends the body; returns the trailers.
    pub(crate) fn finish(self) -> Result<HeaderMap, BodyFault> {
        let State::Trailer(text) = self.state else { return Err(BodyFault::Incomplete) };
        if !self.has_trailer && !text.is_empty() && text != CRLF {
            return Err(BodyFault::Trailer);
        }
        let mut trailers = parse_trailer(&text)?;
        let Some(signer) = self.signer.filter(|_| self.has_trailer) else {
            check_announced(&trailers, self.announced)?;
            return Ok(trailers);
        };
        let is_signed_once = trailers.get_all(TRAILER_SIGNATURE).iter().count() == 1;
        let signature = trailers.remove(TRAILER_SIGNATURE).filter(|_| is_signed_once);
        let mut bytes = [0; 32];
        signature
            .and_then(|value| hex::decode_to_slice(value.as_bytes(), &mut bytes).ok())
            .ok_or(BodyFault::Trailer)?;
        if !signer.check_trailer(&trailers, &bytes) {
            return Err(BodyFault::Signature);
        }
        check_announced(&trailers, self.announced)?;
        Ok(trailers)
    }

    fn begin_chunk(&mut self, line: &ChunkLine) -> Result<(), BodyFault> {
        let signature = match (&self.signer, line.signature) {
            (Some(_), None) => return Err(BodyFault::Framing),
            (Some(_), Some(signature)) => signature,
            (None, _) => [0; 32],
        };
        if line.bytes > 0 {
            self.state = State::Data { left: line.bytes, signature };
            return Ok(());
        }
        self.end_chunk(&signature)?;
        self.state = State::Trailer(Vec::new());
        Ok(())
    }

    fn end_chunk(&mut self, signature: &[u8; 32]) -> Result<(), BodyFault> {
        let is_match = self.signer.as_mut().is_none_or(|signer| signer.check_chunk(signature));
        if is_match { Ok(()) } else { Err(BodyFault::Signature) }
    }
}

/// The parsed header line of a chunk.
struct ChunkLine {
    bytes: u64,
    signature: Option<[u8; 32]>,
}

/// Returns the line once it is complete.
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
    parse_line(line).map(Some).ok_or(BodyFault::Framing)
}

fn parse_line(line: &[u8]) -> Option<ChunkLine> {
    let text = std::str::from_utf8(line).ok()?.strip_suffix("\r\n")?;
    let mut fields = text.split(';');
    let digits = fields.next().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let bytes = u64::from_str_radix(digits, 16).ok()?;
    let mut signature = None;
    for field in fields {
        let Some(value) = field.strip_prefix("chunk-signature=") else { continue };
        let mut bytes = [0; 32];
        hex::decode_to_slice(value, &mut bytes).ok()?;
        if signature.replace(bytes).is_some() {
            return None;
        }
    }
    Some(ChunkLine { bytes, signature })
}

/// Checks that exactly the announced trailer arrived. An unannounced one would be ignored by all
/// layers below, and a missing one would leave the body without the checksum that its client relies
/// on.
fn check_announced(trailers: &HeaderMap, announced: Option<&str>) -> Result<(), BodyFault> {
    let has_arrived = announced.is_none_or(|name| trailers.contains_key(name));
    // `len` counts each value of a repeated header.
    if has_arrived && trailers.len() == usize::from(announced.is_some()) {
        Ok(())
    } else {
        Err(BodyFault::Trailer)
    }
}

/// Parses lines of `name:value`, ended by LF or CRLF.
fn parse_trailer(text: &[u8]) -> Result<HeaderMap, BodyFault> {
    let mut trailers = HeaderMap::new();
    for line in text.split(|&b| b == b'\n') {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let colon = line.iter().position(|&b| b == b':').ok_or(BodyFault::Trailer)?;
        let name = HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        let (Ok(name), Ok(value)) = (name, value) else { return Err(BodyFault::Trailer) };
        trailers.append(name, value);
    }
    Ok(trailers)
}

#[cfg(test)]
mod tests;
