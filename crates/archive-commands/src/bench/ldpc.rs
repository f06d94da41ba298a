//! `bench ldpc`: the error curve of a standard code, on all cores, as data and as a picture.
//!
//! From the threshold of density evolution the symbol error rate goes down in steps; each point is
//! simulated until it has seen enough failures. The curve ends at the first point below the target
//! frame error rate, or when the time is up.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::ValueEnum;
use fulgurite_codes::Isa;
use fulgurite_codes::ldpc::calibrate::UNITS_PER_LLR;
use fulgurite_codes::ldpc::decode::Effort;
use fulgurite_codes::ldpc::density::Degrees;
use fulgurite_codes::ldpc::simulate::{Simulator, sample};
use fulgurite_codes::ldpc::{Block, Code, Decoder, Rate, VoxelChannel};
use fulgurite_terminal::output::{Output, group_digits, note};
use serde_json::json;

use super::chart;
use super::curve::{self, Chunk, Point, PointChunks};

/// Frames per chunk: about a tenth of a second.
const CHUNK_FRAMES: u64 = 500;
/// Ratio of each point's symbol error rate to the one before.
const STEP: f64 = 0.985;
/// Most points of a curve: 0.985^40 is 0.55, far below any waterfall.
const POINTS_MAX: i32 = 40;
/// Frames used to measure the decoder's speed at a point.
const TIMED_FRAMES: usize = 64;

/// Flags of `bench ldpc`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct LdpcArgs {
    /// Rate of the code: 0.833, 0.875, 0.90, 0.9375 or 0.95
    #[arg(long, value_parser = parse_rate, default_value = "0.90", value_name = "RATE")]
    rate: Rate,
    /// Length of the code: 16k or 64k bits
    #[arg(long, value_enum, default_value = "64k", value_name = "LENGTH")]
    block: BlockName,
    /// Bits per voxel
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=4))]
    bits: u8,
    /// Most iterations of the decoder
    #[arg(long, default_value_t = 30, value_name = "COUNT")]
    iterations: u16,
    /// Target frame error rate
    #[arg(long, default_value_t = 1e-5, value_name = "RATE")]
    fer: f64,
    /// Failed frames needed for a point
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    failures: u64,
    /// Stop after this many minutes; `--resume` continues
    #[arg(long, default_value_t = 20, value_name = "MINUTES")]
    minutes: u64,
    /// Threads; all cores if not given
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// Folder for data, picture and finished chunks
    #[arg(long, default_value = "bench", value_name = "DIR")]
    out: PathBuf,
    /// Continue with the finished chunks of an earlier run
    #[arg(long)]
    resume: bool,
}

/// Length of a code, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BlockName {
    #[value(name = "16k")]
    Bits16k,
    #[value(name = "64k")]
    Bits64k,
}

fn parse_rate(text: &str) -> Result<Rate, String> {
    let known = Rate::ALL.into_iter().find(|rate| rate.name() == text);
    known.ok_or_else(|| format!("no standard code has rate {text}"))
}

/// The state of a run.
struct Bench<'a> {
    args: &'a LdpcArgs,
    code: Code,
    effort: Effort,
    deadline: Instant,
}

/// Runs the curve.
pub(super) fn run(args: &LdpcArgs, out: &Output) -> anyhow::Result<()> {
    let block = match args.block {
        BlockName::Bits16k => Block::Bits16k,
        BlockName::Bits64k => Block::Bits64k,
    };
    let name = format!("ldpc-{}-{}-{}bit", block.name(), args.rate.name(), args.bits);
    let effort = Effort { iterations: args.iterations.into(), early_stop: true };
    let deadline = Instant::now() + Duration::from_secs(args.minutes * 60);
    let bench = Bench { args, code: Code::standard(args.rate, block), effort, deadline };
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot create {}", args.out.display()))?;
    let path = args.out.join(format!("{name}.ndjson"));
    let old = if args.resume { curve::read(&path)? } else { Vec::new() };
    let file = Mutex::new(curve::rewrite(&path, &old)?);

    let threshold = bench.threshold();
    out.text(format_args!("{name}: threshold by density evolution: SER {threshold:.4}"))?;
    let mut points = Vec::new();
    for step in 0..POINTS_MAX {
        let ser = threshold * STEP.powi(step);
        let point = bench.point(ser, &old, &file)?;
        if point.frames == 0 {
            note("the time is up; continue with --resume");
            break;
        }
        show(&point, out)?;
        let is_done = point.fer[1] <= args.fer;
        points.push(point);
        bench.write(&name, threshold, &points)?;
        if is_done {
            break;
        }
    }
    Ok(())
}

fn show(point: &Point, out: &Output) -> anyhow::Result<()> {
    out.json("ldpc_point", point)?;
    let [low, rate, high] = point.fer;
    out.text(format_args!(
        "SER {:.5}  FER {rate:.2e} [{low:.1e}, {high:.1e}]  BER {:.2e}  {} of {} frames failed, {} \
         undetected  {:.2} iterations  {:.0} Mbit/s a core",
        point.ser,
        point.ber,
        group_digits(point.failures),
        group_digits(point.frames),
        point.undetected,
        point.iterations,
        point.mbit_per_second,
    ))?;
    out.flush()
}

impl Bench<'_> {
    fn channel(&self, ser: f64) -> VoxelChannel {
        VoxelChannel::new(self.args.bits.into(), ser, UNITS_PER_LLR)
    }

    fn threshold(&self) -> f64 {
        Degrees::compute(self.code.matrix()).threshold(0.3, |ser| self.channel(ser).density())
    }

    /// Simulates a point on all threads until it has seen enough failures or frames.
    fn point(&self, ser: f64, old: &[Chunk], file: &Mutex<std::fs::File>) -> anyhow::Result<Point> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate is between 0 and 1"
        )]
        let ser_ppm = (ser * 1e6).round() as u32;
        let channel = self.channel(f64::from(ser_ppm) / 1e6);
        let mut chunks = PointChunks::default();
        old.iter().filter(|chunk| chunk.ser_ppm == ser_ppm).for_each(|chunk| chunks.add(chunk));
        // At a frame error rate of `fer`, this many frames show that many failures.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a count of frames, and the cast saturates"
        )]
        let frames_max = (self.args.failures as f64 / self.args.fer) as u64;
        let seen = |chunks: &PointChunks| {
            chunks.sum().failures >= self.args.failures || chunks.sum().frames >= frames_max
        };
        let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let chunks = Mutex::new(chunks);
        let work = || -> anyhow::Result<()> {
            let mut simulator = Simulator::new(&self.code, channel.clone(), self.effort);
            while Instant::now() < self.deadline && !failed.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                {
                    let chunks = chunks.lock().expect("no thread panics with the lock");
                    if seen(&chunks) {
                        break;
                    }
                    if chunks.has(number) {
                        continue;
                    }
                }
                let counts = simulator.run(Chunk::seed(ser_ppm, number), CHUNK_FRAMES);
                let chunk = Chunk::new(ser_ppm, number, &counts);
                curve::append(&mut file.lock().expect("no thread panics with the lock"), &chunk)?;
                chunks.lock().expect("no thread panics with the lock").add(&chunk);
            }
            Ok(())
        };
        let threads = self.threads();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let mut result = Ok(());
            for worker in workers {
                let ended = worker.join().expect("a worker does not panic");
                failed.fetch_or(ended.is_err(), Ordering::Relaxed);
                result = result.and(ended);
            }
            result
        })?;
        let chunks = chunks.into_inner().expect("no thread panics with the lock");
        let speed = if chunks.sum().frames > 0 { self.speed(&channel) } else { 0.0 };
        Ok(chunks.point(ser_ppm, speed))
    }

    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.args.threads.unwrap_or_else(cores).max(1)
    }

    /// Measures the speed of one thread, in Mbit/s of information.
    #[expect(clippy::cast_precision_loss, reason = "a rate is shown with few digits")]
    fn speed(&self, channel: &VoxelChannel) -> f64 {
        let frames = sample(&self.code, channel, 1, TIMED_FRAMES);
        let mut decoder = Decoder::new(&self.code);
        let mut word = vec![0; self.code.bits() / 8];
        let start = Instant::now();
        for frame in &frames {
            decoder.decode(frame, self.effort, &mut word).expect("the sizes are the code's");
        }
        let bits = self.code.information_bits() * frames.len();
        bits as f64 / start.elapsed().as_secs_f64() / 1e6
    }

    /// Writes data and picture.
    fn write(&self, name: &str, threshold: f64, points: &[Point]) -> anyhow::Result<()> {
        let code = &self.code;
        let data = json!({
            "code": name,
            "bits": code.bits(),
            "information_bits": code.information_bits(),
            "circulant": code.matrix().circulant(),
            "voxel_bits": self.args.bits,
            "iterations_max": self.args.iterations,
            "isa": Isa::current().name(),
            "threshold_ser": threshold,
            "points": points,
        });
        let title = format!(
            "LDPC {} ({} of {} bits information), {} bits a voxel, {} iterations",
            self.args.rate.name(),
            group_digits(code.information_bits() as u64),
            group_digits(code.bits() as u64),
            self.args.bits,
            self.args.iterations,
        );
        let files = [
            ("json", serde_json::to_string_pretty(&data)? + "\n"),
            ("svg", chart::draw(&title, points)?),
        ];
        for (extension, text) in files {
            let path = self.args.out.join(format!("{name}.{extension}"));
            std::fs::write(&path, text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}
