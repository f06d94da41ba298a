//! The codec of one format of sectors.

use crate::ldpc::decode::{CHANNEL_MAX, Effort};
use crate::ldpc::{Block, Code, Decoder, Encoder, Outcome, Rate};
use crate::symbols::{Alphabet, Demapper, Interleaver};
use crate::{CodeError, SIGNATURE_BLOCK, SIGNATURE_BYTES, Signature, signature};

/// Most bytes of payload and header of a sector.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// What the signature is stored as the sum with.
const MASK: Signature = Signature(*b"Silicate");

/// What a sector is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectorFormat {
    /// Rate of the codewords.
    pub rate: Rate,
    /// Length of the codewords, before they are shortened.
    pub block: Block,
    /// Symbols of a voxel.
    pub alphabet: Alphabet,
    /// Bytes of payload.
    pub payload_bytes: usize,
    /// Bytes of header.
    pub header_bytes: usize,
    /// Voxels of a row of the sector.
    pub row_voxels: usize,
}

/// Why a sector did not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// Codewords did not converge.
    Codewords {
        /// The first of them.
        first: usize,
        /// How many.
        count: usize,
    },
    /// Every codeword converged, and some to a wrong word: the signature does not fit.
    Signature,
    /// The sector is intact and has another header than expected: it is another sector.
    Header,
}

/// What decoding a sector took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Why the sector did not come back, if it did not.
    pub failure: Option<Failure>,
    /// Codewords of the sector.
    pub codewords: usize,
    /// Bits read wrong, over the codewords that converged.
    pub corrected_bits: usize,
    /// Most bits read wrong in one codeword that converged.
    pub corrected_bits_max: usize,
    /// Bits not read: soft bits 0.
    pub erased_bits: usize,
    /// Most iterations of a codeword.
    pub iterations_max: usize,
    /// Iterations of all codewords.
    pub iterations: usize,
    /// Share of the allowed iterations that the slowest codeword left: 1 for a sector read without
    /// error, towards 0 for one that will be lost next time, 0 for a lost one.
    pub margin: f32,
    /// Signature of the payload alone, if the sector is intact.
    pub payload_signature: Option<Signature>,
}

/// A decoded sector. Bytes are there only if they were checked.
#[derive(Clone, Copy, Debug)]
pub struct Decoded<'a> {
    /// What decoding took.
    pub report: Report,
    /// The payload, if signature and header fit.
    pub payload: Option<&'a [u8]>,
    /// The header found, if the signature fits: with [`Failure::Header`], which sector it is.
    pub header: Option<&'a [u8]>,
}

/// Encodes and decodes sectors of one format. Holds all the memory that this needs.
#[derive(Debug)]
pub struct SectorCodec {
    format: SectorFormat,
    effort: Effort,
    shape: Shape,
    encoder: Encoder,
    decoder: Decoder,
    interleaver: Interleaver,
    /// Payload, header, signature, zeros.
    frame: Vec<u8>,
    /// One codeword, not shortened.
    word: Vec<u8>,
    /// All codewords as they are written, each followed by spare bytes for the last voxel.
    written: Vec<u8>,
    /// All codewords as they are read, not shortened, each followed by spare bits for the last
    /// voxel.
    soft: Vec<i8>,
    /// Soft bits of all voxels, from probabilities.
    demapped: Vec<i8>,
}

/// The sizes that follow from a format.
#[derive(Clone, Copy, Debug)]
struct Shape {
    codewords: usize,
    /// Bytes of the frame in a codeword.
    share: usize,
    /// Bytes of information of a codeword, with the shortened ones.
    information: usize,
    /// Bytes of a codeword, with the shortened ones.
    bytes: usize,
    /// Bits of a voxel.
    voxel_bits: usize,
}

impl Shape {
    /// Bytes of a codeword that are written.
    const fn written(self) -> usize {
        self.bytes - self.information + self.share
    }

    /// Voxels of a codeword.
    const fn slots(self) -> usize {
        (self.written() * 8).div_ceil(self.voxel_bits)
    }

    /// Distance of codewords as they are written: two spare bytes, since a label has up to 8 bits.
    const fn written_stride(self) -> usize {
        self.written() + 2
    }

    /// Distance of codewords as they are read.
    const fn soft_stride(self) -> usize {
        self.bytes * 8 + 8
    }
}

impl SectorCodec {
    /// A codec, with the default effort of decoding.
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
            // What is never read are the shortened bits: surely 0.
            soft: vec![CHANNEL_MAX; codewords * shape.soft_stride()],
            demapped: Vec::new(),
            shape,
            format,
        })
    }

    /// The same with another most of iterations for a codeword.
    #[must_use]
    pub const fn with_iterations(mut self, iterations: usize) -> Self {
        self.effort.iterations = iterations;
        self
    }

    /// The format.
    #[must_use]
    pub const fn format(&self) -> &SectorFormat {
        &self.format
    }

    /// Codewords of a sector.
    #[must_use]
    pub const fn codewords(&self) -> usize {
        self.shape.codewords
    }

    /// Voxels of a sector.
    #[must_use]
    pub const fn voxels(&self) -> usize {
        self.interleaver.voxels()
    }

    /// Encodes a sector: one symbol for each voxel, row by row. Returns the payload's signature.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when a buffer has not the format's length.
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
        let (payload_signature, sum) = sign(payload, header);
        rest[..SIGNATURE_BYTES].copy_from_slice(&(sum ^ MASK).0);
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

    /// Puts the frame's codewords into `written`.
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
    /// [`CodeError::WordLength`] when a buffer has not the format's length, or the demapper is one
    /// of another count of bits.
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

    /// Decodes a sector that should have this header, from soft bits: those of each voxel, bit 0 of
    /// its label first, row by row.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when a buffer has not the format's length.
    pub fn decode(&mut self, header: &[u8], soft: &[i8]) -> Result<Decoded<'_>, CodeError> {
        self.load(header, soft)?;
        self.decode_words(header)
    }

    /// Sorts the soft bits of voxels into codewords.
    fn load(&mut self, header: &[u8], soft: &[i8]) -> Result<(), CodeError> {
        let shape = self.shape;
        check(header.len(), self.format.header_bytes)?;
        check(soft.len(), self.voxels() * shape.voxel_bits)?;
        match shape.voxel_bits {
            1 => self.sort::<1>(soft),
            2 => self.sort::<2>(soft),
            3 => self.sort::<3>(soft),
            4 => self.sort::<4>(soft),
            5 => self.sort::<5>(soft),
            6 => self.sort::<6>(soft),
            7 => self.sort::<7>(soft),
            8 => self.sort::<8>(soft),
            bits => unreachable!("no alphabet has {bits} bits"),
        }
        // The share of the frame is in place; parity moves up, past the shortened bits.
        let (from, to) = (shape.share * 8, shape.information * 8);
        let parity = (shape.bytes - shape.information) * 8;
        for word in self.soft.chunks_exact_mut(shape.soft_stride()) {
            word.copy_within(from..from + parity, to);
            word[from..to].fill(CHANNEL_MAX);
        }
        Ok(())
    }

    /// Puts the soft bits of each voxel into the slot of its codeword.
    fn sort<const BITS: usize>(&mut self, soft: &[i8]) {
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
            let (payload_signature, sum) = sign(payload, found);
            if (sum ^ MASK).0 != rest[..SIGNATURE_BYTES] {
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

    /// Iterations of a codeword on average.
    #[must_use]
    pub fn iterations_mean(&self) -> f64 {
        self.iterations as f64 / self.codewords as f64
    }
}

/// The signatures of the payload, and of payload and header together.
fn sign(payload: &[u8], header: &[u8]) -> (Signature, Signature) {
    let payload_signature = signature(payload);
    let blocks = payload.len().next_multiple_of(SIGNATURE_BLOCK) as u64;
    let sum = payload_signature.concatenate(signature(header), blocks);
    (payload_signature, sum.expect("whole blocks"))
}

const fn check(have: usize, need: usize) -> Result<(), CodeError> {
    if have == need { Ok(()) } else { Err(CodeError::WordLength { have, need }) }
}
