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
enum Candidate {
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
        let mut all = [Candidate::Rack, Candidate::Bare, Candidate::Plain];
        let count = all.len();
        all.rotate_left(round % count);
        for candidate in all {
            // Flushes dirty pages of the others, so that they do not slow down the next.
            rustix::fs::sync();
            match candidate {
                Candidate::Rack => record("put", timed(|| shelf.put())),
                Candidate::Bare => record("lay", timed(|| bare::write(folder, shelf.pieces()))),
                Candidate::Plain => record("write", timed(|| plain::write(folder, shelf.pieces()))),
            }
        }
        for place in ["cold", "warm"] {
            for candidate in all {
                let files = files(candidate, folder, &shelf);
                match place {
                    "cold" => {
                        let there = plain::forget(files);
                        assert!(there < WARM_PERCENT_MAX, "{there} % of it stayed in memory");
                    }
                    _ => files.iter().for_each(|file| warm(file)),
                }
                let name = match candidate {
                    Candidate::Rack => "get",
                    Candidate::Bare => "few",
                    Candidate::Plain => "read",
                };
                let read = || match candidate {
                    Candidate::Rack => assert_eq!(shelf.get(), mib << 20, "the whole blob"),
                    Candidate::Bare => assert_eq!(bare::read(folder), mib << 20, "the whole blob"),
                    Candidate::Plain => assert!(plain::read(folder) >= mib << 20, "the whole blob"),
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

fn files(candidate: Candidate, folder: &Path, shelf: &Shelf) -> Vec<PathBuf> {
    match candidate {
        Candidate::Rack => shelf.stacks(),
        Candidate::Bare => bare::paths(folder).collect(),
        Candidate::Plain => plain::paths(folder).collect(),
    }
}

fn warm(file: &Path) {
    std::io::copy(&mut std::fs::File::open(file).unwrap(), &mut std::io::sink()).unwrap();
}
