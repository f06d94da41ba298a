//! What a stream takes of memory in a running rack, whatever its length.

use std::path::Path;

use fulgurite_stacks::format::{Coding, FRAGMENT_BYTES};

use super::measure::{forget_peak, memory};
use super::shelf::Shelf;

/// The most that a put and a get took beyond what the rack had before each, beside a stripe.
pub(crate) fn print(folder: &Path, mib: usize) {
    let shelf = Shelf::new(folder, mib);
    // What is there from the first use on is no stream's: threads, the index, names.
    let put_first = beyond(|| shelf.put());
    let get_first = beyond(|| assert_eq!(shelf.get(), mib << 20, "all of it"));
    shelf.delete();
    let put = beyond(|| shelf.put());
    let get = beyond(|| assert_eq!(shelf.get(), mib << 20, "all of it"));
    let stripe = usize::from(Coding::PELICAN.stacks()) * FRAGMENT_BYTES;
    println!(
        "{{\"mib\":{mib},\"put_first\":{put_first},\"get_first\":{get_first},\"put\":{put},\
         \"get\":{get},\"stripe\":{stripe}}}"
    );
}

fn beyond(act: impl FnOnce()) -> u64 {
    let [_, before] = memory();
    forget_peak();
    act();
    let [most, _] = memory();
    most.saturating_sub(before)
}
