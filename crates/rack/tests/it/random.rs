//! Seeded random faults: of each blob up to as many stacks as may be lost, damaged in every way a
//! file can be; and a random schedule of puts, gets, deletes and restarts against a model.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_rack::{RackOptions, RackStore};
use fulgurite_rack_core::Policy;
use fulgurite_units::{Duration, RandomStream, Seed};
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt as _};

use crate::shelf::{Shelf, noise, shape};
use crate::spin_up::needed;

fn index(stream: &mut RandomStream, below: usize) -> usize {
    usize::try_from(stream.below(below as u64)).unwrap()
}

fn key(number: usize) -> Path {
    Path::from(format!("bodies/{number}"))
}

/// Draws lengths below and above what is inlined in the index, and from one to several stripes.
fn length(stream: &mut RandomStream) -> usize {
    let most = [4_096, 5_000, 60_000, 655_360, 1_400_000][index(stream, 5)];
    1 + index(stream, most)
}

/// Ways to damage a file; the last replaces it by another stack.
const KINDS: usize = 7;

/// Damages a file in one of `kinds` ways. Returns which.
fn damage(
    stream: &mut RandomStream,
    kinds: usize,
    file: &std::path::Path,
    other: &std::path::Path,
) -> usize {
    let whole = std::fs::read(file).unwrap();
    let kind = index(stream, kinds);
    match kind {
        0 => std::fs::remove_file(file).unwrap(),
        1 => std::fs::write(file, b"").unwrap(),
        2 => std::fs::write(file, &whole[..index(stream, whole.len())]).unwrap(),
        3 => {
            let mut flipped = whole;
            let at = index(stream, flipped.len());
            flipped[at] ^= 1 << stream.below(8);
            std::fs::write(file, flipped).unwrap();
        }
        4 => std::fs::write(file, vec![0; whole.len()]).unwrap(),
        5 => {
            let mut longer = whole;
            longer.push(0);
            std::fs::write(file, longer).unwrap();
        }
        // A stack of another blob, or another stack of the same one.
        _ => drop(std::fs::copy(other, file).unwrap()),
    }
    kind
}

#[tokio::test]
async fn any_damage_within_redundancy_loses_no_byte() {
    let redundancy = usize::try_from(shape().code().redundancy).unwrap();
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let mut stream = Seed::new(17).stream();
    let mut bytes = BTreeMap::new();
    for number in 0..6 {
        let body = noise(number as u64, 5_000 + length(&mut stream));
        rack.put(&key(number), body.clone().into()).await.unwrap();
        bytes.insert(number, body);
    }
    let mut swapped = BTreeSet::new();
    for round in 0..12 {
        let mut blobs: BTreeMap<String, Vec<std::path::PathBuf>> = BTreeMap::new();
        for (_, file) in shelf.stacks() {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            blobs.entry(name[..36].to_owned()).or_default().push(file);
        }
        let all: Vec<std::path::PathBuf> = blobs.values().flatten().cloned().collect();
        for (blob, files) in &mut blobs {
            // Another's stack is not overwritten, and a group has one disk more than a blob has
            // stacks. So this may happen to a blob once, and its stack is rebuilt on the spare
            // disk.
            let mut kinds = KINDS - usize::from(swapped.contains(blob));
            for _ in 0..=index(&mut stream, redundancy) {
                let file = files.remove(index(&mut stream, files.len()));
                let other = &all[index(&mut stream, all.len())];
                if *other != file
                    && other.exists()
                    && damage(&mut stream, kinds, &file, other) == KINDS - 1
                {
                    kinds = KINDS - 1;
                    swapped.insert(blob.clone());
                }
            }
        }
        // In turn a read comes first, or the verification.
        if round % 2 == 0 {
            for (&number, body) in &bytes {
                let found = rack.get(&key(number)).await.unwrap().bytes().await.unwrap();
                assert!(found == *body, "round {round}, blob {number}");
            }
        }
        let report = rack.scrub().await.unwrap();
        assert_eq!(report.problems, [] as [&str; 0], "round {round}");
        let report = rack.scrub().await.unwrap();
        assert_eq!((report.lost, report.problems.len()), (0, 0), "round {round}");
        for (&number, body) in &bytes {
            let found = rack.get(&key(number)).await.unwrap().bytes().await.unwrap();
            assert!(found == *body, "round {round}, blob {number}");
        }
    }
}

async fn found(rack: &RackStore, number: usize) -> Option<Vec<u8>> {
    match rack.get(&key(number)).await {
        Ok(found) => Some(found.bytes().await.unwrap().to_vec()),
        Err(Error::NotFound { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn random_schedule_matches_a_model() {
    for seed in 0..3 {
        let shelf = Shelf::new();
        let mut rack = shelf.init().await;
        let mut stream = Seed::new(seed).stream();
        let mut model: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for step in 0..50_u64 {
            let number = index(&mut stream, 5);
            match index(&mut stream, 10) {
                0..=3 => {
                    let body = noise(1000 * seed + step, length(&mut stream));
                    rack.put(&key(number), body.clone().into()).await.unwrap();
                    model.insert(number, body);
                }
                4 | 5 => {
                    rack.delete(&key(number)).await.unwrap();
                    model.remove(&number);
                }
                6 => {
                    rack.stop();
                    drop(rack);
                    // The policy varies between starts, to cover reads that spin up few disks.
                    let policy = match index(&mut stream, 2) {
                        0 => Policy::default(),
                        _ => needed(0),
                    };
                    rack = RackStore::open(RackOptions { policy, ..shelf.options() }).unwrap();
                }
                7 => shelf.clock.advance(Duration::from_secs(10 * 86_400)),
                _ => {
                    let expected = model.get(&number);
                    assert!(found(&rack, number).await.as_ref() == expected, "{seed}, step {step}");
                }
            }
        }
        for number in 0..5 {
            assert!(found(&rack, number).await.as_ref() == model.get(&number), "seed {seed}");
        }
        let report = rack.scrub().await.unwrap();
        assert_eq!((report.lost, report.problems.len()), (0, 0), "seed {seed}");
        // Every group was garbage-collected: what is left is what the model has.
        let blobs = model.values().filter(|body| body.len() > 4096).count();
        let width = usize::try_from(shape().code().width()).unwrap();
        assert_eq!(shelf.stacks().len(), blobs * width, "seed {seed}");
    }
}
