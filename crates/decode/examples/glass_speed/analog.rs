//! The whole analog read of a sector: images in, verified bytes out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fulgurite_codes::ldpc::Rate;
use fulgurite_codes::{CHECKSUM_BYTES, sector_checksum};
use fulgurite_decode::{
    Damage, DecodeError, Decoder, Engine, Logits, Range, Tile, VoxelMedium, VoxelReader,
    standard_linear,
};
use fulgurite_platter::SectorExtent;
use fulgurite_platter::channel::Channel;
use fulgurite_units::{PlatterId, Seed};

use crate::media::place;
use crate::{PRESET, cpu_time, learned, timed};

/// Sectors per measurement.
const SECTORS: usize = 6;

/// Sectors per measurement of the ladder: their qualities vary widely.
const LADDER_SECTORS: usize = 100;

/// An engine that measures its CPU time.
#[derive(Debug)]
struct TimedEngine {
    engine: Box<dyn Engine>,
    nanos: Arc<AtomicU64>,
}

impl Engine for TimedEngine {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn tile_side_max(&self) -> usize {
        self.engine.tile_side_max()
    }

    fn images(&self) -> Option<Range> {
        self.engine.images()
    }

    fn run(&mut self, tile: &Tile<'_>) -> Result<Logits<'_>, DecodeError> {
        let start = cpu_time();
        let found = self.engine.run(tile);
        let took = Duration::from_secs_f64((cpu_time() - start).max(0.0));
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        found
    }
}

pub(crate) fn analog(engine: &str, model: &str) {
    let nanos = Arc::new(AtomicU64::new(0));
    let decoder = learned(engine, model, |engine| {
        Box::new(TimedEngine { engine, nanos: Arc::clone(&nanos) })
    });
    let mut reader = VoxelReader::new(medium(), vec![Box::new(decoder)]).unwrap();
    let mut total = 0.0;
    for number in 0..=SECTORS {
        let written = sector(number);
        let (images, _) =
            reader.images(place(), &written, 0, u32::try_from(number).unwrap(), 1).unwrap();
        let ((), seconds) = timed(|| {
            let (_, bytes) = reader.bytes(&images, 0, place().number(0)).unwrap();
            let bytes = bytes.expect("the sector can be read");
            let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
            assert_eq!(sector_checksum(content), checksum, "the sector's own checksum");
            assert_eq!(bytes, written, "what was written");
        });
        // The first sector is a warm-up; engines plan then.
        if number == 0 {
            nanos.store(0, Ordering::Relaxed);
        } else {
            total += seconds;
        }
    }
    let voxels = SECTORS * reader.frame().unwrap().shape().voxels();
    println!(
        "{{\"bytes\":{},\"voxels\":{voxels},\"processor_s\":{total:.6},\"inference_s\":{:.6}}}",
        SECTORS * place().sector_bytes,
        nanos.load(Ordering::Relaxed) as f64 / 1e9
    );
}

fn medium() -> VoxelMedium {
    VoxelMedium {
        channel: Channel::preset(PRESET).unwrap(),
        rate: Rate::R9of10,
        seed: Seed::new(1),
        reads_max: 1,
        damage: Damage::default(),
    }
}

/// Measures sectors as an archive reads them, each of its own drive and platter: with the linear
/// decoder, and with the learned one where that fails.
pub(crate) fn ladder(engine: &str, model: &str) {
    let decoders: Vec<Box<dyn Decoder + Send>> = vec![
        Box::new(standard_linear(PRESET).unwrap()),
        Box::new(learned(engine, model, |engine| engine)),
    ];
    let rungs = decoders.len();
    let mut reader = VoxelReader::new(medium(), decoders).unwrap();
    let (mut total, mut decodes, mut lost) = (0.0, 0, 0);
    for number in 0..=LADDER_SECTORS {
        let written = sector(number);
        let platter = PlatterId::from_bytes((number as u128).to_le_bytes());
        let at = SectorExtent { platter, ..place() };
        // A read of its own too: the read's share of a sector's quality is drawn per read.
        let (drive, read) = (u32::try_from(number).unwrap(), number as u64);
        let (images, _) = reader.images(at, &written, 0, drive, read).unwrap();
        let mut took = 0.0;
        // The first sector warms up every rung.
        let is_first = number == 0;
        let mut is_read = false;
        for rung in 0..rungs {
            let (bytes, seconds) = timed(|| {
                let (_, bytes) = reader.bytes(&images, rung, at.number(0)).unwrap();
                bytes.map(<[u8]>::to_vec)
            });
            took += seconds;
            decodes += usize::from(!is_first);
            if let Some(bytes) = bytes {
                assert_eq!(bytes, written, "what was written");
                is_read = true;
                if !is_first {
                    break;
                }
            }
        }
        if !is_first {
            total += took;
            lost += usize::from(!is_read);
        }
    }
    let voxels = LADDER_SECTORS * reader.frame().unwrap().shape().voxels();
    println!(
        "{{\"bytes\":{},\"voxels\":{voxels},\"processor_s\":{total:.6},\
         \"sectors\":{LADDER_SECTORS},\"decodes\":{decodes},\"lost\":{lost}}}",
        LADDER_SECTORS * place().sector_bytes
    );
}

/// Returns the bytes of a sector that ends in its checksum.
fn sector(number: usize) -> Vec<u8> {
    let mut bytes = vec![0; place().sector_bytes];
    Seed::new(number as u64).stream().fill(&mut bytes);
    let end = bytes.len() - CHECKSUM_BYTES;
    let checksum = sector_checksum(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum);
    bytes
}
