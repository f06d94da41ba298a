//! A blob put into a rack and got from it, beside plain files on the same disk, in turn.

use std::path::{Path, PathBuf};

use super::measure::{Times, timed};
use super::plain;
use super::shelf::Shelf;

/// A line a round: seconds by the clock and of the processor. What is first changes by rounds.
pub(crate) fn print(folder: &Path, mib: usize, rounds: usize) {
    let shelf = Shelf::new(folder, mib);
    for round in 0..rounds {
        let mut times = Vec::new();
        let mut note = |name: &str, took: Times| {
            let Times { wall, processor } = took;
            times.push(format!("\"{name}_s\":{wall:.4},\"{name}_processor_s\":{processor:.4}"));
        };
        let ours_first = round % 2 == 1;
        for ours in [ours_first, !ours_first] {
            settle();
            match ours {
                true => note("put", timed(|| shelf.put())),
                false => note("write", timed(|| plain::write(folder, shelf.pieces()))),
            }
        }
        for place in ["cold", "warm"] {
            for ours in [ours_first, !ours_first] {
                let (files, name) = match ours {
                    true => (shelf.stacks(), format!("get_{place}")),
                    false => (plain::paths(folder).collect(), format!("read_{place}")),
                };
                match place {
                    "cold" => plain::forget(files),
                    _ => warm(&files),
                }
                let read = || match ours {
                    true => assert_eq!(shelf.get(), mib << 20, "all of it"),
                    false => assert!(plain::read(folder) >= mib << 20, "all of it"),
                };
                note(&name, timed(read));
            }
        }
        println!("{{\"round\":{round},\"mib\":{mib},{}}}", times.join(","));
        shelf.delete();
        plain::paths(folder).for_each(|path| std::fs::remove_file(path).unwrap());
    }
}

/// What others left to be written is not to be waited for by what comes.
fn settle() {
    rustix::fs::sync();
}

fn warm(files: &[PathBuf]) {
    for file in files {
        std::io::copy(&mut std::fs::File::open(file).unwrap(), &mut std::io::sink()).unwrap();
    }
}
