//! Random sectors of many drives and platters, to train and evaluate decoders.
//!
//! ```text
//! Seed(seed) -- "lab sectors" -- number --+-- symbols, neighbors, place, track, read
//!                                         +-- which drive, which platter of so many
//! Seed(population) -- "lab drives", "lab platters" -- number -- their own optics
//! ```
//!
//! A sector is a function of its number alone, so a data set can be generated in parts and in any
//! order. An archive reads differently: there, sectors of a platter share their drive for a whole
//! session.

use fulgurite_units::Seed;

use super::{
    Channel, Neighbor, ReadFaults, ReadHead, ReadSeeds, SectorImages, SectorShape, WriteFaults,
};
use crate::PlatterError;

/// A source of random sectors.
#[derive(Debug)]
pub struct Population {
    channel: Channel,
    shape: SectorShape,
    sectors: Seed,
    drives: SeedPool,
    platters: SeedPool,
}

/// A population of drives or of platters.
#[derive(Debug)]
struct SeedPool {
    root: Seed,
    /// Size of the population; `None` for a separate one per sector.
    count: Option<u64>,
}

impl SeedPool {
    /// Returns the seed of the drive or platter of a sector.
    fn pick(&self, sector: &Seed, number: u64, label: &[u8]) -> Seed {
        let own = self.count.map_or(number, |count| sector.child(label).stream().below(count));
        self.root.child(&own.to_le_bytes())
    }
}

impl Population {
    /// Creates sectors of `seed`, in drives and on platters of `population`.
    #[must_use]
    pub fn new(
        channel: Channel,
        shape: SectorShape,
        seed: u64,
        population: u64,
        drives: Option<u64>,
        platters: Option<u64>,
    ) -> Self {
        let root = Seed::new(population);
        Self {
            channel,
            shape,
            sectors: Seed::new(seed).child(b"lab sectors"),
            drives: SeedPool { root: root.child(b"lab drives"), count: drives },
            platters: SeedPool { root: root.child(b"lab platters"), count: platters },
        }
    }

    /// Returns the images of a sector, and the symbols that were written.
    ///
    /// # Errors
    /// [`PlatterError::Channel`] when a number of the channel is out of range.
    pub fn sector(&self, number: u64) -> Result<(SectorImages, Vec<u8>), PlatterError> {
        let Self { channel, shape, .. } = self;
        let seed = self.sectors.child(&number.to_le_bytes());
        let own = random_symbols(channel, *shape, &seed.child(b"symbols"));
        let sides = (1..=channel.optics.layers).flat_map(|distance| [(distance, 0), (distance, 1)]);
        let layers: Vec<(u8, Vec<u8>)> = sides
            .map(|(distance, side)| {
                let seed = seed.child(b"neighbors").child(&[distance, side]);
                (distance, random_symbols(channel, *shape, &seed))
            })
            .collect();
        let neighbors: Vec<Neighbor<'_>> = layers
            .iter()
            .map(|(distance, symbols)| Neighbor { distance: *distance, symbols })
            .collect();
        let written =
            channel.write(*shape, &own, &seed.child(b"place"), &WriteFaults::default())?;
        let drive = self.drives.pick(&seed, number, b"drive");
        let seeds = ReadSeeds {
            platter: self.platters.pick(&seed, number, b"platter"),
            track: seed.child(b"track"),
            read: seed.child(b"read"),
        };
        let mut head = ReadHead::new(channel, *shape, drive)?;
        Ok((head.read(&written, &neighbors, &seeds, &ReadFaults::default()), own))
    }
}

/// Draws random symbols of a layer.
#[must_use]
pub fn random_symbols(channel: &Channel, shape: SectorShape, seed: &Seed) -> Vec<u8> {
    let mut stream = seed.stream();
    let symbol_count = u64::from(channel.medium.symbols());
    #[expect(clippy::cast_possible_truncation, reason = "below 8")]
    let draw = |_| stream.below(symbol_count) as u8;
    (0..shape.voxels()).map(draw).collect()
}
