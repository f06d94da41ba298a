//! As many bytes in plain files: what a disk does without tomes.

use std::fs::File;
use std::io::{IoSliceMut, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::Advice;
use rustix::io::{ReadWriteFlags, preadv2};

/// Files, as many as there are tomes.
const FILES: usize = 16;
/// Bytes that are written to one file before the next: a block.
const WRITTEN: usize = 1 << 17;
/// Bytes that are read at once, one file after the other.
const READ: usize = 1 << 20;

/// Writes so many bytes to files side by side, and syncs them all at once.
pub(crate) fn write(folder: &Path, noise: &[u8], bytes: u64) {
    let mut files: Vec<File> = paths(folder).map(|path| File::create(path).unwrap()).collect();
    let all = usize::try_from(bytes.div_ceil(WRITTEN as u64)).unwrap();
    for (at, piece) in noise.chunks_exact(WRITTEN).cycle().take(all).enumerate() {
        files[at % FILES].write_all(piece).unwrap();
    }
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(|| file.sync_all().unwrap());
        }
    });
}

/// Reads them, one after the other; says their bytes.
pub(crate) fn read(folder: &Path) -> usize {
    let mut buffer = vec![0; READ];
    let mut count = 0;
    for path in paths(folder) {
        let mut file = File::open(path).unwrap();
        while let now @ 1.. = file.read(&mut buffer).unwrap() {
            count += now;
        }
    }
    count
}

/// The files.
pub(crate) fn paths(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let folder = folder.to_owned();
    (0..FILES).map(move |index| folder.join(format!("plain-{index}")))
}

/// Has the system forget what it has of files in memory. They are synced. Says in percent what it
/// has all the same, by a look at a byte of each MiB.
pub(crate) fn forget(paths: impl IntoIterator<Item = PathBuf>) -> usize {
    let (mut looks, mut there) = (0, 0);
    for path in paths {
        let file = File::open(path).unwrap();
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        for at in (0..file.metadata().unwrap().len()).step_by(READ) {
            let mut byte = [0];
            let into = &mut [IoSliceMut::new(&mut byte)];
            looks += 1;
            // Refused when it would have to ask the disk.
            there += usize::from(preadv2(&file, into, at, ReadWriteFlags::NOWAIT).is_ok());
        }
    }
    100 * there / looks.max(1)
}

/// Has the system take a file into memory.
pub(crate) fn warm(path: &Path) {
    std::io::copy(&mut File::open(path).unwrap(), &mut std::io::sink()).unwrap();
}
