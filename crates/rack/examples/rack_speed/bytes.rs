//! Times a put and a get of a blob in a rack against the stacks alone and against plain files on
//! the same disk, in turn.

use std::path::{Path, PathBuf};

use super::measure::{Times, timed};
use super::shelf::Shelf;
use super::{bare, plain};

/// Largest share of the files that may remain in the page cache before a cold read.
const WARM_PERCENT_MAX: usize = 2;

/// What is being measured.
#[derive(Clone, Copy)]
enum Who {
    Rack,
    Bare,
    Plain,
}

/// Prints one line per round, in seconds of wall-clock and CPU time. Each round starts with another
/// candidate.
pub(crate) fn print(folder: &Path, mib: usize, rounds: usize) {
    let shelf = Shelf::new(folder, mib);
    for round in 0..rounds {
        let mut times = Vec::new();
        let mut record = |name: &str, took: Times| {
            let Times { wall, processor } = took;
            times.push(format!("\"{name}_s\":{wall:.4},\"{name}_processor_s\":{processor:.4}"));
        };
        let mut all = [Who::Rack, Who::Bare, Who::Plain];
        let count = all.len();
        all.rotate_left(round % count);
        for who in all {
            // Flushes dirty pages of the others, so that they do not slow down the next.
            rustix::fs::sync();
            match who {
                Who::Rack => record("put", timed(|| shelf.put())),
                Who::Bare => record("lay", timed(|| bare::write(folder, shelf.pieces()))),
                Who::Plain => record("write", timed(|| plain::write(folder, shelf.pieces()))),
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
                record(&format!("{name}_{place}"), timed(read));
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
