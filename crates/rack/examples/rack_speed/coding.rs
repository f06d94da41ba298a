//! CPU cost of a blob: encoding its stripes, computing checksums, and verifying them on read. One
//! thread, in CPU time.

use fulgurite_codes::small::SmallCode;
use fulgurite_rack::Fault;
use fulgurite_rack::blob::{BlobReader, BlobWriter, Expected, Located, ReadMode};
use fulgurite_rack::format::{Coding, FRAGMENT_BYTES, Header, fragment_sum};
use fulgurite_rack::stack::Sink;
use fulgurite_units::{BlobId, RackId, Seed};

use super::measure::thread_s;

/// Bytes of stripes, more than any CPU cache holds.
const COLD_BYTES: usize = 256 << 20;
const TRIES: usize = 3;
const PIECE: usize = 1 << 20;

/// Prints GB/s of blob bytes: encoding from memory and from cache, checksums, the whole write path
/// to a null sink, and the whole verified read path.
pub(crate) fn print() {
    let coding = Coding::PELICAN;
    let information = usize::from(coding.information());
    let code = SmallCode::new(information, usize::from(coding.redundancy())).unwrap();
    let stripe = code.shards() * FRAGMENT_BYTES;
    let mut bytes = vec![0; COLD_BYTES / stripe * stripe];
    Seed::new(1).stream().fill(&mut bytes);
    let blob_bytes = bytes.len() / code.shards() * information;
    let cold = best(blob_bytes, || bytes.chunks_exact_mut(stripe).for_each(|s| encode(&code, s)));
    let rounds = bytes.len() / stripe;
    let hot = best(blob_bytes, || (0..rounds).for_each(|_| encode(&code, &mut bytes[..stripe])));
    let blob = BlobId::from_bytes([2; 16]);
    let sums = best(bytes.len(), || {
        for fragment in bytes.chunks_exact(FRAGMENT_BYTES) {
            std::hint::black_box(fragment_sum(blob, 0, 0, fragment));
        }
    });
    let source = &bytes[..blob_bytes];
    let written = best(source.len(), || put(source, |_| Nowhere));
    let checked = checked(&source[..source.len() / 2]);
    println!(
        "{{\"encode_cold\":{cold:.3},\"encode_hot\":{hot:.3},\"sums\":{sums:.3},\
         \"written\":{written:.3},\"checked\":{checked:.3}}}"
    );
}

/// Reads a blob of these bytes from all of its stacks, in memory. Returns GB/s.
fn checked(source: &[u8]) -> f64 {
    let stacks = std::sync::Mutex::new(vec![Vec::new(); usize::from(Coding::PELICAN.stacks())]);
    put(source, |index| InMemory { index, stacks: &stacks });
    let stacks = stacks.into_inner().unwrap();
    best(source.len(), || {
        let located = stacks
            .iter()
            .map(|stack| Located { disk: "memory".to_owned(), source: Ok(stack.as_slice()) });
        let Header { rack, blob, coding, .. } = header();
        let expected = Expected { rack, blob, coding };
        let located = located.collect();
        let mut reader = BlobReader::open(expected, "group 0", ReadMode::All, located).unwrap();
        for stripe in 0..reader.stripes().count() {
            std::hint::black_box(reader.stripe(stripe).unwrap());
        }
    })
}

fn encode(code: &SmallCode, stripe: &mut [u8]) {
    let (data, redundancy) = stripe.split_at_mut(code.information() * FRAGMENT_BYTES);
    let data: Vec<&[u8]> = data.chunks(FRAGMENT_BYTES).collect();
    let mut redundancy: Vec<&mut [u8]> = redundancy.chunks_mut(FRAGMENT_BYTES).collect();
    code.encode(&data, &mut redundancy).unwrap();
}

fn put<S: Sink + Send>(source: &[u8], sink: impl Fn(u8) -> S) {
    let sinks = (0..Coding::PELICAN.stacks()).map(|index| (String::new(), Ok(sink(index))));
    let mut writer = BlobWriter::begin(header(), "group 0", sinks.collect()).unwrap();
    source.chunks(PIECE).for_each(|piece| writer.write(piece).unwrap());
    assert!(writer.finish(1).unwrap().lost.is_empty());
}

fn header() -> Header {
    let (rack, blob) = (RackId::from_bytes([1; 16]), BlobId::from_bytes([2; 16]));
    Header { rack, blob, coding: Coding::PELICAN, index: 0, entry: Vec::new() }
}

/// Returns GB/s for calls that process `bytes` each, the best of a few.
fn best(bytes: usize, mut act: impl FnMut()) -> f64 {
    let once = || {
        let begin = thread_s();
        act();
        thread_s() - begin
    };
    let least = std::iter::repeat_with(once).take(TRIES).fold(f64::INFINITY, f64::min);
    #[expect(clippy::cast_precision_loss, reason = "a figure of three digits")]
    let gigabytes = bytes as f64 / 1e9;
    gigabytes / least
}

struct Nowhere;

impl Sink for Nowhere {
    fn write_all(&mut self, _: &[u8]) -> Result<(), Fault> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

struct InMemory<'a> {
    index: u8,
    stacks: &'a std::sync::Mutex<Vec<Vec<u8>>>,
}

impl Sink for InMemory<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.stacks.lock().unwrap()[usize::from(self.index)].extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}
