//! The same bytes in plain files: what the disk does without coding, checksums and an index.

use std::fs::File;
use std::io::{IoSliceMut, Read as _, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustix::fs::Advice;
use rustix::io::{ReadWriteFlags, preadv2};

/// Files of a blob including redundancy, and how many of them are enough to read it.
pub(crate) const FILES: usize = 18;
const ENOUGH: usize = 15;
/// Bytes written to one file before the next, the length of a fragment.
const WRITTEN: usize = 1 << 17;
/// Bytes per read call; files are read one after the other.
const READ: usize = 1 << 20;

/// Writes a fifth more than `pieces` to 18 interleaved files, and syncs them all in parallel.
pub(crate) fn write(folder: &Path, pieces: &[Bytes]) {
    let mut files: Vec<File> = paths(folder).map(|path| File::create(path).unwrap()).collect();
    let fragments = pieces.iter().flat_map(|piece| piece.chunks(WRITTEN));
    let all = fragments.clone().count();
    let rest = all.div_ceil(ENOUGH) * (FILES - ENOUGH);
    for (at, fragment) in fragments.clone().chain(fragments.take(rest)).enumerate() {
        files[at % FILES].write_all(fragment).unwrap();
    }
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(|| file.sync_all().unwrap());
        }
    });
}

/// Reads 15 of them, one after the other. Returns the number of bytes.
pub(crate) fn read(folder: &Path) -> usize {
    let mut buffer = vec![0; READ];
    let mut count = 0;
    for path in paths(folder).take(ENOUGH) {
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

/// Drops synced files from the page cache. Returns the percentage still cached, sampled at one byte
/// per MiB.
pub(crate) fn forget(paths: impl IntoIterator<Item = PathBuf>) -> usize {
    let (mut polls, mut there) = (0, 0);
    for path in paths {
        let file = File::open(path).unwrap();
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        for at in (0..file.metadata().unwrap().len()).step_by(READ) {
            let mut byte = [0];
            let into = &mut [IoSliceMut::new(&mut byte)];
            polls += 1;
            // Fails if it would have to read the disk.
            there += usize::from(preadv2(&file, into, at, ReadWriteFlags::NOWAIT).is_ok());
        }
    }
    100 * there / polls.max(1)
}
