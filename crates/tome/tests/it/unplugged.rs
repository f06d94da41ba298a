//! Tomes without their set: read offline, and recovered from the rest of their groups.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_tome::{Disk, Label, UnpluggedTome};
use fulgurite_tome_core::metadata::Object;
use fulgurite_tome_core::{Offset, TomeId};

use crate::shelf::{BLOCK, Shelf, layout, noise, pull, recovered, root, spinning_lease, tomes};

#[tokio::test]
async fn protected_objects_survive_two_lost_tomes_and_bad_blocks() {
    let shelf = Shelf::new();
    let folder = &shelf.folder;
    let set = shelf.init();
    let mut objects = BTreeMap::new();
    for number in 0..6 {
        let name = format!("object {number}");
        let tome = shelf.wait(set.put(&name, noise(&name, 3 * BLOCK + 1))).await.unwrap();
        shelf.wait(set.protected(&name)).await.unwrap();
        objects.insert(name, tome);
        shelf.settle(&set).await;
    }
    drop(set);
    let rows: BTreeMap<String, Object> = objects
        .iter()
        .map(|(name, tome)| {
            let mut unplugged = pull(folder, *tome);
            assert_eq!(unplugged.object(name).unwrap(), noise(name, 3 * BLOCK + 1), "read alone");
            (name.clone(), unplugged.metadata().object(name).unwrap().clone())
        })
        .collect();
    // The disk alone shows which block is where.
    let mut labels = 0;
    for tome in tomes() {
        let unplugged = pull(folder, tome);
        let mut disk = Disk::open(spinning_lease(folder, tome), unplugged.identity()).unwrap();
        for (region, known) in unplugged.metadata().regions() {
            for offset in (0..layout().region_blocks()).map(Offset::new) {
                let Some(physical_block) = known.physical_block(offset) else { continue };
                let (label, _) = disk.read(physical_block).unwrap().unwrap();
                assert_eq!(label, Label { region, offset, version: known.version(offset) });
                labels += 1;
            }
        }
    }
    assert!(labels > 50, "{labels}");
    // A bad block on each disk that has any: the label of its first physical block.
    for tome in tomes() {
        let path = root(folder, tome).join("blocks-00000");
        if let Ok(mut bytes) = std::fs::read(&path) {
            bytes[4096 + 30] ^= 1;
            std::fs::write(path, bytes).unwrap();
        }
    }
    let mut all: BTreeMap<TomeId, UnpluggedTome> =
        tomes().map(|tome| (tome, pull(folder, tome))).collect();
    for (name, tome) in &objects {
        for other in tomes().filter(|other| other != tome) {
            let lost = BTreeSet::from([*tome, other]);
            let bytes = recovered(&mut all, &lost, *tome, &rows[name]);
            assert_eq!(bytes, noise(name, 3 * BLOCK + 1), "{name} without {lost:?}");
        }
    }
}
