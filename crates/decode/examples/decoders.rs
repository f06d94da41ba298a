//! Prints a table of how well and how fast each decoder reads a preset.
//!
//! `cargo run --release -p fulgurite-decode --example decoders -- PRESET TEST TRAIN SIDE MODELS`,
//! any number of models; when TRAIN is 0, only the models.
//!
//! `MODELS` are paths of networks, each prefixed with an engine: `builtin:models/nominal-md.onnx`,
//! `onnxruntime:models/nominal-md-int8.onnx` (the variable `FULGURITE_ONNXRUNTIME` names its
//! library), and optionally with the longest side of tiles: `builtin@80:..`. Speeds are in CPU
//! time, of decoding alone: other work on the machine does not count, though it slows caches.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement for a terminal: it prints, needs the time, and stops at nonsense"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fulgurite_decode::{
    Decoder, EngineChoice, Learned, LinearFit, Matched, Model, Score, Scores, registered,
};
use fulgurite_platter::channel::{
    Channel, Medium, Neighbor, ReadFaults, ReadHead, ReadSeeds, SectorImages, SectorShape,
    WriteFaults,
};
use fulgurite_units::Seed;
use rustix::time::{ClockId, clock_gettime};

type LabeledSector = (SectorImages, Vec<u8>);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| args.get(at).map_or(default, |n| n.parse().unwrap());
    let preset = args.first().map_or("nominal", String::as_str);
    let (test, train) = (number(1, 60), number(2, 40));
    let side = u16::try_from(number(3, 128)).unwrap();
    let channel = Channel::preset(preset).unwrap();
    let shape = SectorShape::new(side, side).unwrap();
    let start = cpu_time();
    let train: Vec<LabeledSector> = sectors(&channel, shape, &Seed::new(1), train);
    let test: Vec<LabeledSector> = sectors(&channel, shape, &Seed::new(2), test);
    println!(
        "{preset}: made {} sectors in {:.1} s",
        train.len() + test.len(),
        (cpu_time() - start).as_secs_f64()
    );
    let per_pitch = usize::from(channel.optics.pixels_per_pitch);
    let medium = channel.medium;
    let known = || train.iter().map(|(images, symbols)| (images, &symbols[..]));
    let mut decoders: Vec<Box<dyn Decoder>> = Vec::new();
    let is_fitted = !train.is_empty();
    for is_registered in [false, true].into_iter().filter(|_| is_fitted) {
        let matched = Matched::fit(medium, per_pitch, is_registered, shape, known().take(8));
        decoders.push(Box::new(matched.unwrap()));
        let mut fit = LinearFit::new(medium, per_pitch, is_registered, shape);
        known().for_each(|(images, symbols)| fit.add(images, symbols).unwrap());
        let (linear, refit) = fit.finish(known().take(8)).unwrap();
        decoders.push(Box::new(linear));
        if is_registered {
            decoders.push(Box::new(refit));
        }
    }
    for model in args.iter().skip(4) {
        decoders.push(Box::new(learned(medium, model)));
    }
    println!("fitted after {:.1} s", (cpu_time() - start).as_secs_f64());
    let voxels = test.len() as f64 * shape.voxels() as f64;
    let start = cpu_time();
    for (images, _) in &test {
        registered(images, shape, medium, per_pitch).unwrap();
    }
    let rate = voxels / (cpu_time() - start).as_secs_f64();
    println!("the learned decoder's front end: {:.2} M voxels/s", rate / 1e6);
    for decoder in &mut decoders {
        // Warm up: engines plan at the first sector.
        decoder.decode(&test[0].0, shape).unwrap();
        let start = cpu_time();
        let found: Vec<_> =
            test.iter().map(|(images, _)| decoder.decode(images, shape).unwrap()).collect();
        let rate = voxels / (cpu_time() - start).as_secs_f64();
        let score =
            |(found, (_, symbols)): (_, &LabeledSector)| Score::new(medium, shape, found, symbols);
        let scores = Scores(found.iter().zip(&test).map(score).collect());
        let ser = |score: &Score| score.symbol_error_rate;
        let information = |score: &Score| score.information;
        let ((mean, error), (bits, _)) = (scores.mean(ser), scores.mean(information));
        println!(
            "{:28} SER {mean:.2e} +- {error:.0e}, p50 {:.2e}, p90 {:.2e}; MI {bits:.3}, p10 {:.3}; \
             {:.2} M voxels/s",
            decoder.model_id().map_or_else(|| decoder.name().to_owned(), |id| id.to_string()),
            scores.quantile(0.5, ser),
            scores.quantile(0.9, ser),
            scores.quantile(0.1, information),
            rate / 1e6,
        );
    }
}

/// Loads a network given as `ENGINE:PATH` or `ENGINE@SIDE:PATH`.
fn learned(medium: Medium, named: &str) -> Learned {
    let (engine, path) = named.split_once(':').unwrap();
    let (engine, side) = engine.split_once('@').map_or((engine, None), |(e, s)| (e, Some(s)));
    let choice = match engine {
        "builtin" => EngineChoice::BuiltIn,
        "onnxruntime" => EngineChoice::onnx_runtime(),
        _ => panic!("engines are builtin and onnxruntime"),
    };
    let model = Arc::new(Model::open(Path::new(path)).unwrap());
    let decoder = Learned::new(&model, medium, &choice).unwrap();
    println!("{named} is {} by {}", model.id(), decoder.engine());
    match side {
        Some(side) => decoder.with_tile_side_max(side.parse().unwrap()),
        None => decoder,
    }
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap()
}

/// Simulates sectors of many drives and platters.
fn sectors(channel: &Channel, shape: SectorShape, seed: &Seed, count: u64) -> Vec<LabeledSector> {
    let symbol_count = u64::from(channel.medium.symbols());
    let one = |index: u64| {
        let seed = seed.child(&index.to_le_bytes());
        let mut stream = seed.child(b"symbols").stream();
        let mut symbols = || -> Vec<u8> {
            (0..shape.voxels()).map(|_| u8::try_from(stream.below(symbol_count)).unwrap()).collect()
        };
        let own = symbols();
        let layers: Vec<Vec<u8>> = (0..2 * channel.optics.layers).map(|_| symbols()).collect();
        let distances = (1..=channel.optics.layers).flat_map(|distance| [distance, distance]);
        let neighbors: Vec<Neighbor<'_>> = distances
            .zip(&layers)
            .map(|(distance, symbols)| Neighbor { distance, symbols })
            .collect();
        let written = channel.write(shape, &own, &seed, &WriteFaults::default()).unwrap();
        let mut head = ReadHead::new(channel, shape, seed.child(b"drive")).unwrap();
        let seeds = ReadSeeds {
            platter: seed.child(b"platter"),
            track: seed.child(b"track"),
            read: seed.child(b"read"),
        };
        (head.read(&written, &neighbors, &seeds, &ReadFaults::default()), own)
    };
    (0..count).map(one).collect()
}
