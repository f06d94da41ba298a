//! A blob put into a rack and got from it, beside its stacks alone and plain files on the same
//! disk, in turn.

use std::path::{Path, PathBuf};

use super::measure::{Times, timed};
use super::shelf::Shelf;
use super::{bare, plain};

/// What may stay in memory of files that are to be read cold.
const WARM_PERCENT_MAX: usize = 2;

/// Who does it.
#[derive(Clone, Copy)]
enum Who {
    Rack,
    Bare,
    Plain,
}

/// A line a round: seconds by the clock and of the processor. Who is first changes by rounds.
pub(crate) fn print(folder: &Path, mib: usize, rounds: usize) {
    let shelf = Shelf::new(folder, mib);
    for round in 0..rounds {
        let mut times = Vec::new();
        let mut note = |name: &str, took: Times| {
            let Times { wall, processor } = took;
            times.push(format!("\"{name}_s\":{wall:.4},\"{name}_processor_s\":{processor:.4}"));
        };
        let mut all = [Who::Rack, Who::Bare, Who::Plain];
        let count = all.len();
        all.rotate_left(round % count);
        for who in all {
            // What others left to be written is not to be waited for by what comes.
            rustix::fs::sync();
            match who {
                Who::Rack => note("put", timed(|| shelf.put())),
                Who::Bare => note("lay", timed(|| bare::write(folder, shelf.pieces()))),
                Who::Plain => note("write", timed(|| plain::write(folder, shelf.pieces()))),
            }
        }
        for place in ["cold", "warm"] {
            for who in all {
                let files = files(who, folder, &shelf);
                match place {
                    "cold" => {
                        let there = plain::forget(files);
                        assert!(there < WARM_PERCENT_MAX, "{there} % of it stayed in memory");
                    }
                    _ => files.iter().for_each(|file| warm(file)),
                }
                let name = match who {
                    Who::Rack => "get",
                    Who::Bare => "few",
                    Who::Plain => "read",
                };
                let read = || match who {
                    Who::Rack => assert_eq!(shelf.get(), mib << 20, "all of it"),
                    Who::Bare => assert_eq!(bare::read(folder), mib << 20, "all of it"),
                    Who::Plain => assert!(plain::read(folder) >= mib << 20, "all of it"),
                };
                note(&format!("{name}_{place}"), timed(read));
            }
        }
        println!("{{\"round\":{round},\"mib\":{mib},{}}}", times.join(","));
        shelf.delete();
        for path in plain::paths(folder).chain(bare::paths(folder)) {
            std::fs::remove_file(path).unwrap();
        }
    }
}

fn files(who: Who, folder: &Path, shelf: &Shelf) -> Vec<PathBuf> {
    match who {
        Who::Rack => shelf.stacks(),
        Who::Bare => bare::paths(folder).collect(),
        Who::Plain => plain::paths(folder).collect(),
    }
}

fn warm(file: &Path) {
    std::io::copy(&mut std::fs::File::open(file).unwrap(), &mut std::io::sink()).unwrap();
}
