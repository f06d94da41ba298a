//! The fidelities below `analog`: sectors whose probabilities are drawn, and sectors whose loss is
//! drawn.

use fulgurite_codes::ldpc::Rate;
use fulgurite_decode::{
    Decoder as _, EngineChoice, Interval, Learned, Provenance, Score, SectorFrame, SoftFit,
    SoftReader, SoftStatistics, standard_model,
};
use fulgurite_platter::channel::{Channel, Population, SectorShape};
use fulgurite_platter::{
    Blank, Geometry, NoFaults, PlatterHeader, PlatterReader, PlatterRole, SECTOR_OVERHEAD,
    SectorExtent, SectorReading, SeededFaults, SetMember, TrackBuffer, WriteDrive,
};
use fulgurite_units::{ArchiveId, LayerIndex, PlatterId, Ratio, Seed, SetId, TrackIndex, UnixTime};

use crate::{PRESET, timed};

/// Payload of a sector of the paper's size.
pub(crate) const PAYLOAD: usize = 100 << 10;

/// Sectors per measurement.
const SECTORS: usize = 16;

/// User bytes of the platter that is read.
const PLATTER: u64 = 128 << 20;

/// Sectors that the statistics are fitted to: as few as possible, since only their kind matters
/// here.
const FITTED: u64 = 32;

/// The address of the measured sector.
pub(crate) fn place() -> SectorExtent {
    SectorExtent {
        platter: PlatterId::from_bytes([1; 16]),
        track: TrackIndex::new(1),
        first: LayerIndex::new(0),
        sector_bytes: PAYLOAD + SECTOR_OVERHEAD,
    }
}

/// Measures sectors at fidelity `soft`: drawn soft bits, real codewords.
pub(crate) fn soft() {
    let statistics = statistics();
    let at = place();
    let frame = SectorFrame::new(statistics.medium(), Rate::R9of10, at.sector_bytes).unwrap();
    let mut reader = SoftReader::new(&statistics, Rate::R9of10, Seed::new(1), 1).unwrap();
    let mut written = vec![0; SECTORS * at.sector_bytes];
    Seed::new(2).stream().fill(&mut written);
    let mut images = written.clone();
    reader.read(at, &mut images[..at.sector_bytes], 0, 0).unwrap();
    let (readings, seconds) = timed(|| reader.read(at, &mut images, 0, 1).unwrap());
    let lost = readings.iter().filter(|reading| **reading == SectorReading::Lost).count();
    assert_eq!(images, written, "what was read was written");
    println!(
        "{{\"voxels\":{},\"processor_s\":{seconds:.6},\"lost\":{lost},\"symbol_errors\":{:.5}}}",
        SECTORS * frame.coded_voxels(),
        statistics.symbol_error_rate.value
    );
}

/// Fits statistics of the learned decoder.
fn statistics() -> SoftStatistics {
    let channel = Channel::preset(PRESET).unwrap();
    let shape = SectorShape::new(64, 64).unwrap();
    let medium = channel.medium;
    let population = Population::new(channel.clone(), shape, 3, 3, None, None);
    let model = standard_model().unwrap();
    let mut decoder = Learned::new(&model, medium, &EngineChoice::BuiltIn).unwrap();
    let mut fit = SoftFit::new(medium);
    let mut errors = 0.0;
    for number in 0..FITTED {
        let (images, symbols) = population.sector(number).unwrap();
        let found = decoder.decode(&images, shape).unwrap();
        let score = Score::new(medium, shape, &found, &symbols);
        errors += score.symbol_error_rate / FITTED as f64;
        fit.add(shape, &found, &symbols, &score);
    }
    let only = |value: f64| Interval { value, low: value, high: value };
    let about = Provenance {
        preset: PRESET.to_owned(),
        decoder: "learned".to_owned(),
        seed: 3,
        side: shape.columns(),
        shares: channel.shares,
        measured: [only(errors), only(0.0), only(0.0)],
        rate: Rate::R9of10,
        sector_bytes: 4096,
    };
    fit.finish(about).unwrap()
}

/// Measures tracks at fidelity `sector`, with one sector in a thousand lost: drawn, checked,
/// repaired.
pub(crate) fn sector() {
    let geometry = Geometry::profile("desk").unwrap();
    let header = header(&geometry, PLATTER.min(geometry.platter_user_bytes()));
    let mut user = vec![0; usize::try_from(header.data_bytes).unwrap()];
    Seed::new(1).stream().fill(&mut user);
    let blank = Blank::new(header.platter);
    let mut writer = WriteDrive::new().write(blank, header.clone(), Vec::new()).unwrap();
    user.chunks(1 << 20).for_each(|piece| writer.write(piece).unwrap());
    let file = writer.finish().unwrap().1;
    let reader = PlatterReader::open(&file, None, &NoFaults).unwrap();
    let rate = Ratio::new(0.001).unwrap();
    let medium = SeededFaults::new(Seed::new(2), rate, Ratio::ZERO);
    let mut buffer = TrackBuffer::new();
    let mut read = |compare: bool| {
        let mut at = 0;
        let all = 0..reader.header().user_bytes();
        let whole = reader.read_user(all, &medium, &mut buffer, &mut |piece| {
            assert!(!compare || *piece == user[at..at + piece.len()], "what was written");
            at += piece.len();
            Ok(())
        });
        whole.unwrap();
        at
    };
    read(true);
    let (bytes, seconds) = timed(|| read(false));
    println!("{{\"bytes\":{bytes},\"processor_s\":{seconds:.6}}}");
}

fn header(geometry: &Geometry, data_bytes: u64) -> PlatterHeader {
    let platter = PlatterId::from_bytes([1; 16]);
    let own = Some(SetMember { platter, data_bytes, list_bytes: 0 });
    PlatterHeader {
        archive: ArchiveId::from_bytes([0; 16]),
        platter,
        generation: 0,
        set: SetId::from_bytes([0; 16]),
        role: PlatterRole::Information { index: 0 },
        members: (0..geometry.set_platters()).map(|number| own.filter(|_| number == 0)).collect(),
        geometry: geometry.clone(),
        data_bytes,
        list_bytes: 0,
        list_entries: 0,
        created: UnixTime::from_millis(0),
        software: "speed".to_owned(),
    }
}
