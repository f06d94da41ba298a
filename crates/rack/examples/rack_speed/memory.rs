//! Memory that one stream takes in a running rack, whatever its length.

use std::path::Path;

use fulgurite_rack::format::{Coding, FRAGMENT_BYTES};

use super::measure::{forget_peak, memory};
use super::shelf::Shelf;

/// Prints the peak memory of a put and a get above what the rack used before each, and the size of
/// a stripe.
pub(crate) fn print(folder: &Path, mib: usize) {
    let shelf = Shelf::new(folder, mib);
    // The first use also allocates what belongs to no stream: threads, the index, names.
    let put_first = peak_increase(|| shelf.put());
    let get_first = peak_increase(|| assert_eq!(shelf.get(), mib << 20, "the whole blob"));
    shelf.delete();
    let put = peak_increase(|| shelf.put());
    let get = peak_increase(|| assert_eq!(shelf.get(), mib << 20, "the whole blob"));
    let stripe = usize::from(Coding::PELICAN.stacks()) * FRAGMENT_BYTES;
    println!(
        "{{\"mib\":{mib},\"put_first\":{put_first},\"get_first\":{get_first},\"put\":{put},\
         \"get\":{get},\"stripe\":{stripe}}}"
    );
}

fn peak_increase(act: impl FnOnce()) -> u64 {
    let [_, before] = memory();
    forget_peak();
    act();
    let [most, _] = memory();
    most.saturating_sub(before)
}
