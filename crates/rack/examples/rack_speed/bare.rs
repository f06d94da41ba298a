//! The stacks of a blob in 18 files, without a rack around them: written and synced but not read
//! back, then read from 15 of them.

use std::fs::File;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fulgurite_rack::Fault;
use fulgurite_rack::blob::{BlobReader, BlobWriter, Expected, Located, ReadMode};
use fulgurite_rack::format::{Coding, Header, Stripes};
use fulgurite_rack::stack::Sink;
use fulgurite_units::{BlobId, ByteCount, RackId};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};

/// Bytes written to a file before writeback is started, as in a rack.
const BEHIND: usize = 4 << 20;

/// Writes and syncs the stacks.
pub(crate) fn write(folder: &Path, pieces: &[Bytes]) {
    let length = ByteCount::new(pieces.iter().map(|piece| piece.len() as u64).sum());
    let header_bytes = header().bytes() as u64;
    let bytes = Stripes::new(Coding::PELICAN, length).stack_bytes(header_bytes);
    let sink = |path: PathBuf| {
        let file = File::create(path).unwrap();
        // Contiguous on the disk, as in a rack: without this, reading takes three times as long.
        fallocate(&file, FallocateFlags::empty(), 0, bytes).unwrap();
        Behind { file, behind: 0 }
    };
    let sinks = paths(folder).map(|path| (path.display().to_string(), Ok(sink(path))));
    let mut writer = BlobWriter::begin(header(), "group 0", sinks.collect()).unwrap();
    pieces.iter().for_each(|piece| writer.write(piece).unwrap());
    assert!(writer.finish(1).unwrap().lost.is_empty());
}

/// Reads 15 of them with their checksums verified. Returns the number of bytes.
pub(crate) fn read(folder: &Path) -> usize {
    let open = |path: PathBuf| {
        let file = File::open(path).unwrap();
        fadvise(&file, 0, None, Advice::Sequential).unwrap();
        file
    };
    let located = paths(folder)
        .map(|path| Located { disk: path.display().to_string(), source: Ok(open(path)) });
    let Header { rack, blob, coding, .. } = header();
    let expected = Expected { rack, blob, coding };
    let located = located.collect();
    let mut reader = BlobReader::open(expected, "group 0", ReadMode::Enough, located).unwrap();
    (0..reader.stripes().count()).map(|stripe| reader.stripe(stripe).unwrap().len()).sum()
}

/// Returns the paths of the stacks.
pub(crate) fn paths(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let folder = folder.to_owned();
    (0..Coding::PELICAN.stacks()).map(move |index| folder.join(format!("stack-{index}")))
}

fn header() -> Header {
    let (rack, blob) = (RackId::from_bytes([1; 16]), BlobId::from_bytes([2; 16]));
    Header { rack, blob, coding: Coding::PELICAN, index: 0, entry: Vec::new() }
}

struct Behind {
    file: File,
    behind: usize,
}

impl Sink for Behind {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        Sink::write_all(&mut self.file, bytes)?;
        self.behind += bytes.len();
        if self.behind >= BEHIND {
            self.behind = 0;
            fadvise(&self.file, 0, None, Advice::DontNeed).unwrap();
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fault> {
        Sink::sync(&mut self.file)
    }
}
