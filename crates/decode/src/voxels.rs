//! Fidelity `analog`: a sector through simulated voxels and images, and back.
//!
//! ```text
//! bytes as written --frame--> symbols --channel, platter's seed--> voxels
//!                                                                    | drive's and read's seed
//! bytes as read <--frame, LDPC-- probabilities <--a decoder-- images <-'
//!                  failed?  the next decoder, then another read: each decoder's probabilities
//!                           are added to its own, the one that left fewer codewords goes first
//! ```
//!
//! Voxels are not stored: they are a pure function of bytes and seeds, recomputed at every read,
//! bit for bit the same. Images are drawn again for each read.

use std::collections::BTreeMap;

use fulgurite_codes::ldpc::Rate;
use fulgurite_codes::sector::{Failure, Report};
use fulgurite_platter::channel::{
    Channel, Neighbor, ReadFaults, ReadHead, ReadSeeds, SectorImages, WriteFaults,
};
use fulgurite_platter::{SECTOR_HEADER_BYTES, SectorExtent, SectorReading};
use fulgurite_units::{LayerIndex, Seed};

use crate::{DecodeError, Decoder, SectorFrame, SymbolProbabilities};

/// Cached cameras; each holds three planes of a sector's pixels.
const HEADS: usize = 4;

/// The simulated medium of one archive.
#[derive(Clone, Debug)]
pub struct VoxelMedium {
    /// The channel.
    pub channel: Channel,
    /// Rate of the sectors' code.
    pub rate: Rate,
    /// Root of the seeds of all platters and drives.
    pub seed: Seed,
    /// Most times that images are taken of a sector.
    pub reads_max: u8,
    /// Damage of platters and drives, for tests and demonstrations.
    pub damage: Damage,
}

/// Damage that is injected on top of what the channel draws.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Damage {
    /// Write faults, by track and layer.
    pub write: BTreeMap<(u32, u16), WriteFaults>,
    /// Faults of a track's surface, or of the drive while it reads it; `None` is for every track.
    pub read: BTreeMap<Option<u32>, ReadFaults>,
}

/// The outcome of reading one sector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SectorOutcome {
    /// The result for the reader.
    pub reading: SectorReading,
    /// The decoder that was used last, by its index in the ladder.
    pub decoder: usize,
    /// Number of times that images were taken.
    pub reads: u8,
    /// Number of times that images were decoded.
    pub decodes: u8,
    /// Report of the last decoding.
    pub report: Report,
}

/// A decoding worker: one camera and some decoders, the cheapest first. Its results are a pure
/// function of its inputs.
pub struct VoxelReader {
    medium: VoxelMedium,
    decoders: Vec<Box<dyn Decoder + Send>>,
    frame: Option<SectorFrame>,
    heads: Vec<(u32, ReadHead)>,
    /// Soft bits of a sector.
    soft: Vec<i8>,
}

/// One sector to be read.
#[derive(Debug)]
struct Job<'a> {
    at: SectorExtent,
    number: usize,
    image: &'a [u8],
    symbols: &'a [Vec<u8>],
    drive: u32,
    read: u64,
}

impl std::fmt::Debug for VoxelReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.decoders.iter().map(|decoder| decoder.name()).collect();
        f.debug_struct("VoxelReader").field("decoders", &names).finish_non_exhaustive()
    }
}

impl VoxelReader {
    /// Creates a worker with these decoders.
    ///
    /// # Errors
    /// [`DecodeError::Channel`] when a parameter of the channel is out of range.
    ///
    /// # Panics
    /// When there is no decoder.
    pub fn new(
        medium: VoxelMedium,
        decoders: Vec<Box<dyn Decoder + Send>>,
    ) -> Result<Self, DecodeError> {
        assert!(!decoders.is_empty(), "a reader needs at least one decoder");
        medium.channel.validate()?;
        Ok(Self { medium, decoders, frame: None, heads: Vec::new(), soft: Vec::new() })
    }

    /// Returns its decoders' names, the cheapest first.
    #[must_use]
    pub fn decoders(&self) -> Vec<&str> {
        self.decoders.iter().map(|decoder| decoder.name()).collect()
    }

    /// Reads neighboring sectors of a track in a drive, as [`fulgurite_platter::Medium::read`]
    /// does. `read` identifies this read; only the sectors `wanted` are read, the others are their
    /// neighbors.
    ///
    /// # Errors
    /// When the sectors' size does not fit the channel.
    pub fn read(
        &mut self,
        at: SectorExtent,
        bytes: &mut [u8],
        wanted: std::ops::Range<usize>,
        drive: u32,
        read: u64,
    ) -> Result<Vec<SectorOutcome>, DecodeError> {
        self.set_frame(at.sector_bytes)?;
        let layers = usize::from(self.medium.channel.optics.layers);
        let count = bytes.len() / at.sector_bytes;
        // Symbols of all sectors whose light is visible; the ones further away are not needed.
        let seen = wanted.start.saturating_sub(layers)..(wanted.end + layers).min(count);
        let mut symbols = vec![Vec::new(); count];
        for number in seen {
            let image = &bytes[number * at.sector_bytes..][..at.sector_bytes];
            symbols[number] = self.frame()?.symbols(image, at.number(number))?;
        }
        let mut outcomes = Vec::with_capacity(wanted.len());
        for number in wanted {
            let image = &mut bytes[number * at.sector_bytes..][..at.sector_bytes];
            let job = Job { at, number, image, symbols: &symbols, drive, read };
            let (outcome, bytes) = self.sector(&job)?;
            if let Some(bytes) = bytes {
                image.copy_from_slice(&bytes);
            }
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    /// Returns images of one of the given sectors, and its written symbols.
    ///
    /// # Errors
    /// When the sectors' size does not fit the channel.
    ///
    /// # Panics
    /// When there is no sector of this number.
    pub fn images(
        &mut self,
        at: SectorExtent,
        bytes: &[u8],
        number: usize,
        drive: u32,
        read: u64,
    ) -> Result<(SectorImages, Vec<u8>), DecodeError> {
        self.set_frame(at.sector_bytes)?;
        let sectors = bytes.chunks_exact(at.sector_bytes);
        let mut symbols = Vec::new();
        for (number, image) in sectors.enumerate() {
            symbols.push(self.frame()?.symbols(image, at.number(number))?);
        }
        let image = &bytes[number * at.sector_bytes..][..at.sector_bytes];
        let job = Job { at, number, image, symbols: &symbols, drive, read };
        let taken = self.take(&job, 0)?;
        Ok((taken, symbols.swap_remove(number)))
    }

    /// Decodes images of one sector with one of the decoders.
    ///
    /// # Errors
    /// When the images are not of such a sector, or the decoder fails.
    ///
    /// # Panics
    /// When there is no decoder of this number.
    pub fn decode(
        &mut self,
        images: &SectorImages,
        decoder: usize,
    ) -> Result<SymbolProbabilities, DecodeError> {
        let shape = self.frame()?.shape();
        self.decoders[decoder].decode(images, shape)
    }

    /// Decodes images of the sector at an address with one of the decoders, straight to bytes;
    /// returns a report and, if it succeeded, the bytes.
    ///
    /// # Errors
    /// When the images are not of such a sector, or the decoder fails.
    ///
    /// # Panics
    /// When there is no decoder of this number.
    pub fn bytes(
        &mut self,
        images: &SectorImages,
        decoder: usize,
        place: u64,
    ) -> Result<(Report, Option<&[u8]>), DecodeError> {
        let Some(frame) = &mut self.frame else { return Err(no_frame_error()) };
        let decoder = &mut self.decoders[decoder];
        decoder.soft_bits(images, frame.shape(), frame.demapper(), &mut self.soft)?;
        frame.decode_soft_bits(&self.soft, place)
    }

    /// Returns the frame of the sectors that were last read.
    ///
    /// # Errors
    /// [`DecodeError::Frame`] when there were none yet.
    pub fn frame(&mut self) -> Result<&mut SectorFrame, DecodeError> {
        self.frame.as_mut().ok_or_else(no_frame_error)
    }

    /// Prepares for sectors of so many bytes.
    fn set_frame(&mut self, bytes: usize) -> Result<(), DecodeError> {
        if self.frame.as_ref().is_none_or(|frame| frame.bytes() != bytes) {
            let VoxelMedium { channel, rate, .. } = &self.medium;
            self.frame = Some(SectorFrame::new(channel.medium, *rate, bytes)?);
            self.heads.clear();
        }
        Ok(())
    }

    /// Reads one sector: decoder after decoder, then again with new images. Every decoder adds to
    /// its own probabilities from earlier images, so it loses no sector to the others. The one that
    /// left fewer codewords goes first, whatever its place in the ladder and however sure it is.
    fn sector(&mut self, job: &Job<'_>) -> Result<(SectorOutcome, Option<Vec<u8>>), DecodeError> {
        let mut sums: Vec<Option<SymbolProbabilities>> = vec![None; self.decoders.len()];
        let mut order: Vec<_> = (0..self.decoders.len()).map(|at| (0usize, at)).collect();
        let place = job.at.number(job.number);
        let (mut decodes, mut last, mut first) = (0u8, None, None);
        for reads in 1..=self.medium.reads_max.max(1) {
            let images = self.take(job, reads - 1)?;
            // The first read needs only soft bits; combining reads needs probabilities.
            if let Some(first) = first.take() {
                for (decoder, sum) in sums.iter_mut().enumerate() {
                    *sum = Some(self.decode(&first, decoder)?);
                }
            }
            for (left, decoder) in &mut order {
                decodes = decodes.saturating_add(1);
                let (report, bytes) = match &mut sums[*decoder] {
                    Some(sum) => {
                        *sum = self.decode(&images, *decoder)?.plus(sum);
                        self.frame()?.decode_probabilities(sum, place)?
                    }
                    None => self.bytes(&images, *decoder, place)?,
                };
                let outcome =
                    |reading| SectorOutcome { reading, decoder: *decoder, reads, decodes, report };
                if let Some(bytes) = bytes {
                    let reading = SectorReading::Read { margin: Some(margin(&report)) };
                    return Ok((outcome(reading), Some(bytes.to_vec())));
                }
                last = Some(outcome(SectorReading::Lost));
                *left = failed_codewords(&report);
            }
            order.sort_unstable();
            if reads == 1 {
                first = Some(images);
            }
        }
        let lost = last.unwrap_or_else(|| unreachable!("at least one decoder, one read"));
        Ok((lost, None))
    }

    /// Takes images of a sector.
    fn take(&mut self, job: &Job<'_>, attempt: u8) -> Result<SectorImages, DecodeError> {
        let shape = self.frame()?.shape();
        let VoxelMedium { channel, seed, damage, .. } = &self.medium;
        let layer = job.at.layer(job.number);
        let SectorSeeds { platter, track, read, .. } =
            sector_seeds(seed, job.at, job.number, job.drive, job.read, attempt);
        // The header includes the generation: rewritten sectors are different glass.
        let header = &job.image[..SECTOR_HEADER_BYTES.min(job.image.len())];
        let place = track.child(&layer.get().to_le_bytes()).child(header);
        let none = (WriteFaults::default(), ReadFaults::default());
        let (number, layer_number) = (job.at.track.get(), layer.get());
        let write = damage.write.get(&(number, layer_number)).unwrap_or(&none.0);
        let faults = damage.read.get(&Some(number)).or_else(|| damage.read.get(&None));
        let faults = faults.unwrap_or(&none.1).clone();
        let written = channel.write(shape, &job.symbols[job.number], &place, write)?;
        let distant = self.neighbors(job, &track, layer);
        let neighbors: Vec<Neighbor<'_>> = distant
            .iter()
            .map(|(distance, symbols)| Neighbor { distance: *distance, symbols })
            .collect();
        let seeds = ReadSeeds { platter, track, read };
        let head = self.head(job.drive)?;
        Ok(head.read(&written, &neighbors, &seeds, &faults))
    }

    /// Returns the symbols of the layers whose light is visible. Layers that are not at hand, or
    /// that do not exist at the ends of a track, are random: light of any symbols is alike.
    fn neighbors<'a>(
        &self,
        job: &Job<'a>,
        track: &Seed,
        layer: LayerIndex,
    ) -> Vec<(u8, std::borrow::Cow<'a, [u8]>)> {
        let VoxelMedium { channel, .. } = &self.medium;
        let voxels = job.symbols[job.number].len();
        let symbol_count = u64::from(channel.medium.symbols());
        let symbols = |distance: u8, is_above: bool| {
            let step = usize::from(distance);
            let other =
                if is_above { job.number.checked_add(step) } else { job.number.checked_sub(step) };
            let at_hand = other.and_then(|other| job.symbols.get(other));
            if let Some(symbols) = at_hand.filter(|symbols| !symbols.is_empty()) {
                return std::borrow::Cow::Borrowed(&symbols[..]);
            }
            let label = [distance, u8::from(is_above)];
            let mut stream =
                track.child(b"unseen").child(&layer.get().to_le_bytes()).child(&label).stream();
            (0..voxels)
                .map(|_| u8::try_from(stream.below(symbol_count)).unwrap_or_default())
                .collect()
        };
        (1..=channel.optics.layers)
            .flat_map(|distance| {
                [false, true].map(|is_above| (distance, symbols(distance, is_above)))
            })
            .collect()
    }

    /// Returns the camera of a drive.
    fn head(&mut self, drive: u32) -> Result<&mut ReadHead, DecodeError> {
        let at = match self.heads.iter().position(|(number, _)| *number == drive) {
            Some(at) => at,
            None => {
                let shape = self.frame()?.shape();
                let seed = drive_seed(&self.medium.seed, drive);
                let head = ReadHead::new(&self.medium.channel, shape, seed)?;
                if self.heads.len() >= HEADS {
                    self.heads.remove(0);
                }
                self.heads.push((drive, head));
                self.heads.len() - 1
            }
        };
        Ok(&mut self.heads[at].1)
    }
}

fn no_frame_error() -> DecodeError {
    DecodeError::Frame { bytes: 0, reason: "nothing was read yet".to_owned() }
}

/// The seeds whose shares make up a sector's quality.
pub(crate) struct SectorSeeds {
    pub(crate) drive: Seed,
    pub(crate) platter: Seed,
    pub(crate) track: Seed,
    pub(crate) read: Seed,
}

/// Returns the seeds of one read of one sector. `read` identifies the read, `attempt` the images
/// within it.
pub(crate) fn sector_seeds(
    seed: &Seed,
    at: SectorExtent,
    number: usize,
    drive: u32,
    read: u64,
    attempt: u8,
) -> SectorSeeds {
    let platter = seed.child(b"platter").child(&at.platter.to_bytes());
    let track = platter.child(&at.track.get().to_le_bytes());
    let layer = at.layer(number).get().to_le_bytes();
    let read = seed.child(b"read").child(&read.to_le_bytes()).child(&layer).child(&[attempt]);
    SectorSeeds { drive: drive_seed(seed, drive), platter, track, read }
}

fn drive_seed(seed: &Seed, drive: u32) -> Seed {
    seed.child(b"drive").child(&drive.to_le_bytes())
}

/// Returns the number of codewords that failed: a decoder's quality at read time, judged by the
/// code and not by the decoder. If all words decode to wrong ones, that is no better than none.
fn failed_codewords(report: &Report) -> usize {
    match report.failure {
        Some(Failure::Codewords { count, .. }) => count,
        Some(_) => report.codewords,
        None => 0,
    }
}

/// Returns a report's margin in hundredths.
pub(crate) fn margin(report: &Report) -> u8 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..100")]
    let margin = (100.0 * report.margin).round() as u8;
    margin
}
