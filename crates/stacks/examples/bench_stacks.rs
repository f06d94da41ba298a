//! How fast a blob is written to and read from 18 stacks, against as many plain files:
//! `cargo run --release -p fulgurite-stacks --example bench_stacks -- FOLDER [MiB]`.
//!
//! Three rounds of each, in turn; the best of them is said. What is read comes from memory, where
//! it was read to before: this is what coding and checking cost, and not what a disk does.

#![expect(clippy::unwrap_used, reason = "a measurement fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![expect(clippy::print_stdout, reason = "its result")]

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fulgurite_stacks::blob::{BlobReader, BlobWriter, Expected, How, Located};
use fulgurite_stacks::format::{Coding, Header};
use fulgurite_stacks::stack::Sink;
use fulgurite_units::{BlobId, RackId, Seed};

const ROUNDS: usize = 3;
const CHUNK: usize = 1 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let folder = PathBuf::from(arguments.get(1).map_or("/tmp", String::as_str));
    let mib: usize = arguments.get(2).map_or(1024, |mib| mib.parse().unwrap());
    let mut bytes = vec![0; mib << 20];
    Seed::new(1).stream().fill(&mut bytes);
    let mut best = [f64::INFINITY; 6];
    for _ in 0..ROUNDS {
        let written = timed(|| plain(&folder, &bytes));
        let stored = timed(|| put(&bytes, |index| Behind::new(&stack(&folder, index))));
        // All of it into memory.
        read_plain(&folder);
        get(&folder, How::All);
        let times = [
            written,
            stored,
            timed(|| read_plain(&folder)),
            timed(|| get(&folder, How::All)),
            timed(|| get(&folder, How::Enough)),
            timed(|| put(&bytes, |_| Nowhere)),
        ];
        best.iter_mut().zip(times).for_each(|(best, time)| *best = best.min(time));
    }
    let [plain, put, read, all, enough, coded] = best;
    let gib = f64::from(u32::try_from(mib).unwrap()) / 1024.0;
    println!("18 plain files, synced    {plain:.3} s");
    println!("put, 18 stacks, synced    {put:.3} s   {:.2} x", plain / put);
    println!("15 plain files read       {read:.3} s");
    println!("get, 18 read and checked  {all:.3} s   {:.2} x", read / all);
    println!("get, 15 read and checked  {enough:.3} s   {:.2} x", read / enough);
    println!("coded and summed          {coded:.3} s   {:.2} GiB/s of blob", gib / coded);
    for index in 0..18 {
        std::fs::remove_file(stack(&folder, index)).unwrap();
        std::fs::remove_file(folder.join(format!("plain-{index}"))).unwrap();
    }
}

/// A file as a rack writes it: its disk is sent what is there after a few MiB.
struct Behind {
    file: File,
    behind: usize,
}

impl Behind {
    fn new(path: &Path) -> Self {
        Self { file: File::create(path).unwrap(), behind: 0 }
    }
}

impl Sink for Behind {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), fulgurite_stacks::Fault> {
        self.behind += bytes.len();
        if self.behind >= 4 << 20 {
            self.behind = 0;
            rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        }
        Sink::write_all(&mut self.file, bytes)
    }

    fn sync(&mut self) -> Result<(), fulgurite_stacks::Fault> {
        Sink::sync(&mut self.file)
    }
}

struct Nowhere;

impl Sink for Nowhere {
    fn write_all(&mut self, _: &[u8]) -> Result<(), fulgurite_stacks::Fault> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), fulgurite_stacks::Fault> {
        Ok(())
    }
}

fn timed(act: impl FnOnce()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_secs_f64()
}

fn stack(folder: &Path, index: u8) -> PathBuf {
    folder.join(format!("stack-{index}"))
}

fn header() -> Header {
    let (rack, blob) = (RackId::from_bytes([1; 16]), BlobId::from_bytes([2; 16]));
    Header { rack, blob, coding: Coding::PELICAN, index: 0, entry: Vec::new() }
}

/// A fifth more than the blob, as 18 files written side by side.
fn plain(folder: &Path, bytes: &[u8]) {
    let name = |index: usize| folder.join(format!("plain-{index}"));
    let mut files: Vec<File> = (0..18).map(|index| File::create(name(index)).unwrap()).collect();
    for stripe in bytes.chunks(15 << 17) {
        for (file, piece) in files.iter_mut().zip(stripe.chunks(1 << 17).cycle()) {
            std::io::Write::write_all(file, piece).unwrap();
        }
    }
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(|| file.sync_all().unwrap());
        }
    });
}

fn put<S: Sink + Send>(bytes: &[u8], sink: impl Fn(u8) -> S) {
    let sinks = (0..18).map(|index| (format!("disk {index}"), Ok(sink(index))));
    let mut writer = BlobWriter::begin(header(), "group 0", sinks.collect()).unwrap();
    bytes.chunks(CHUNK).for_each(|chunk| writer.write(chunk).unwrap());
    assert!(writer.finish(1).unwrap().lost.is_empty());
}

fn read_plain(folder: &Path) {
    let mut buffer = vec![0; 1 << 17];
    let mut files: Vec<File> =
        (0..15).map(|index| File::open(folder.join(format!("plain-{index}"))).unwrap()).collect();
    let mut left = files.len();
    while left > 0 {
        for file in &mut files {
            left -= usize::from(file.read(&mut buffer).unwrap() == 0);
        }
    }
}

fn get(folder: &Path, how: How) {
    let located = (0..18).map(|index| Located {
        disk: format!("disk {index}"),
        source: Ok(File::open(stack(folder, index)).unwrap()),
    });
    let Header { rack, blob, coding, .. } = header();
    let expected = Expected { rack, blob, coding };
    let mut reader = BlobReader::open(expected, "group 0", how, located.collect()).unwrap();
    for stripe in 0..reader.stripes().count() {
        std::hint::black_box(reader.stripe(stripe).unwrap());
    }
}
