//! Tests of sectors through voxels and images: the bytes come back, or the sector is lost.

use std::collections::BTreeMap;

use fulgurite_codes::ldpc::Rate;
use fulgurite_platter::channel::{
    Channel, Disc, Dust, Orientation, ReadFaults, Scratch, WriteFaults,
};
use fulgurite_platter::{SectorExtent, SectorReading};
use fulgurite_units::{LayerIndex, PlatterId, Seed, TrackIndex};

use crate::{Damage, SectorFrame, SectorOutcome, SymbolProbabilities, VoxelMedium, VoxelReader};
use crate::{Decoder, standard_linear};

const BYTES: usize = 1024;
const TRACK: u32 = 3;

fn medium(damage: Damage) -> VoxelMedium {
    VoxelMedium {
        channel: Channel::preset("easy").unwrap(),
        rate: Rate::R5of6,
        seed: Seed::new(5),
        reads_max: 2,
        damage,
    }
}

fn reader(medium: VoxelMedium) -> VoxelReader {
    VoxelReader::new(medium, vec![Box::new(standard_linear("easy").unwrap())]).unwrap()
}

fn extent(platter: u8) -> SectorExtent {
    SectorExtent {
        platter: PlatterId::from_bytes([platter; 16]),
        track: TrackIndex::new(TRACK),
        first: LayerIndex::new(0),
        sector_bytes: BYTES,
    }
}

fn track(sectors: usize) -> Vec<u8> {
    let mut bytes = vec![0; sectors * BYTES];
    Seed::new(9).stream().fill(&mut bytes);
    bytes
}

fn read_all(reader: &mut VoxelReader, written: &[u8], read: u64) -> (Vec<SectorOutcome>, Vec<u8>) {
    let mut images = written.to_vec();
    let count = written.len() / BYTES;
    let outcomes = reader.read(extent(1), &mut images, 0..count, 0, read).unwrap();
    (outcomes, images)
}

fn is_read(outcome: &SectorOutcome) -> bool {
    matches!(outcome.reading, SectorReading::Read { .. })
}

/// Returns probabilities that are certain of every symbol.
fn sure(symbols: &[u8], count: u8) -> SymbolProbabilities {
    let logarithms =
        |own: &u8| (0..count).map(|symbol| if symbol == *own { 0.0 } else { -9.0 }).collect();
    SymbolProbabilities::normalized(
        usize::from(count),
        symbols.iter().flat_map(|own| -> Vec<f32> { logarithms(own) }).collect(),
    )
}

/// Frames of any size return the bytes of their own symbols, and nothing from others.
#[test]
fn frames_round_trip() {
    for preset in ["nominal", "phase"] {
        let medium = Channel::preset(preset).unwrap().medium;
        for bytes in [1, 640, 1024, 7199, 7200, 20_000] {
            let mut frame = SectorFrame::new(medium, Rate::R9of10, bytes).unwrap();
            let mut written = vec![0; bytes];
            Seed::new(bytes as u64).stream().fill(&mut written);
            let symbols = frame.symbols(&written, 7).unwrap();
            assert_eq!(symbols.len(), frame.shape().voxels());
            let share = frame.coded_voxels() as f64 / symbols.len() as f64;
            assert!(bytes < 7000 || share > 0.85, "{bytes} bytes fill {share} of the sector");
            let found = sure(&symbols, medium.symbols());
            let (report, payload) = frame.decode_probabilities(&found, 7).unwrap();
            assert_eq!(payload, Some(&written[..]));
            assert!(report.margin > 0.9);
            let (_, elsewhere) = frame.decode_probabilities(&found, 8).unwrap();
            assert_ne!(elsewhere, Some(&written[..]), "each address has its own scrambling");
            let other: Vec<u8> = symbols.iter().map(|own| (own + 1) % medium.symbols()).collect();
            let (_, payload) =
                frame.decode_probabilities(&sure(&other, medium.symbols()), 7).unwrap();
            assert_eq!(payload, None);
        }
    }
}

/// A track through voxels and images is the one that was written, and reads differ in noise.
#[test]
fn sectors_round_trip_through_images() {
    let mut reader = reader(medium(Damage::default()));
    let written = track(6);
    let (first, images) = read_all(&mut reader, &written, 1);
    assert!(first.iter().all(is_read), "{first:?}");
    assert_eq!(images, written);
    let (again, _) = read_all(&mut reader, &written, 1);
    assert_eq!(first, again, "the same read gives the same images");
    let (other, _) = read_all(&mut reader, &written, 2);
    assert_ne!(first, other, "another read has different noise");
}

/// Empty sectors are read like others: their voxels are not all the same.
#[test]
fn empty_sectors_round_trip() {
    let mut reader = reader(medium(Damage::default()));
    let (outcomes, images) = read_all(&mut reader, &vec![0; 4 * BYTES], 1);
    assert!(outcomes.iter().all(is_read), "{outcomes:?}");
    assert_eq!(images, vec![0; 4 * BYTES]);
}

/// Sectors are read the same, whichever part of a track a worker gets.
#[test]
fn parts_of_a_track_read_like_the_whole() {
    let mut reader = reader(medium(Damage::default()));
    let written = track(8);
    let (whole, _) = read_all(&mut reader, &written, 7);
    let mut parts = Vec::new();
    for wanted in [0..3, 3..8] {
        parts.extend(reader.read(extent(1), &mut written.clone(), wanted, 0, 7).unwrap());
    }
    assert_eq!(whole, parts);
}

/// Lost sectors are reported as lost; wrong bytes are never returned.
#[test]
fn damage_loses_sectors_and_never_gives_wrong_bytes() {
    let all = Disc { row: 20.0, column: 20.0, radius: 200.0 };
    let some = Disc { row: 20.0, column: 20.0, radius: 4.0 };
    let scratch = |width| Scratch { row: 20.0, column: 0.0, angle_deg: 20.0, width, depth: 0.9 };
    let read = |read: ReadFaults| Damage {
        read: BTreeMap::from([(Some(TRACK), read)]),
        ..Damage::default()
    };
    let write = |write: WriteFaults| Damage {
        write: BTreeMap::from([((TRACK, 1), write)]),
        ..Damage::default()
    };
    let none = ReadFaults::default;
    // What is damaged, and whether sectors 0, 1, 2 can still be read.
    let cases = [
        ("nothing", Damage::default(), [true; 3]),
        (
            "a lost layer",
            write(WriteFaults { lost_layer: true, ..Default::default() }),
            [true, false, true],
        ),
        (
            "a large void",
            write(WriteFaults { particulates: vec![all], ..Default::default() }),
            [true, false, true],
        ),
        (
            "a small void",
            write(WriteFaults { particulates: vec![some], ..Default::default() }),
            [true; 3],
        ),
        (
            "a weak laser",
            write(WriteFaults { dips: vec![(all, 0.05)], ..Default::default() }),
            [true, false, true],
        ),
        ("a thin scratch", read(ReadFaults { scratches: vec![scratch(1.0)], ..none() }), [true; 3]),
        (
            "dust over all",
            read(ReadFaults { dust: vec![Dust { region: all, depth: 1.0 }], ..none() }),
            [false; 3],
        ),
        ("out of focus", read(ReadFaults { defocus_um: 8.0, ..none() }), [false; 3]),
        ("a dead column", read(ReadFaults { dead_columns: vec![60], ..none() }), [true; 3]),
        (
            "half a turn",
            read(ReadFaults { placement: Orientation::HalfTurn, ..none() }),
            [false; 3],
        ),
        (
            "upside down",
            read(ReadFaults { placement: Orientation::UpsideDown, ..none() }),
            [false; 3],
        ),
    ];
    let written = track(3);
    for (name, damage, expected) in cases {
        let mut reader = reader(medium(damage));
        let (outcomes, images) = read_all(&mut reader, &written, 1);
        let read: Vec<bool> = outcomes.iter().map(is_read).collect();
        assert_eq!(read, expected, "{name}");
        let sectors = images.chunks(BYTES).zip(written.chunks(BYTES)).zip(&read);
        for ((found, written), is_read) in sectors {
            assert!(!is_read || found == written, "{name}: wrong bytes");
        }
    }
}

/// A decoder that decodes nothing, so that the ladder goes on to the next.
struct Blind;

impl Decoder for Blind {
    fn name(&self) -> &str {
        "blind"
    }

    fn decode(
        &mut self,
        _: &fulgurite_platter::channel::SectorImages,
        shape: fulgurite_platter::channel::SectorShape,
    ) -> Result<SymbolProbabilities, crate::DecodeError> {
        Ok(SymbolProbabilities::normalized(8, vec![0.0; shape.voxels() * 8]))
    }
}

/// Decoders are tried in turn; when all fail, new images are taken, up to the limit.
#[test]
fn reader_tries_the_next_decoder_then_another_read() {
    let linear = standard_linear("easy").unwrap();
    let decoders: Vec<Box<dyn Decoder + Send>> = vec![Box::new(Blind), Box::new(linear)];
    let mut reader = VoxelReader::new(medium(Damage::default()), decoders).unwrap();
    let written = track(1);
    let (outcomes, _) = read_all(&mut reader, &written, 1);
    assert_eq!((outcomes[0].decoder, outcomes[0].reads, outcomes[0].decodes), (1, 1, 2));
    let mut reader = VoxelReader::new(medium(Damage::default()), vec![Box::new(Blind)]).unwrap();
    let (outcomes, _) = read_all(&mut reader, &written, 1);
    assert_eq!((outcomes[0].reading, outcomes[0].reads), (SectorReading::Lost, 2));
}

/// Two reads carry more information than one: images that are too dim alone suffice together.
#[test]
fn averaging_reads_what_one_image_could_not() {
    let mut dim = medium(Damage::default());
    dim.channel.camera.electrons = 60.0;
    let written = track(12);
    let lost = |reads_max: u8| {
        let dim = VoxelMedium { reads_max, ..dim.clone() };
        let (outcomes, images) = read_all(&mut reader(dim), &written, 1);
        for ((outcome, found), written) in
            outcomes.iter().zip(images.chunks(BYTES)).zip(written.chunks(BYTES))
        {
            assert!(!is_read(outcome) || found == written, "wrong bytes");
        }
        outcomes.iter().filter(|outcome| !is_read(outcome)).count()
    };
    let (once, often) = (lost(1), lost(6));
    assert!(once >= 6 && often * 2 <= once, "{once} lost with one read, {often} with six");
}

/// Adding a worse decoder costs nothing: every sector that the better one alone reads from several
/// images is read, in either order.
#[test]
fn a_worse_decoder_costs_no_sector() {
    let mut dim = VoxelMedium { reads_max: 4, ..medium(Damage::default()) };
    dim.channel.camera.electrons = 60.0;
    let linear = || -> Box<dyn Decoder + Send> { Box::new(standard_linear("easy").unwrap()) };
    let written = track(12);
    let read = |decoders: Vec<Box<dyn Decoder + Send>>| {
        let mut reader = VoxelReader::new(dim.clone(), decoders).unwrap();
        read_all(&mut reader, &written, 1).0
    };
    let alone = read(vec![linear()]);
    let late = alone.iter().filter(|outcome| is_read(outcome) && outcome.reads > 1).count();
    assert!(late > 2, "it takes several images: {alone:?}");
    for ladder in [vec![linear(), Box::new(Blind)], vec![Box::new(Blind), linear()]] {
        for (alone, found) in alone.iter().zip(read(ladder)) {
            assert_eq!((alone.reading, alone.reads), (found.reading, found.reads));
        }
    }
}

/// With new images the decoder that left fewer codewords is tried first, which saves the other one.
#[test]
fn decoder_with_fewer_failed_codewords_goes_first() {
    let mut dim = VoxelMedium { reads_max: 2, ..medium(Damage::default()) };
    dim.channel.camera.electrons = 75.0;
    let linear = Box::new(standard_linear("easy").unwrap());
    let mut reader = VoxelReader::new(dim, vec![Box::new(Blind), linear]).unwrap();
    let bytes = 30_000;
    let extent = SectorExtent { sector_bytes: bytes, ..extent(1) };
    let mut images = vec![0; 6 * bytes];
    Seed::new(9).stream().fill(&mut images);
    let outcomes = reader.read(extent, &mut images, 0..6, 0, 1).unwrap();
    let second = |outcome: &&SectorOutcome| is_read(outcome) && outcome.reads == 2;
    let decodes: Vec<u8> = outcomes.iter().filter(second).map(|found| found.decodes).collect();
    // Two for the first images, one for the second.
    assert!(decodes.contains(&3), "{outcomes:?}");
}

/// Channels that the shipped network was trained on, and others, with different write memory or
/// closer voxels. Each has its own linear decoder.
#[cfg(feature = "learned")]
fn channels() -> [(&'static str, Channel, &'static str); 5] {
    let preset = |name: &str| Channel::preset(name).unwrap();
    let memory = |memory: f64| {
        let mut channel = preset("nominal");
        channel.voxels.memory_azimuth = memory;
        channel.voxels.memory_retardance = memory;
        channel
    };
    [
        ("easy", preset("easy"), "easy"),
        ("nominal", preset("nominal"), "nominal"),
        ("dense", preset("dense"), "dense"),
        ("nominal without write memory", memory(0.0), "nominal"),
        ("nominal with more write memory", memory(0.4), "nominal"),
    ]
}

/// The network in addition to the linear decoder loses no sector that the linear one alone reads,
/// on any channel, in enough light and in too little. They are compared sector by sector, with the
/// same glass and the same noise.
#[cfg(feature = "learned")]
#[test]
fn the_shipped_network_costs_no_sector_on_any_channel() {
    let model = crate::standard_model().unwrap();
    let written = track(8);
    let read = |medium: &VoxelMedium, preset: &str, with_network: bool| {
        let linear = Box::new(standard_linear(preset).unwrap());
        let mut decoders: Vec<Box<dyn Decoder + Send>> = vec![linear];
        if with_network {
            let (medium, engine) = (medium.channel.medium, crate::EngineChoice::BuiltIn);
            decoders.push(Box::new(crate::Learned::new(&model, medium, &engine).unwrap()));
        }
        let mut reader = VoxelReader::new(medium.clone(), decoders).unwrap();
        let (outcomes, images) = read_all(&mut reader, &written, 1);
        for (outcome, at) in outcomes.iter().zip(0..) {
            let sector = at * BYTES..(at + 1) * BYTES;
            assert!(!is_read(outcome) || images[sector.clone()] == written[sector]);
        }
        outcomes.iter().map(is_read).collect::<Vec<bool>>()
    };
    let mut gained = 0;
    for (name, channel, preset) in channels() {
        let (mut lost, mut sound) = (0, 0);
        for electrons in [50.0, 120.0, 900.0] {
            let mut medium =
                VoxelMedium { reads_max: 3, channel: channel.clone(), ..medium(Damage::default()) };
            medium.channel.camera.electrons = electrons;
            let alone = read(&medium, preset, false);
            let both = read(&medium, preset, true);
            let worse = alone.iter().zip(&both).filter(|(alone, both)| **alone && !**both).count();
            assert_eq!(worse, 0, "{name}, {electrons} electrons: {alone:?} and {both:?}");
            let [alone, both] =
                [alone, both].map(|reads| reads.iter().filter(|read| **read).count());
            lost += 8 - alone;
            sound += alone;
            gained += both - alone;
        }
        assert!(lost > 0 && sound > 0, "{name}: the linear decoder loses {lost}, reads {sound}");
    }
    assert!(gained > 10, "the network gains sectors: {gained} sectors");
}
