//! A blob on disks with simulated read speed, although all of them are directories on one disk.
//!
//! Only reads are delayed; writes take as long as on the one disk below.

use std::path::Path;

use super::measure::timed;
use super::shelf::Shelf;

pub(crate) fn print(folder: &Path, mib: usize) {
    let shelf = Shelf::paced(folder, mib);
    let put = timed(|| shelf.put()).wall;
    let verify = timed(|| shelf.verify()).wall;
    let get = timed(|| assert_eq!(shelf.get(), mib << 20, "the whole blob")).wall;
    println!("{{\"mib\":{mib},\"put_s\":{put:.2},\"verify_s\":{verify:.2},\"get_s\":{get:.2}}}");
}
