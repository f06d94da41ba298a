//! A blob on disks of their own: how fast each reads is simulated, their number is not one.
//!
//! Writes are those of the one disk below; only reads wait.

use std::path::Path;

use super::measure::timed;
use super::shelf::Shelf;

pub(crate) fn print(folder: &Path, mib: usize) {
    let shelf = Shelf::paced(folder, mib);
    let put = timed(|| shelf.put()).wall;
    let verify = timed(|| shelf.verify()).wall;
    let get = timed(|| assert_eq!(shelf.get(), mib << 20, "all of it")).wall;
    println!("{{\"mib\":{mib},\"put_s\":{put:.2},\"verify_s\":{verify:.2},\"get_s\":{get:.2}}}");
}
