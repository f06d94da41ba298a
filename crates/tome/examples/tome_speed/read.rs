//! Gets objects from a tome whose disk spins and has finished the limited scrub after its spin-up,
//! and as many bytes from plain files, alternating.

use std::path::Path;

use super::clock_advancer::{ClockAdvancer, wait_until_quiet};
use super::measure::{Cost, measure_cost};
use super::plain;
use super::shelf::{OBJECT, Shelf};

/// Largest percentage of the files that may stay in the page cache before a cold read.
const WARM_PERCENT_MAX: usize = 2;

/// Prints a line per round. The order alternates from round to round.
pub(crate) fn print(folder: &Path, mib: usize, rounds: usize) {
    let shelf = Shelf::new(folder);
    let names = fill(&shelf, mib);
    plain::write(folder, shelf.noise(), (mib << 20) as u64);
    let advancer = ClockAdvancer::start(&shelf.clock);
    assert_eq!(get(&shelf, &names[..1]), OBJECT, "the disk spins");
    drop(advancer);
    // From here on the clock stands still, so the disk keeps spinning.
    wait_until_quiet(|| false);
    let spinning = shelf.set.powers().into_iter().filter(|(_, power)| power.is_spinning());
    let expected = shelf.set.tome_of(&names[0]).unwrap();
    assert_eq!(
        spinning.map(|(tome, _)| tome).collect::<Vec<_>>(),
        [expected],
        "the disk keeps spinning"
    );
    for round in 0..rounds {
        let mut fields = Vec::new();
        for place in ["cold", "warm"] {
            for turn in 0..2 {
                let is_ours = (round + turn) % 2 == 0;
                let files = if is_ours { shelf.blocks() } else { plain::paths(folder).collect() };
                if place == "cold" {
                    let cached = plain::forget(files);
                    assert!(cached < WARM_PERCENT_MAX, "{cached} % of it stayed in the page cache");
                } else {
                    files.iter().for_each(|file| plain::warm(file));
                }
                let Cost { wall, processor, read, .. } = measure_cost(|| {
                    let bytes = if is_ours { get(&shelf, &names) } else { plain::read(folder) };
                    assert_eq!(bytes, mib << 20, "all bytes are read");
                });
                let name = if is_ours { "get" } else { "plain" };
                fields.push(format!(
                    "\"{name}_{place}_s\":{wall:.4},\"{name}_{place}_processor_s\":{processor:.4},\
                     \"{name}_{place}_bytes\":{read}"
                ));
            }
        }
        println!("{{\"round\":{round},\"mib\":{mib},{}}}", fields.join(","));
    }
    plain::paths(folder).for_each(|path| std::fs::remove_file(path).unwrap());
}

/// Puts objects that are all on one tome, and protects them; returns their names.
fn fill(shelf: &Shelf, mib: usize) -> Vec<String> {
    let count = (mib << 20) / OBJECT;
    let names: Vec<String> = (0..count).map(|number| format!("object {number}")).collect();
    let mut tome = None;
    for (number, name) in names.iter().enumerate() {
        // A spinning disk is preferred, and it keeps spinning while the clock stands still.
        let at = shelf.wait(shelf.put(name, &shelf.object(number, OBJECT)));
        assert_eq!(*tome.get_or_insert(at), at, "all on one");
    }
    let _advancer = ClockAdvancer::start(&shelf.clock);
    names.iter().for_each(|name| shelf.wait(shelf.protected(name)));
    names
}

/// Gets objects one after the other; returns the number of bytes.
fn get(shelf: &Shelf, names: &[String]) -> usize {
    names.iter().map(|name| shelf.wait(shelf.set.get(name)).unwrap().len()).sum()
}
