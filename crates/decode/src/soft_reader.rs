//! Reads sectors at fidelity `soft`: drawn soft bits, and the real code.

use std::sync::Arc;

use fulgurite_codes::ldpc::Rate;
use fulgurite_codes::sector::Report;
use fulgurite_platter::{SectorExtent, SectorReading};
use fulgurite_units::Seed;

use crate::voxels::{margin, sector_seeds};
use crate::{DecodeError, DrawResult, SectorFrame, SoftChannel, SoftStatistics};

/// Reads sectors by drawing the output of a decoder.
#[derive(Debug)]
pub struct SoftReader {
    channel: Arc<SoftChannel>,
    medium: fulgurite_platter::channel::Medium,
    rate: Rate,
    seed: Seed,
    reads_max: u8,
    frame: Option<SectorFrame>,
    soft: Vec<i8>,
}

impl SoftReader {
    /// Creates a reader from these statistics; the seed is the archive's.
    ///
    /// # Errors
    /// [`DecodeError::Fit`] when they cannot be drawn from.
    pub fn new(
        statistics: &SoftStatistics,
        rate: Rate,
        seed: Seed,
        reads_max: u8,
    ) -> Result<Self, DecodeError> {
        let channel = Arc::new(SoftChannel::new(statistics)?);
        let medium = statistics.medium();
        Ok(Self { channel, medium, rate, seed, reads_max, frame: None, soft: Vec::new() })
    }

    /// Returns another reader with the same statistics.
    #[must_use]
    pub fn another(&self) -> Self {
        let channel = Arc::clone(&self.channel);
        let (medium, rate, seed, reads_max) = (self.medium, self.rate, self.seed, self.reads_max);
        Self { channel, medium, rate, seed, reads_max, frame: None, soft: Vec::new() }
    }

    /// Reads neighboring sectors of a track, as [`fulgurite_platter::Medium::read`] does. `read`
    /// identifies this read.
    ///
    /// # Errors
    /// When the sectors' size does not fit the medium.
    pub fn read(
        &mut self,
        at: SectorExtent,
        bytes: &mut [u8],
        drive: u32,
        read: u64,
    ) -> Result<Vec<SectorReading>, DecodeError> {
        let mut readings = Vec::with_capacity(bytes.len() / at.sector_bytes);
        for (number, image) in bytes.chunks_exact_mut(at.sector_bytes).enumerate() {
            let mut reading = SectorReading::Lost;
            for attempt in 0..self.reads_max.max(1) {
                let (_, report, bytes) = self.sector(at, number, image, drive, read, attempt)?;
                if let Some(bytes) = bytes {
                    image.copy_from_slice(&bytes);
                    reading = SectorReading::Read { margin: Some(margin(&report)) };
                    break;
                }
            }
            readings.push(reading);
        }
        Ok(readings)
    }

    /// Reads one sector once; returns what was drawn, the report of decoding it, and the bytes.
    ///
    /// # Errors
    /// When the sector's size does not fit the medium.
    pub fn sector(
        &mut self,
        at: SectorExtent,
        number: usize,
        image: &[u8],
        drive: u32,
        read: u64,
        attempt: u8,
    ) -> Result<(DrawResult, Report, Option<Vec<u8>>), DecodeError> {
        if self.frame.as_ref().is_none_or(|frame| frame.bytes() != at.sector_bytes) {
            self.frame = Some(SectorFrame::new(self.medium, self.rate, at.sector_bytes)?);
        }
        let frame = self.frame.as_mut().unwrap_or_else(|| unreachable!("it was just made"));
        let seeds = sector_seeds(&self.seed, at, number, drive, read, attempt);
        let quality = self.channel.quality(&seeds.drive, &seeds.platter, &seeds.read);
        let symbols = frame.coded_symbols(image, at.number(number))?;
        let drawn = self.channel.draw(quality, symbols, &seeds.read, &mut self.soft);
        let (report, bytes) = frame.decode_coded_soft_bits(&self.soft, at.number(number))?;
        Ok((drawn, report, bytes.map(<[u8]>::to_vec)))
    }
}
