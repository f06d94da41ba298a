//! The layout of a sector's bytes in its voxels.
//!
//! ```text
//! guard ring, 4 voxels wide       known symbols: decoders are worse at borders than inside
//!   codewords, interleaved row by row over all the rest (codes::sector)
//!   the rest of the last rows     known symbols
//! ```
//!
//! The bytes are those of the platter's file, header and checksum included. Decoded bytes are
//! checked by the code's signature here, and by the sector's own checksum in the reader.
//!
//! They are scrambled by their address: the voxels of an empty sector would all be alike, so no
//! decoder could find the pitch, and the layers below would be the same.

use fulgurite_codes::ldpc::{Block, Rate};
use fulgurite_codes::sector::{Report, SectorCodec, SectorFormat};
use fulgurite_codes::symbols::{Alphabet, Axis, DemapMethod, Demapper};
use fulgurite_platter::channel::{Medium, SECTOR_SIDE_MIN, SectorShape};
use fulgurite_units::Seed;

use crate::decoder::demapper_error;
use crate::{DecodeError, SymbolProbabilities};

/// Voxels on each side of a sector that carry no data.
pub const GUARD: usize = 4;

/// Sectors of at least this many bytes use long codewords.
const LONG_BYTES_MIN: usize = 7200;

/// Steps of a soft bit per unit of natural logarithm.
pub(crate) const SOFT_SCALE: f32 = 2.0;

/// Returns the Gray labels of a medium's symbols.
pub(crate) fn alphabet(medium: Medium) -> Alphabet {
    let axis = match medium {
        Medium::Birefringent => Axis::Circular { bits: 3 },
        Medium::Phase => Axis::Ordered { bits: 2 },
    };
    Alphabet::new(axis).expect("three bits and two are alphabets")
}

/// Encodes the bytes of sectors as symbols, and decodes probabilities of symbols to bytes.
#[derive(Debug)]
pub struct SectorFrame {
    medium: Medium,
    shape: SectorShape,
    codec: SectorCodec,
    demapper: Demapper,
    /// Symbols of the whole sector, with the known symbols in place.
    known: Vec<u8>,
    coded: Vec<u8>,
    /// Bytes of a sector: scrambled before encoding, or descrambled after decoding.
    scrambled: Vec<u8>,
    /// Soft bits of all voxels, and of those that carry bits.
    all_soft: Vec<i8>,
    soft: Vec<i8>,
}

impl SectorFrame {
    /// Creates a frame for sectors of so many bytes.
    ///
    /// # Errors
    /// [`DecodeError::Frame`] when they are empty, or do not fit the largest sector.
    pub fn new(medium: Medium, rate: Rate, bytes: usize) -> Result<Self, DecodeError> {
        let block = if bytes < LONG_BYTES_MIN { Block::Bits16k } else { Block::Bits64k };
        let alphabet = alphabet(medium);
        let codec = |row_voxels: usize| {
            SectorCodec::new(SectorFormat {
                rate,
                block,
                alphabet: alphabet.clone(),
                payload_bytes: bytes,
                header_bytes: 0,
                row_voxels,
            })
            .map_err(|error| DecodeError::Frame { bytes, reason: error.to_string() })
        };
        // The number of voxels does not depend on the length of a row.
        let voxels = codec(1)?.voxels();
        let refuse = |reason: String| DecodeError::Frame { bytes, reason };
        let side = |inner: usize| {
            let side = (inner + 2 * GUARD).next_multiple_of(4).max(usize::from(SECTOR_SIDE_MIN));
            u16::try_from(side).unwrap_or(u16::MAX)
        };
        let columns = side(voxels.isqrt());
        let rows = side(voxels.div_ceil(usize::from(columns) - 2 * GUARD));
        let shape = SectorShape::new(rows, columns).map_err(|error| refuse(error.to_string()))?;
        let codec = codec(shape.columns() - 2 * GUARD)?;
        let room = (shape.rows() - 2 * GUARD) * (shape.columns() - 2 * GUARD);
        assert!(codec.voxels() <= room, "{} voxels in {room}", codec.voxels());
        let mut stream = Seed::new(0).child(b"guard").stream();
        let symbol_count = u64::from(medium.symbols());
        let mut draw = || u8::try_from(stream.below(symbol_count)).unwrap_or_default();
        let demapper = Demapper::new(&alphabet, DemapMethod::MaxLog, SOFT_SCALE)
            .map_err(|error| refuse(error.to_string()))?;
        Ok(Self {
            medium,
            shape,
            demapper,
            known: (0..shape.voxels()).map(|_| draw()).collect(),
            coded: vec![0; codec.voxels()],
            scrambled: vec![0; bytes],
            all_soft: Vec::new(),
            soft: vec![0; codec.voxels() * usize::from(medium.bits())],
            codec,
        })
    }

    /// Rows and columns of a sector.
    #[must_use]
    pub const fn shape(&self) -> SectorShape {
        self.shape
    }

    /// The medium that its symbols are for.
    #[must_use]
    pub const fn medium(&self) -> Medium {
        self.medium
    }

    /// Voxels that carry bits.
    #[must_use]
    pub const fn coded_voxels(&self) -> usize {
        self.codec.voxels()
    }

    /// Computes soft bits from the decoders' probabilities of symbols.
    #[must_use]
    pub const fn demapper(&self) -> &Demapper {
        &self.demapper
    }

    /// Size of a sector in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.codec.format().payload_bytes
    }

    /// Returns the symbols of the sector at an address, row by row.
    ///
    /// # Errors
    /// [`DecodeError::Frame`] when the bytes are not a whole sector.
    pub fn symbols(&mut self, bytes: &[u8], address: u64) -> Result<Vec<u8>, DecodeError> {
        self.coded_symbols(bytes, address)?;
        let mut symbols = self.known.clone();
        let columns = self.shape.columns();
        let rows = symbols.chunks_exact_mut(columns).skip(GUARD);
        for (row, coded) in rows.zip(self.coded.chunks(columns - 2 * GUARD)) {
            row[GUARD..GUARD + coded.len()].copy_from_slice(coded);
        }
        Ok(symbols)
    }

    /// Returns the symbols of the voxels that carry bits.
    ///
    /// # Errors
    /// [`DecodeError::Frame`] when the bytes are not a whole sector.
    pub fn coded_symbols(&mut self, bytes: &[u8], address: u64) -> Result<&[u8], DecodeError> {
        self.scrambled.clear();
        self.scrambled.extend_from_slice(bytes);
        scramble(&mut self.scrambled, address);
        let encoded = self.codec.encode(&[], &self.scrambled, &mut self.coded);
        encoded.map_err(|error| DecodeError::Frame {
            bytes: bytes.len(),
            reason: error.to_string(),
        })?;
        Ok(&self.coded)
    }

    /// Decodes the sector at this address; returns a report and, if it succeeded, the bytes.
    ///
    /// # Errors
    /// [`DecodeError::Frame`] when the probabilities are not of such a sector.
    pub fn decode_probabilities(
        &mut self,
        found: &SymbolProbabilities,
        address: u64,
    ) -> Result<(Report, Option<&[u8]>), DecodeError> {
        let symbols = usize::from(self.medium.symbols());
        if found.symbols() != symbols || found.voxels() != self.shape.voxels() {
            let reason = format!(
                "{} voxels of {} symbols were decoded, not {} of {symbols}",
                found.voxels(),
                found.symbols(),
                self.shape.voxels()
            );
            return Err(DecodeError::Frame { bytes: self.bytes(), reason });
        }
        let mut soft = std::mem::take(&mut self.all_soft);
        soft.resize(found.voxels() * usize::from(self.medium.bits()), 0);
        let made = self.demapper.logarithms(found.logarithms(), &mut soft).map_err(demapper_error);
        let decoded = made.and_then(|()| self.decode_all(&soft, address));
        self.all_soft = soft;
        let report = decoded?;
        Ok((report, report.failure.is_none().then_some(&self.scrambled)))
    }

    /// Decodes from the soft bits of all voxels, row by row, including those that carry no data.
    ///
    /// # Errors
    /// [`DecodeError::Frame`] when their number is wrong.
    pub fn decode_soft_bits(
        &mut self,
        soft: &[i8],
        address: u64,
    ) -> Result<(Report, Option<&[u8]>), DecodeError> {
        let report = self.decode_all(soft, address)?;
        Ok((report, report.failure.is_none().then_some(&self.scrambled)))
    }

    /// Extracts the soft bits of coded voxels, and decodes them.
    fn decode_all(&mut self, soft: &[i8], address: u64) -> Result<Report, DecodeError> {
        let bits = usize::from(self.medium.bits());
        let columns = self.shape.columns();
        let need = self.shape.voxels() * bits;
        if soft.len() != need {
            let reason = format!("{} soft bits were given, not {need}", soft.len());
            return Err(DecodeError::Frame { bytes: self.bytes(), reason });
        }
        let mut coded = std::mem::take(&mut self.soft);
        let rows = soft.chunks_exact(columns * bits).skip(GUARD);
        for (coded, row) in coded.chunks_mut((columns - 2 * GUARD) * bits).zip(rows) {
            coded.copy_from_slice(&row[GUARD * bits..][..coded.len()]);
        }
        let report = self.decode(&coded, address);
        self.soft = coded;
        report
    }

    /// Decodes the sector at this address from the soft bits of its coded voxels, row by row.
    ///
    /// # Errors
    /// [`DecodeError::Frame`] when their number is wrong.
    pub fn decode_coded_soft_bits(
        &mut self,
        soft: &[i8],
        address: u64,
    ) -> Result<(Report, Option<&[u8]>), DecodeError> {
        let report = self.decode(soft, address)?;
        Ok((report, report.failure.is_none().then_some(&self.scrambled)))
    }

    /// Decodes; on success the descrambled bytes are in `scrambled`.
    fn decode(&mut self, soft: &[i8], address: u64) -> Result<Report, DecodeError> {
        let bytes = self.bytes();
        let decoded = self
            .codec
            .decode(&[], soft)
            .map_err(|error| DecodeError::Frame { bytes, reason: error.to_string() })?;
        if let Some(payload) = decoded.payload {
            self.scrambled.clear();
            self.scrambled.extend_from_slice(payload);
        }
        let report = decoded.report;
        scramble(&mut self.scrambled, address);
        Ok(report)
    }
}

/// XORs a pseudorandom stream, which depends on the address; a second call undoes the first.
fn scramble(bytes: &mut [u8], address: u64) {
    let mut state = address;
    for chunk in bytes.chunks_mut(8) {
        for (byte, random) in chunk.iter_mut().zip(split_mix(&mut state).to_le_bytes()) {
            *byte ^= random;
        }
    }
}

/// `SplitMix64`.
pub(crate) const fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = *state;
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}
