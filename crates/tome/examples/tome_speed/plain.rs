//! The same amount of data in plain files: what a disk does without tomes.

use std::fs::File;
use std::io::{IoSliceMut, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::Advice;
use rustix::io::{ReadWriteFlags, preadv2};

/// As many files as there are tomes.
const FILES: usize = 16;
/// Bytes written to one file before the next: a block.
const WRITE_BYTES: usize = 1 << 17;
/// Bytes per read; the files are read one after the other.
const READ_BYTES: usize = 1 << 20;

/// Writes bytes to several files in parallel, and syncs them all at the end.
pub(crate) fn write(folder: &Path, noise: &[u8], bytes: u64) {
    let mut files: Vec<File> = paths(folder).map(|path| File::create(path).unwrap()).collect();
    let all = usize::try_from(bytes.div_ceil(WRITE_BYTES as u64)).unwrap();
    for (number, piece) in noise.chunks_exact(WRITE_BYTES).cycle().take(all).enumerate() {
        files[number % FILES].write_all(piece).unwrap();
    }
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(|| file.sync_all().unwrap());
        }
    });
}

/// Reads the files one after the other; returns the number of bytes.
pub(crate) fn read(folder: &Path) -> usize {
    let mut buffer = vec![0; READ_BYTES];
    let mut count = 0;
    for path in paths(folder) {
        let mut file = File::open(path).unwrap();
        while let now @ 1.. = file.read(&mut buffer).unwrap() {
            count += now;
        }
    }
    count
}

/// Returns the paths of the files.
pub(crate) fn paths(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let folder = folder.to_owned();
    (0..FILES).map(move |index| folder.join(format!("plain-{index}")))
}

/// Drops the page cache of files, which are synced. Returns the percentage that is still cached, by
/// probing a byte of each MiB.
pub(crate) fn forget(paths: impl IntoIterator<Item = PathBuf>) -> usize {
    let (mut probes, mut cached) = (0, 0);
    for path in paths {
        let file = File::open(path).unwrap();
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        for offset in (0..file.metadata().unwrap().len()).step_by(READ_BYTES) {
            let mut byte = [0];
            let into = &mut [IoSliceMut::new(&mut byte)];
            probes += 1;
            // Fails if it would have to read from the disk.
            cached += usize::from(preadv2(&file, into, offset, ReadWriteFlags::NOWAIT).is_ok());
        }
    }
    100 * cached / probes.max(1)
}

/// Reads a file into the page cache.
pub(crate) fn warm(path: &Path) {
    std::io::copy(&mut File::open(path).unwrap(), &mut std::io::sink()).unwrap();
}
