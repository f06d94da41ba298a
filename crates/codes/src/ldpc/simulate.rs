//! Simulation: the frame error rate at a symbol error rate.
//!
//! Random information is encoded, written to the voxels of [`VoxelChannel`], read with noise and
//! decoded; failures are counted. The result is a pure function of the seed, so that a point of a
//! curve can be split into chunks, computed anywhere in any order, and added up.

use super::decode::Effort;
use super::random::Random;
use super::{Code, Decoder, Encoder, VoxelChannel};

/// Counters of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Words decoded.
    pub frames: u64,
    /// Words that were not recovered: no convergence, or a wrong word.
    pub failures: u64,
    /// Undetected failures: converged to a wrong word.
    pub undetected: u64,
    /// Information bits decoded.
    pub bits: u64,
    /// Wrong information bits after decoding.
    pub bit_errors: u64,
    /// Voxels read.
    pub symbols: u64,
    /// Voxels whose nearest level was not the one written.
    pub symbol_errors: u64,
    /// Sum of the iterations of all words.
    pub iterations: u64,
}

impl Counts {
    /// Adds the counters of another run.
    pub fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.failures += other.failures;
        self.undetected += other.undetected;
        self.bits += other.bits;
        self.bit_errors += other.bit_errors;
        self.symbols += other.symbols;
        self.symbol_errors += other.symbol_errors;
        self.iterations += other.iterations;
    }
}

/// Returns the share `events / trials` with its 95 % Wilson interval: low, share, high. Unlike the
/// interval of the normal approximation, it holds for few or no events.
#[must_use]
pub fn wilson_interval(events: u64, trials: u64) -> [f64; 3] {
    const Z: f64 = 1.959_964;
    if trials == 0 {
        return [0.0, 0.0, 1.0];
    }
    let (events, trials) = (events as f64, trials as f64);
    let share = events / trials;
    let scale = 1.0 + Z * Z / trials;
    let center = (share + Z * Z / (2.0 * trials)) / scale;
    let half =
        Z / scale * (share * (1.0 - share) / trials + Z * Z / (4.0 * trials * trials)).sqrt();
    [(center - half).max(0.0), share, (center + half).min(1.0)]
}

/// Simulates one code over one channel.
#[derive(Debug)]
pub struct Simulator {
    encoder: Encoder,
    decoder: Decoder,
    channel: VoxelChannel,
    effort: Effort,
    information: usize,
    written: Vec<u8>,
    soft: Vec<i8>,
    word: Vec<u8>,
}

impl Simulator {
    /// Creates a simulator of words of `code` on `channel`.
    #[must_use]
    pub fn new(code: &Code, channel: VoxelChannel, effort: Effort) -> Self {
        Self {
            encoder: Encoder::new(code),
            decoder: Decoder::new(code),
            channel,
            effort,
            information: code.information_bits() / 8,
            written: vec![0; code.bits() / 8],
            // The last voxel may extend over the end by up to three bits.
            soft: vec![0; code.bits() + 4],
            word: vec![0; code.bits() / 8],
        }
    }

    /// Decodes `frames` words with the noise of `seed`.
    pub fn run(&mut self, seed: u64, frames: u64) -> Counts {
        let mut random = Random::new(seed);
        let mut counts = Counts::default();
        for _ in 0..frames {
            self.write(&mut random);
            self.read(&mut random, &mut counts);
            self.decode(&mut counts);
        }
        counts
    }

    /// Encodes random information.
    fn write(&mut self, random: &mut Random) {
        let (information, parity) = self.written.split_at_mut(self.information);
        information
            .as_chunks_mut::<8>()
            .0
            .iter_mut()
            .for_each(|bytes| *bytes = random.bits().to_le_bytes());
        self.encoder.encode(information, parity).expect("the buffers fit the code");
    }

    /// Reads the voxels that hold the word.
    fn read(&mut self, random: &mut Random, counts: &mut Counts) {
        let (bits, total) = (self.channel.bits(), self.written.len() * 8);
        let mut wrong = 0;
        let (mut buffer, mut buffered, mut next) = (0u64, 0, 0);
        for place in (0..total).step_by(bits) {
            if buffered < bits {
                let more = self
                    .written
                    .get(next..next + 4)
                    .map_or([0; 4], |bytes| bytes.try_into().unwrap_or([0; 4]));
                buffer |= u64::from(u32::from_le_bytes(more)) << buffered;
                (buffered, next) = (buffered + 32, next + 4);
            }
            let label = buffer.to_le_bytes()[0] & ((1 << bits) - 1);
            (buffer, buffered) = (buffer >> bits, buffered - bits);
            let (ratios, is_wrong) = self.channel.read(label, random.bits());
            self.soft[place..place + 4].copy_from_slice(&ratios);
            wrong += u64::from(is_wrong);
        }
        counts.symbols += total.div_ceil(bits) as u64;
        counts.symbol_errors += wrong;
    }

    fn decode(&mut self, counts: &mut Counts) {
        let soft = &self.soft[..self.written.len() * 8];
        let outcome =
            self.decoder.decode(soft, self.effort, &mut self.word).expect("the buffers fit");
        let errors: u64 = self.written[..self.information]
            .iter()
            .zip(&self.word)
            .map(|(written, read)| u64::from((written ^ read).count_ones()))
            .sum();
        let is_wrong = self.word != self.written;
        counts.frames += 1;
        counts.failures += u64::from(is_wrong || !outcome.converged);
        counts.undetected += u64::from(is_wrong && outcome.converged);
        counts.bits += self.information as u64 * 8;
        counts.bit_errors += errors;
        counts.iterations += outcome.iterations as u64;
    }
}

/// Returns the soft bits of `frames` random words of `code` as read from `channel`, for benchmarks.
#[must_use]
pub fn sample(code: &Code, channel: &VoxelChannel, seed: u64, frames: usize) -> Vec<Vec<i8>> {
    let mut random = Random::new(seed);
    let mut simulator = Simulator::new(code, channel.clone(), Effort::default());
    (0..frames)
        .map(|_| {
            simulator.write(&mut random);
            simulator.read(&mut random, &mut Counts::default());
            simulator.soft[..code.bits()].to_vec()
        })
        .collect()
}
