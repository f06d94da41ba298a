//! Puts of one block to a tome whose disk spins, each when everything else is idle, alternating
//! with one synced row. The row is like the one in which the set records the location of an object
//! (its piece store: the same store, the same committer and as long a row).

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use fulgurite_catalog::{CatalogError, Committer, FjallConfig, FjallStore, Space, Transaction};
use fulgurite_tome::limits::{METADATA_BLOCK_CACHE, METADATA_WRITE_BUFFER};

use super::clock_advancer::wait_until_quiet;
use super::measure::median;
use super::shelf::{BLOCK, Shelf};

const ROWS: Space = Space::new("rows");
/// Bytes of the row of an object of one block.
const ROW_BYTES: usize = 48;

/// Prints the median and the 90th percentile of a put and of a row, in microseconds.
pub(crate) fn print(folder: &Path, puts: usize) {
    let shelf = Shelf::new(folder);
    let path = folder.join("rows");
    let config = FjallConfig {
        block_cache: METADATA_BLOCK_CACHE,
        write_buffer: METADATA_WRITE_BUFFER,
        worker_count: 1,
    };
    let store = Arc::new(FjallStore::open(&path, &[ROWS], &config).unwrap());
    let committer = Committer::start(store as _).unwrap();
    shelf.wait(shelf.put("first", &shelf.object(0, BLOCK)));
    let (mut put_us, mut row_us) = (Vec::new(), Vec::new());
    for number in 1..=puts {
        let name = format!("object {number}");
        let bytes = shelf.object(number, BLOCK);
        wait_until_quiet(|| false);
        let begin = Instant::now();
        shelf.wait(shelf.put(&name, &bytes));
        put_us.push(begin.elapsed().as_secs_f64() * 1e6);
        wait_until_quiet(|| false);
        let begin = Instant::now();
        let put = move |tx: &mut Transaction<'_>| -> Result<(), CatalogError> {
            tx.put(ROWS, name.into_bytes(), vec![7; ROW_BYTES])
        };
        shelf.wait(committer.commit(put)).unwrap();
        row_us.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    let ninth = |mut runs: Vec<f64>| {
        runs.sort_by(f64::total_cmp);
        runs[runs.len() * 9 / 10]
    };
    println!(
        "{{\"puts\":{puts},\"put_us\":{:.1},\"put_9_of_10_us\":{:.1},\"row_us\":{:.1},\
         \"row_9_of_10_us\":{:.1}}}",
        median(put_us.clone()),
        ninth(put_us),
        median(row_us.clone()),
        ninth(row_us)
    );
    drop(committer);
    std::fs::remove_dir_all(path).unwrap();
}
