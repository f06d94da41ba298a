//! The same bytes in plain files: what a disk does without coding, sums and an index.

use std::fs::File;
use std::io::{IoSliceMut, Read as _, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustix::fs::Advice;
use rustix::io::{ReadWriteFlags, preadv2};

/// Files of a blob with its redundancy, and those of them that are enough.
pub(crate) const FILES: usize = 18;
const ENOUGH: usize = 15;
/// Bytes that are written to one file before the next, as long as a fragment.
const WRITTEN: usize = 1 << 17;
/// Bytes that are read at once, one file after the other.
const READ: usize = 1 << 20;

/// Writes a fifth more than `pieces` to 18 files side by side, and syncs them all at once.
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

/// Reads 15 of them, one after the other; says their bytes.
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
