//! Tests blobs over in-memory stacks: every byte comes back while enough stacks are left, and
//! losses beyond that are reported by name.

mod file;
mod golden;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fulgurite_units::{BlobId, RackId};
use proptest::prelude::*;

use self::file::{File, noise};
use crate::blob::{BlobReader, BlobWriter, Expected, Located, ReadMode, rebuild};
use crate::format::{Coding, FRAGMENT_BYTES, Header};
use crate::stack::ReadAt;
use crate::{Fault, RackError, Result};

const GROUP: &str = "group 7";

fn coding() -> Coding {
    Coding::new(3, 2).unwrap()
}

fn header() -> Header {
    let (rack, blob) = (RackId::from_bytes([7; 16]), BlobId::from_bytes([9; 16]));
    Header { rack, blob, coding: coding(), index: 0, entry: b"entry".to_vec() }
}

fn expected() -> Expected {
    let Header { rack, blob, coding, .. } = header();
    Expected { rack, blob, coding }
}

fn disk(index: usize) -> String {
    format!("disk {}", 10 + index)
}

/// Returns the stacks of a blob, written in pieces of `piece` bytes.
fn write(header: &Header, bytes: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let files: Vec<File> = (0..header.coding.stacks()).map(|_| File::default()).collect();
    let sinks = files.iter().enumerate().map(|(index, file)| (disk(index), Ok(file.clone())));
    let mut writer = BlobWriter::begin(header.clone(), GROUP, sinks.collect()).unwrap();
    bytes.chunks(piece).for_each(|piece| writer.write(piece).unwrap());
    let written = writer.finish(5).unwrap();
    assert_eq!((written.length.get(), &written.lost[..]), (bytes.len() as u64, &[][..]));
    files.iter().map(File::synced).collect()
}

/// Opens these stacks; those without bytes are missing.
fn open(stacks: &[Option<Vec<u8>>], mode: ReadMode) -> Result<BlobReader<&[u8]>> {
    let located = stacks.iter().enumerate().map(|(index, stack)| Located {
        disk: disk(index),
        source: stack.as_deref().ok_or(Fault::Missing),
    });
    BlobReader::open(expected(), GROUP, mode, located.collect())
}

fn read(stacks: &[Option<Vec<u8>>], mode: ReadMode) -> Result<Vec<u8>> {
    let mut reader = open(stacks, mode)?;
    let mut bytes = Vec::new();
    for stripe in 0..reader.stripes().count() {
        bytes.extend_from_slice(reader.stripe(stripe)?);
    }
    Ok(bytes)
}

fn all(stacks: Vec<Vec<u8>>) -> Vec<Option<Vec<u8>>> {
    stacks.into_iter().map(Some).collect()
}

/// Lengths at and next to the boundaries of stripes and fragments.
fn lengths() -> impl Strategy<Value = usize> {
    let whole = 3 * FRAGMENT_BYTES;
    prop_oneof![
        Just(0),
        1..10_usize,
        0..whole,
        (1..4_usize, -3..4_isize)
            .prop_map(move |(stripes, off)| (stripes * whole).saturating_add_signed(off)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_k_stacks_give_the_blob_and_every_lost_stack(
        length in lengths(), seed in any::<u64>(), piece in 1_usize..700_000,
        lost in prop::sample::subsequence(vec![0, 1, 2, 3, 4], 0..=2),
    ) {
        let bytes = noise(seed, length);
        let whole = all(write(&header(), &bytes, piece));
        let mut left = whole.clone();
        lost.iter().for_each(|&index| left[index] = None);
        prop_assert!(read(&left, ReadMode::All).unwrap() == bytes);
        prop_assert!(read(&left, ReadMode::Enough).unwrap() == bytes);
        let mut reader = open(&left, ReadMode::Enough).unwrap();
        let files: Vec<File> = lost.iter().map(|_| File::default()).collect();
        let wanted = lost.iter().zip(&files).map(|(&index, file)| {
            (u8::try_from(index).unwrap(), disk(index), file.clone())
        });
        prop_assert_eq!(rebuild(&mut reader, wanted.collect()).unwrap(), vec![]);
        for (&index, file) in lost.iter().zip(&files) {
            prop_assert!(Some(file.synced()) == whole[index], "stack {} rebuilt", index);
        }
    }

    #[test]
    fn any_flipped_bit_is_detected_and_repaired(
        length in 1_usize..900_000, index in 0_usize..5, at in any::<prop::sample::Index>(),
        bit in 0..8,
    ) {
        let bytes = noise(3, length);
        let mut stacks = all(write(&header(), &bytes, 1 << 20));
        let stack = stacks[index].as_mut().unwrap();
        let at = at.index(stack.len());
        stack[at] ^= 1_u8 << bit;
        let mut reader = open(&stacks, ReadMode::All).unwrap();
        let mut found = Vec::new();
        for stripe in 0..reader.stripes().count() {
            found.extend_from_slice(reader.stripe(stripe).unwrap());
        }
        prop_assert!(found == bytes);
        let lost = reader.lost();
        prop_assert_eq!(lost.len(), 1, "the flipped bit at {} is not detected", at);
        prop_assert_eq!(usize::from(lost[0].index), index);
    }
}

#[test]
fn too_few_stacks_error_names_blob_group_and_disks() {
    let mut stacks = all(write(&header(), &noise(1, 1_000_000), 4096));
    stacks[0] = None;
    stacks[2].as_mut().unwrap().truncate(100_000);
    stacks[4].as_mut().unwrap().pop();
    let error = read(&stacks, ReadMode::All).unwrap_err();
    assert_eq!(
        error.to_string(),
        "blob 09090909-0909-0909-0909-090909090909 of group 7 has 2 usable stacks, but needs 3: \
         stack 0 on disk 10: missing; stack 2 on disk 12: never finished, or without its end; \
         stack 4 on disk 14: never finished, or without its end"
    );
    assert_eq!(error.kind(), fulgurite_units::ErrorKind::Corrupt);
}

#[test]
fn stripe_with_too_few_fragments_is_an_error() {
    let bytes = noise(2, 3 * FRAGMENT_BYTES * 2);
    let mut stacks = all(write(&header(), &bytes, 1 << 20));
    for stack in stacks.iter_mut().take(3) {
        stack.as_mut().unwrap()[4096 + FRAGMENT_BYTES + 8 + 77] ^= 1;
    }
    let mut reader = open(&stacks, ReadMode::Enough).unwrap();
    assert!(reader.stripe(0).unwrap() == &bytes[..3 * FRAGMENT_BYTES]);
    let error = reader.stripe(1).unwrap_err();
    assert!(error.to_string().contains("stack 2 on disk 12: damaged: the fragment of stripe 1"));
}

#[test]
fn misplaced_stack_is_identified() {
    let bytes = noise(4, 200_000);
    let others = [
        (
            Header { rack: RackId::from_bytes([1; 16]), ..header() },
            "in its place is a stack of rack ",
        ),
        (
            Header { blob: BlobId::from_bytes([1; 16]), ..header() },
            "in its place is a stack of blob ",
        ),
        (
            Header { coding: Coding::new(3, 1).unwrap(), ..header() },
            "in its place is a stack of a blob in 3+1 stacks",
        ),
    ];
    for (other, named) in others {
        let mut stacks = all(write(&header(), &bytes, 1 << 20));
        stacks[1] = write(&other, &bytes, 1 << 20).into_iter().nth(1);
        let reader = open(&stacks, ReadMode::All).unwrap();
        let lost = reader.lost();
        assert!(lost.len() == 1 && lost[0].fault.is_foreign(), "{lost:?}");
        assert!(lost[0].to_string().contains(named), "{}", lost[0]);
        assert!(read(&stacks, ReadMode::All).unwrap() == bytes);
    }
    let mut stacks = all(write(&header(), &bytes, 1 << 20));
    stacks.swap(1, 2);
    let faults: Vec<String> =
        open(&stacks, ReadMode::All).unwrap().lost().iter().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "stack 1 on disk 11: in its place is stack 2 of the blob",
            "stack 2 on disk 12: in its place is stack 1 of the blob"
        ]
    );
}

#[test]
fn write_fails_only_beyond_its_redundancy() {
    let bytes = noise(5, 1_500_000);
    let attempt = |failing: &[usize]| {
        let file = |index: usize| match failing.contains(&index) {
            true => File::failing_after(200_000 + 1000 * index),
            false => File::default(),
        };
        let files: Vec<File> = (0..5).map(file).collect();
        let sinks = files.iter().enumerate().map(|(index, file)| (disk(index), Ok(file.clone())));
        let mut writer = BlobWriter::begin(header(), GROUP, sinks.collect()).unwrap();
        let done = bytes.chunks(50_000).try_for_each(|piece| writer.write(piece));
        done.and_then(|()| writer.finish(5)).map(|written| (written, files))
    };
    let (written, files) = attempt(&[1, 3]).unwrap();
    let lost: Vec<u8> = written.lost.iter().map(|lost| lost.index).collect();
    assert_eq!(lost, [1, 3]);
    assert!(written.lost[0].to_string().contains("no storage space"), "{}", written.lost[0]);
    let stacks = all(files.iter().map(File::synced).collect());
    assert!(read(&stacks, ReadMode::All).unwrap() == bytes, "incomplete stacks are not used");
    let error = attempt(&[0, 1, 3]).unwrap_err();
    assert!(matches!(error, RackError::TooFewStacks { have: 2, need: 3, .. }), "{error}");
}

#[test]
fn failed_sync_loses_the_stack() {
    let files: Vec<File> = (0..5).map(|_| File::default()).collect();
    files[4].fail_sync();
    let sinks = files.iter().enumerate().map(|(index, file)| (disk(index), Ok(file.clone())));
    let mut writer = BlobWriter::begin(header(), GROUP, sinks.collect()).unwrap();
    writer.write(b"some bytes").unwrap();
    let written = writer.finish(1).unwrap();
    assert_eq!(written.lost.len(), 1);
    assert_eq!(written.lost[0].index, 4);
}

#[test]
fn file_names_have_one_spelling() {
    use crate::stack::{file_name, parse_file_name};
    let blob = BlobId::from_bytes([0xAB; 16]);
    let name = file_name(blob, 7);
    assert_eq!(name, "abababab-abab-abab-abab-abababababab.007.stack");
    assert_eq!(parse_file_name(&name), Some((blob, 7)));
    for other in [
        "abababab-abab-abab-abab-abababababab.7.stack",
        "ABababab-abab-abab-abab-abababababab.007.stack",
        "abababab-abab-abab-abab-abababababab.007.stack.old",
        "fulgurite-disk.json",
    ] {
        assert_eq!(parse_file_name(other), None, "{other}");
    }
}

/// A stack whose prefetch blocks.
struct Slow {
    bytes: Vec<u8>,
    /// How far it has been prefetched.
    brought: Mutex<u64>,
    gate: Arc<Gate>,
}

/// Counts the disks that are read in parallel.
#[derive(Default)]
struct Gate {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Gate {
    /// Blocks until `all` disks are being read, or gives up after many polls.
    fn pass(&self, all: usize) {
        let now = self.now.fetch_add(1, Ordering::AcqRel) + 1;
        self.most.fetch_max(now, Ordering::AcqRel);
        for _ in 0..100_000 {
            if self.most.load(Ordering::Acquire) == all {
                break;
            }
            std::thread::yield_now();
        }
        self.now.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ReadAt for Slow {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault> {
        (&self.bytes[..]).read_exact_at(buffer, offset)
    }

    fn bytes(&self) -> Result<u64, Fault> {
        (&self.bytes[..]).bytes()
    }

    fn will_need(&self, offset: u64, bytes: u64) {
        self.gate.pass(5);
        *self.brought.lock().unwrap() = offset + bytes;
    }

    fn waits_for(&self, offset: u64, bytes: u64) -> bool {
        *self.brought.lock().unwrap() < offset + bytes
    }
}

#[test]
fn blocking_disks_are_read_in_parallel() {
    let bytes = noise(5, 3 * FRAGMENT_BYTES + 5_000);
    let gate = Arc::<Gate>::default();
    let stacks = write(&header(), &bytes, 1 << 20).into_iter().enumerate();
    let located = stacks.map(|(index, bytes)| {
        let slow = Slow { bytes, brought: Mutex::default(), gate: Arc::clone(&gate) };
        Located { disk: disk(index), source: Ok(slow) }
    });
    let mut reader =
        BlobReader::open(expected(), GROUP, ReadMode::All, located.collect::<Vec<_>>()).unwrap();
    assert_eq!(gate.most.swap(0, Ordering::AcqRel), 5, "the ends of all stacks in parallel");
    for stripe in 0..2 {
        assert!(reader.stripe(stripe).is_ok());
        assert_eq!(
            gate.most.swap(0, Ordering::AcqRel),
            5,
            "all fragments of stripe {stripe} in parallel"
        );
    }
}
