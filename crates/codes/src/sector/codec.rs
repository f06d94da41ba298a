//! The codec of one sector format.

use crate::ldpc::decode::{CHANNEL_MAX, Effort};
use crate::ldpc::{Block, Code, Decoder, Encoder, Outcome, Rate};
use crate::symbols::{Alphabet, Demapper, Interleaver};
use crate::{CodeError, SIGNATURE_BLOCK, SIGNATURE_BYTES, Signature, signature};

/// Maximum size of a sector's payload and header together.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// Mask that is XORed with the stored signature.
const SIGNATURE_MASK: Signature = Signature(*b"Silicate");

/// Parameters of a sector format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectorFormat {
    /// Rate of the codewords.
    pub rate: Rate,
    /// Length of the codewords before shortening.
    pub block: Block,
    /// Symbols that a voxel can hold.
    pub alphabet: Alphabet,
    /// Payload size in bytes.
    pub payload_bytes: usize,
    /// Header size in bytes.
    pub header_bytes: usize,
    /// Voxels per row of the sector.
    pub row_voxels: usize,
}

/// Why a sector could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// Codewords did not converge.
    Codewords {
        /// Index of the first one.
        first: usize,
        /// Number of them.
        count: usize,
    },
    /// Every codeword converged, but some to a wrong word: the signature does not match.
    Signature,
    /// The sector is intact, but its header is not the expected one: it is another sector.
    Header,
}

/// Result and statistics of decoding a sector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Why the sector could not be decoded, if it could not.
    pub failure: Option<Failure>,
    /// Number of codewords of the sector.
    pub codewords: usize,
    /// Bits corrected in the codewords that converged.
    pub corrected_bits: usize,
    /// Most bits corrected in one codeword that converged.
    pub corrected_bits_max: usize,
    /// Erased bits: soft bits that are 0.
    pub erased_bits: usize,
    /// Most iterations of any codeword.
    pub iterations_max: usize,
    /// Sum of the iterations of all codewords.
    pub iterations: usize,
    /// Share of the allowed iterations that the slowest codeword did not need: 1 for a sector read
    /// without error, close to 0 for one that may be lost next time, 0 for a lost one.
    pub margin: f32,
    /// Signature of the payload alone, if the sector is intact.
    pub payload_signature: Option<Signature>,
}

/// A decoded sector. Contains only bytes that were verified.
#[derive(Clone, Copy, Debug)]
pub struct Decoded<'a> {
    /// Result and statistics.
    pub report: Report,
    /// The payload, if signature and header match.
    pub payload: Option<&'a [u8]>,
    /// The header found, if the signature matches. With [`Failure::Header`], it identifies the
    /// sector.
    pub header: Option<&'a [u8]>,
}

/// Encodes and decodes sectors of one format. Owns all the memory that this needs.
#[derive(Debug)]
pub struct SectorCodec {
    format: SectorFormat,
    effort: Effort,
    shape: Shape,
    encoder: Encoder,
    decoder: Decoder,
    interleaver: Interleaver,
    /// Payload, header, signature, zero padding.
    frame: Vec<u8>,
    /// One codeword, before shortening.
    word: Vec<u8>,
    /// All codewords as written, each followed by spare bytes for the last voxel.
    written: Vec<u8>,
    /// Soft bits of all codewords before shortening, each followed by spare bits for the last
    /// voxel.
    soft: Vec<i8>,
    /// Soft bits of all voxels, computed from probabilities.
    demapped: Vec<i8>,
}

/// Sizes derived from a format.
#[derive(Clone, Copy, Debug)]
struct Shape {
    codewords: usize,
    /// Bytes of the frame per codeword.
    share: usize,
    /// Information bytes of a codeword, including the shortened ones.
    information: usize,
    /// Bytes of a codeword, including the shortened ones.
    bytes: usize,
    /// Bits per voxel.
    voxel_bits: usize,
}

impl Shape {
    /// Number of bytes of a codeword that are written.
    const fn written(self) -> usize {
        self.bytes - self.information + self.share
    }

    /// Number of voxels of a codeword.
    const fn slots(self) -> usize {
        (self.written() * 8).div_ceil(self.voxel_bits)
    }

    /// Stride of codewords as written: two spare bytes, since a label has up to 8 bits.
    const fn written_stride(self) -> usize {
        self.written() + 2
    }

    /// Stride of the soft bits of codewords.
    const fn soft_stride(self) -> usize {
        self.bytes * 8 + 8
    }
}

impl SectorCodec {
    /// Creates a codec with the default decoding effort.
    ///
    /// # Errors
    /// [`CodeError::SectorShape`] for an empty payload, too long a frame or empty rows.
    pub fn new(format: SectorFormat) -> Result<Self, CodeError> {
        let (payload, header) = (format.payload_bytes, format.header_bytes);
        let content = payload.saturating_add(header);
        if payload == 0 || content > FRAME_BYTES_MAX || format.row_voxels == 0 {
            return Err(CodeError::SectorShape { payload, header, row: format.row_voxels });
        }
        let code = Code::standard(format.rate, format.block);
        let information = code.information_bits() / 8;
        let codewords = (content + SIGNATURE_BYTES).div_ceil(information);
        let share = (content + SIGNATURE_BYTES).div_ceil(codewords);
        let (bytes, voxel_bits) = (code.bits() / 8, format.alphabet.bits());
        let shape = Shape { codewords, share, information, bytes, voxel_bits };
        Ok(Self {
            effort: Effort::default(),
            encoder: Encoder::new(&code),
            decoder: Decoder::new(&code),
            interleaver: Interleaver::new(codewords, shape.slots(), format.row_voxels)?,
            frame: vec![0; codewords * share],
            word: vec![0; bytes],
            written: vec![0; codewords * shape.written_stride()],
            // Only the shortened bits are never overwritten: certainly 0.
            soft: vec![CHANNEL_MAX; codewords * shape.soft_stride()],
            demapped: Vec::new(),
            shape,
            format,
        })
    }

    /// Sets the maximum number of iterations per codeword.
    #[must_use]
    pub const fn with_iterations(mut self, iterations: usize) -> Self {
        self.effort.iterations = iterations;
        self
    }

    /// The sector format.
    #[must_use]
    pub const fn format(&self) -> &SectorFormat {
        &self.format
    }

    /// Number of codewords per sector.
    #[must_use]
    pub const fn codewords(&self) -> usize {
        self.shape.codewords
    }

    /// Number of voxels per sector.
    #[must_use]
    pub const fn voxels(&self) -> usize {
        self.interleaver.voxels()
    }

    /// Encodes a sector into one symbol per voxel, row by row. Returns the payload's signature.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when a buffer does not have the format's length.
    pub fn encode(
        &mut self,
        header: &[u8],
        payload: &[u8],
        symbols: &mut [u8],
    ) -> Result<Signature, CodeError> {
        check(header.len(), self.format.header_bytes)?;
        check(payload.len(), self.format.payload_bytes)?;
        check(symbols.len(), self.voxels())?;
        let (content, rest) = self.frame.split_at_mut(payload.len() + header.len());
        content[..payload.len()].copy_from_slice(payload);
        content[payload.len()..].copy_from_slice(header);
        let (payload_signature, sum) = compute_signatures(payload, header);
        rest[..SIGNATURE_BYTES].copy_from_slice(&(sum ^ SIGNATURE_MASK).0);
        rest[SIGNATURE_BYTES..].fill(0);
        self.encode_words()?;
        let (shape, written, alphabet) = (self.shape, &self.written, &self.format.alphabet);
        let mask = u8::MAX >> (8 - shape.voxel_bits);
        self.interleaver.for_each(|voxel, codeword, slot| {
            let bit = slot * shape.voxel_bits;
            let at = codeword * shape.written_stride() + bit / 8;
            let pair = u16::from_le_bytes([written[at], written[at + 1]]);
            let [label, _] = (pair >> (bit % 8)).to_le_bytes();
            symbols[voxel] = alphabet.symbol(label & mask);
        });
        Ok(payload_signature)
    }

    /// Encodes the frame's codewords into `written`.
    fn encode_words(&mut self) -> Result<(), CodeError> {
        let Shape { share, information, .. } = self.shape;
        let strides = self.written.chunks_exact_mut(self.shape.written_stride());
        for (written, part) in strides.zip(self.frame.chunks_exact(share)) {
            let (whole, parity) = self.word.split_at_mut(information);
            whole[..share].copy_from_slice(part);
            whole[share..].fill(0);
            self.encoder.encode(whole, parity)?;
            written[..share].copy_from_slice(part);
            written[share..share + parity.len()].copy_from_slice(parity);
        }
        Ok(())
    }

    /// Decodes a sector from the probabilities of all symbols of each voxel, row by row.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when a buffer does not have the format's length, or the demapper
    /// has another number of bits.
    pub fn decode_probabilities(
        &mut self,
        header: &[u8],
        probabilities: &[f32],
        demapper: &Demapper,
    ) -> Result<Decoded<'_>, CodeError> {
        let mut soft = std::mem::take(&mut self.demapped);
        soft.resize(self.voxels() * self.shape.voxel_bits, 0);
        let demapped = demapper.probabilities(probabilities, &mut soft);
        let loaded = demapped.and_then(|()| self.load(header, &soft));
        self.demapped = soft;
        loaded?;
        self.decode_words(header)
    }

    /// Decodes a sector that should have this header from the soft bits of each voxel, bit 0 of its
    /// label first, row by row.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when a buffer does not have the format's length.
    pub fn decode(&mut self, header: &[u8], soft: &[i8]) -> Result<Decoded<'_>, CodeError> {
        self.load(header, soft)?;
        self.decode_words(header)
    }

    /// Deinterleaves the soft bits of voxels into codewords.
    fn load(&mut self, header: &[u8], soft: &[i8]) -> Result<(), CodeError> {
        let shape = self.shape;
        check(header.len(), self.format.header_bytes)?;
        check(soft.len(), self.voxels() * shape.voxel_bits)?;
        match shape.voxel_bits {
            1 => self.deinterleave::<1>(soft),
            2 => self.deinterleave::<2>(soft),
            3 => self.deinterleave::<3>(soft),
            4 => self.deinterleave::<4>(soft),
            5 => self.deinterleave::<5>(soft),
            6 => self.deinterleave::<6>(soft),
            7 => self.deinterleave::<7>(soft),
            8 => self.deinterleave::<8>(soft),
            bits => unreachable!("no alphabet has {bits} bits"),
        }
        // The share of the frame is in place; the parity moves up, past the shortened bits.
        let (from, to) = (shape.share * 8, shape.information * 8);
        let parity = (shape.bytes - shape.information) * 8;
        for word in self.soft.chunks_exact_mut(shape.soft_stride()) {
            word.copy_within(from..from + parity, to);
            word[from..to].fill(CHANNEL_MAX);
        }
        Ok(())
    }

    /// Copies the soft bits of each voxel into the slot of its codeword.
    fn deinterleave<const BITS: usize>(&mut self, soft: &[i8]) {
        let stride = self.shape.soft_stride();
        let (voxels, words) = (soft.as_chunks::<BITS>().0, &mut self.soft);
        self.interleaver.for_each(|voxel, codeword, slot| {
            let to = codeword * stride + slot * BITS;
            if let Some(place) = words[to..].first_chunk_mut() {
                *place = voxels[voxel];
            }
        });
    }

    fn decode_words(&mut self, header: &[u8]) -> Result<Decoded<'_>, CodeError> {
        let Shape { share, bytes, codewords, .. } = self.shape;
        let mut report = Report::new(codewords);
        let strides = self.soft.chunks_exact(self.shape.soft_stride());
        for (index, (soft, part)) in strides.zip(self.frame.chunks_exact_mut(share)).enumerate() {
            let outcome = self.decoder.decode(&soft[..bytes * 8], self.effort, &mut self.word)?;
            report.add(index, outcome);
            part.copy_from_slice(&self.word[..share]);
        }
        let (payload, rest) = self.frame.split_at(self.format.payload_bytes);
        let (found, rest) = rest.split_at(self.format.header_bytes);
        if report.failure.is_none() {
            let (payload_signature, sum) = compute_signatures(payload, found);
            if (sum ^ SIGNATURE_MASK).0 != rest[..SIGNATURE_BYTES] {
                report.failure = Some(Failure::Signature);
            } else {
                report.payload_signature = Some(payload_signature);
                report.failure = (found != header).then_some(Failure::Header);
            }
        }
        report.set_margin(self.effort.iterations);
        let is_intact = report.payload_signature.is_some();
        Ok(Decoded {
            report,
            payload: report.failure.is_none().then_some(payload),
            header: is_intact.then_some(found),
        })
    }
}

impl Report {
    const fn new(codewords: usize) -> Self {
        Self {
            failure: None,
            codewords,
            corrected_bits: 0,
            corrected_bits_max: 0,
            erased_bits: 0,
            iterations_max: 0,
            iterations: 0,
            margin: 0.0,
            payload_signature: None,
        }
    }

    fn add(&mut self, index: usize, outcome: Outcome) {
        if outcome.converged {
            self.corrected_bits += outcome.corrected;
            self.corrected_bits_max = self.corrected_bits_max.max(outcome.corrected);
        } else {
            self.failure = Some(match self.failure {
                Some(Failure::Codewords { first, count }) => {
                    Failure::Codewords { first, count: count + 1 }
                }
                _ => Failure::Codewords { first: index, count: 1 },
            });
        }
        self.erased_bits += outcome.erased;
        self.iterations += outcome.iterations;
        self.iterations_max = self.iterations_max.max(outcome.iterations);
    }

    fn set_margin(&mut self, allowed: usize) {
        let is_lost = matches!(self.failure, Some(Failure::Codewords { .. } | Failure::Signature));
        if !is_lost {
            self.margin = 1.0 - self.iterations_max as f32 / (allowed + 1) as f32;
        }
    }

    /// Returns the mean number of iterations per codeword.
    #[must_use]
    pub fn iterations_mean(&self) -> f64 {
        self.iterations as f64 / self.codewords as f64
    }
}

/// Returns the signatures of the payload, and of payload and header together.
fn compute_signatures(payload: &[u8], header: &[u8]) -> (Signature, Signature) {
    let payload_signature = signature(payload);
    let blocks = payload.len().next_multiple_of(SIGNATURE_BLOCK) as u64;
    let sum = payload_signature.concatenate(signature(header), blocks);
    (payload_signature, sum.expect("whole blocks"))
}

const fn check(have: usize, need: usize) -> Result<(), CodeError> {
    if have == need { Ok(()) } else { Err(CodeError::WordLength { have, need }) }
}
