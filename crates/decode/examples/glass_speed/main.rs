//! Measures how fast the glass is: one measurement per run, printed as one JSON object.
//!
//! `cargo run --release --example glass_speed -p fulgurite-decode WHAT`, where WHAT is one of
//! `channel`, `registration`, `linear`, `learned ENGINE MODEL`, `soft`, `sector`, `analog ENGINE
//! MODEL` and `ladder ENGINE MODEL`. ENGINE is `builtin` or `onnxruntime` (the variable
//! `FULGURITE_ONNXRUNTIME` names its library), optionally followed by the longest side of tiles:
//! `builtin@80`. MODEL is the path of a network. `cargo xtask bench glass` runs them all.
//!
//! One thread, in CPU time: other work on the machine does not count, though it slows caches.
//! Sectors are simulated; only `channel` measures the simulation.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement for a terminal: it prints, needs the time, and stops at nonsense"
)]

mod analog;
mod media;

use std::path::Path;
use std::sync::Arc;

use fulgurite_decode::{
    Decoder, Displacement, Engine, EngineChoice, FlatImages, FrontEnd, Learned, Model,
    standard_linear,
};
use fulgurite_platter::channel::{
    Channel, Neighbor, Population, ReadFaults, ReadHead, ReadSeeds, SectorImages, SectorShape,
    WriteFaults, random_symbols,
};
use fulgurite_units::Seed;
use rustix::time::{ClockId, clock_gettime};

/// The preset that the targets are set for.
const PRESET: &str = "nominal";

/// Side of a sector, in voxels.
const SIDE: u16 = 320;

/// Sectors per measurement.
const SECTORS: u64 = 4;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["channel"] => channel(),
        ["registration"] => registration(),
        ["linear"] => decoder(&mut standard_linear(PRESET).unwrap()),
        ["learned", engine, model] => decoder(&mut learned(engine, model, |engine| engine)),
        ["soft"] => media::soft(),
        ["sector"] => media::sector(),
        ["analog", engine, model] => analog::analog(engine, model),
        ["ladder", engine, model] => analog::ladder(engine, model),
        _ => panic!("no such measurement: {words:?}"),
    }
}

/// Measures writing and imaging voxels, with three layers of neighbors on each side.
fn channel() {
    let (channel, shape) = nominal();
    let seed = Seed::new(1);
    let symbols = |label: u8| random_symbols(&channel, shape, &seed.child(&[label]));
    let own = symbols(0);
    let layers: Vec<(u8, Vec<u8>)> = (1..=channel.optics.layers)
        .flat_map(|distance| [(distance, symbols(distance)), (distance, symbols(distance + 100))])
        .collect();
    let neighbors: Vec<Neighbor<'_>> = layers
        .iter()
        .map(|(distance, symbols)| Neighbor { distance: *distance, symbols })
        .collect();
    let mut head = ReadHead::new(&channel, shape, seed.child(b"drive")).unwrap();
    let (mut write_s, mut image_s, mut sum) = (0.0, 0.0, 0u64);
    for sector in 0..=SECTORS {
        let seed = seed.child(&sector.to_le_bytes());
        let (written, write) =
            timed(|| channel.write(shape, &own, &seed, &WriteFaults::default()).unwrap());
        let seeds = ReadSeeds { platter: seed, track: seed, read: seed };
        let (images, image) =
            timed(|| head.read(&written, &neighbors, &seeds, &ReadFaults::default()));
        sum += images.pixels.iter().map(|pixel| u64::from(*pixel)).sum::<u64>();
        // The first sector warms up caches and memory.
        if sector > 0 {
            write_s += write;
            image_s += image;
        }
    }
    println!(
        "{{\"voxels\":{},\"processor_s\":{:.6},\"write_s\":{write_s:.6},\"image_s\":{image_s:.6},\
         \"sum\":{sum}}}",
        voxels(shape),
        write_s + image_s
    );
}

/// Measures finding voxels, and finding and resampling them for the learned decoder.
fn registration() {
    let sectors = sectors();
    let (channel, shape) = nominal();
    let pitch = usize::from(channel.optics.pixels_per_pitch);
    let mut flat = FlatImages::default();
    let mut find = |images: &SectorImages| {
        flat.set(images, pitch);
        Displacement::find(&flat, shape)
    };
    find(&sectors[0]);
    let (_, find_s) = timed(|| sectors.iter().for_each(|images| drop(find(images))));
    let mut front = FrontEnd::new();
    let mut register = |images: &SectorImages| {
        front.registered(images, shape, channel.medium, pitch).unwrap();
    };
    register(&sectors[0]);
    let (_, registered_s) = timed(|| sectors.iter().for_each(&mut register));
    println!(
        "{{\"voxels\":{},\"processor_s\":{find_s:.6},\"registered_s\":{registered_s:.6}}}",
        voxels(shape)
    );
}

/// Measures images to probabilities.
fn decoder(decoder: &mut dyn Decoder) {
    let sectors = sectors();
    let (_, shape) = nominal();
    // Warm up: engines plan at the first sector.
    decoder.decode(&sectors[0], shape).unwrap();
    let (likeliest, seconds) = timed(|| {
        let found = sectors.iter().map(|images| decoder.decode(images, shape).unwrap());
        found.map(|found| u64::from(found.likeliest(0))).sum::<u64>()
    });
    println!("{{\"voxels\":{},\"processor_s\":{seconds:.6},\"sum\":{likeliest}}}", voxels(shape));
}

/// Creates a decoder with a network; `wrap` may wrap its engine.
fn learned(
    engine: &str,
    model: &str,
    wrap: impl Fn(Box<dyn Engine>) -> Box<dyn Engine>,
) -> Learned {
    let (engine, side) = engine.split_once('@').map_or((engine, None), |(e, s)| (e, Some(s)));
    let choice = match engine {
        "builtin" => EngineChoice::BuiltIn,
        "onnxruntime" => EngineChoice::onnx_runtime(),
        _ => panic!("engines are builtin and onnxruntime"),
    };
    let model = Arc::new(Model::open(Path::new(model)).unwrap());
    let (channel, _) = nominal();
    let engine = wrap(choice.start(&model).unwrap());
    let decoder = Learned::with_engine(&model, channel.medium, engine).unwrap();
    match side {
        Some(side) => decoder.with_tile_side_max(side.parse().unwrap()),
        None => decoder,
    }
}

fn nominal() -> (Channel, SectorShape) {
    (Channel::preset(PRESET).unwrap(), SectorShape::new(SIDE, SIDE).unwrap())
}

/// Number of voxels in all sectors of a measurement.
const fn voxels(shape: SectorShape) -> u64 {
    SECTORS * shape.voxels() as u64
}

/// Simulates images of sectors, each of its own drive and platter.
fn sectors() -> Vec<SectorImages> {
    let (channel, shape) = nominal();
    let population = Population::new(channel, shape, 1, 1, None, None);
    (0..SECTORS).map(|number| population.sector(number).unwrap().0).collect()
}

/// Returns the result of `work`, and the CPU seconds of this process that it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = cpu_time();
    let made = std::hint::black_box(work());
    (made, cpu_time() - start)
}

/// CPU seconds of this process.
fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
