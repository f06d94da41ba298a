//! A lost metadata store is rebuilt from its disk and from what others know: every acknowledged
//! object is read, every group agrees, and stale blocks on the disk are not used.

use std::fs;
use std::path::{Path, PathBuf};

use fulgurite_codes::{crc32c, signature};
use fulgurite_tome::{RebuiltTome, TomeSet};
use fulgurite_tome_core::TomeId;
use fulgurite_units::ErrorKind;

use crate::shelf::{BLOCK, Shelf, lose, metadata, noise, pull, root, tomes};

/// Bytes before each block.
const LABEL: usize = 512;
/// Bytes before the first slot of a file.
const HEADER: usize = 4096;
/// Blocks of a file.
const SLOTS: usize = 18;

fn content(name: &str) -> Vec<u8> {
    noise(name, 2 * BLOCK + name.len())
}

fn names(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|number| format!("object {number:02}")).collect()
}

fn close(set: TomeSet) {
    set.stop();
    drop(set);
}

async fn put(shelf: &Shelf, set: &TomeSet, names: &[String]) {
    for name in names {
        shelf.wait(set.put(name, content(name))).await.unwrap();
    }
}

/// Returns a closed set with protected objects and some that were removed.
async fn filled(count: u32) -> (Shelf, Vec<String>) {
    let shelf = Shelf::new();
    let set = shelf.init();
    let mut all = names(0..count);
    put(&shelf, &set, &all).await;
    for name in &all {
        shelf.wait(set.protected(name)).await.unwrap();
    }
    shelf.wait(set.delete("object 03")).await.unwrap();
    all.retain(|name| name != "object 03");
    shelf.settle(&set).await;
    close(set);
    (shelf, all)
}

/// Runs the inventory of a lost tome's disk.
async fn inventory(shelf: &Shelf, set: &TomeSet, tome: TomeId) {
    set.inventory(tome).unwrap();
    let whole = async {
        loop {
            let inventory_progress = set.inventory_progress(tome).unwrap();
            assert_eq!(inventory_progress.failure, None);
            if inventory_progress.is_whole() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    shelf.wait(whole).await;
}

/// Rebuilds the metadata store of a tome, and opens the set with it.
async fn rebuilt(shelf: &Shelf, tome: TomeId) -> (TomeSet, RebuiltTome) {
    let set = shelf.open();
    let reasons = set.status().await.reasons;
    let expected = format!("tome {tome}: given up: ");
    assert!(reasons.iter().any(|why| why.starts_with(&expected)), "{reasons:?}");
    inventory(shelf, &set, tome).await;
    let reasons = set.status().await.reasons;
    assert!(reasons.iter().any(|why| why.contains("was read whole")), "{reasons:?}");
    close(set);
    let set = shelf.open();
    let [report] = set.rebuilt() else { panic!("{:?}", set.status().await.reasons) };
    let report = report.clone();
    (set, report)
}

/// Checks that the set is healthy and protects new objects.
async fn whole(shelf: &Shelf, set: TomeSet, names: &[String], context: &str) {
    for name in names {
        let got = shelf.wait(set.get(name)).await;
        assert_eq!(got.unwrap(), content(name), "{context}: {name}");
        shelf.wait(set.protected(name)).await.unwrap();
    }
    assert!(set.list().iter().eq(names), "{context}: exactly these");
    shelf.settle(&set).await;
    for tome in tomes() {
        // Missing blocks are rebuilt.
        shelf.wait(set.scrub(tome)).await.unwrap();
    }
    shelf.settle(&set).await;
    agree(&set, context).await;
    let more = vec!["then".to_owned()];
    put(shelf, &set, &more).await;
    shelf.wait(set.protected("then")).await.unwrap();
    shelf.settle(&set).await;
    agree(&set, context).await;
    close(set);
    // An unrecoverable segment is reported until then, though its group has rebuilt it.
    let set = shelf.open();
    let status = set.status().await;
    assert!(status.is_well(), "{context}: {:?}", status.reasons);
    close(set);
}

async fn agree(set: &TomeSet, context: &str) {
    let mut groups = 0;
    let check = |checked: fulgurite_tome::GroupChecked| {
        assert_eq!(checked.failure, None, "{context}");
        assert_eq!(checked.findings, [], "{context}: {checked:?}");
        groups += 1;
    };
    set.verify(check).await.unwrap();
    assert!(groups > 0);
}

/// Recovers each object without its own tome and one more, so its parities must be right.
async fn without_two(shelf: &Shelf, names: &[String], also: TomeId) {
    for name in &names[..2] {
        let set = shelf.open();
        let own = set.tome_of(name).unwrap();
        close(set);
        let aside = tempfile::tempdir().unwrap();
        copy(&shelf.folder, &aside.path().join("all"));
        lose(&shelf.folder, own);
        if own != also {
            lose(&shelf.folder, also);
        }
        let set = shelf.open();
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name), "{name}");
        close(set);
        fs::remove_dir_all(&shelf.folder).unwrap();
        copy(&aside.path().join("all"), &shelf.folder);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Returns the largest file of a folder.
fn largest(folder: &Path) -> PathBuf {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let all = entries.map(|path| if path.is_dir() { largest(&path) } else { path });
    let length = |path: &PathBuf| fs::metadata(path).map_or(0, |file| file.len());
    all.max_by_key(length).unwrap_or_default()
}

#[tokio::test]
async fn lost_metadata_store_is_rebuilt_from_its_disk() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        ("missing", |folder| fs::remove_dir_all(folder).unwrap()),
        ("empty", |folder| {
            fs::remove_dir_all(folder).unwrap();
            fs::create_dir(folder).unwrap();
        }),
        ("cut", |folder| {
            let path = largest(&folder.join("awake"));
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
            fs::remove_file(folder.join("awake/version.hint")).ok();
            fs::write(folder.join("awake/0.jnl"), b"cut").unwrap();
        }),
    ];
    for (number, (what, damage)) in (0..).zip(damages) {
        let (shelf, names) = filled(12).await;
        let tome = TomeId::new(number);
        damage(&metadata(&shelf.folder, tome));
        let set = shelf.open();
        if set.status().await.is_well() {
            // The store tolerates that.
            close(set);
            continue;
        }
        // Its objects are read meanwhile, from their groups.
        for name in &names {
            assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name), "{what}: {name}");
        }
        shelf.settle(&set).await;
        close(set);
        let (set, report) = rebuilt(&shelf, tome).await;
        let expected = RebuiltTome { objects: report.objects, ..nothing_lost(tome) };
        assert_eq!(report, expected, "{what}: all of it was on the disk");
        whole(&shelf, set, &names, what).await;
        without_two(&shelf, &names, tome).await;
    }
}

fn nothing_lost(tome: TomeId) -> RebuiltTome {
    RebuiltTome { tome, objects: 0, lost: Vec::new(), bad: 0, differing: Vec::new() }
}

#[tokio::test]
async fn in_flight_puts_survive_loss_of_a_metadata_store() {
    // The tome that wrote, and each with parity of it, is lost at several moments.
    for moment in 0..6 {
        let shelf = Shelf::new();
        let set = shelf.init();
        let mut all = names(0..6);
        put(&shelf, &set, &all).await;
        for name in &all {
            shelf.wait(set.protected(name)).await.unwrap();
        }
        shelf.settle(&set).await;
        let more = names(6..10);
        put(&shelf, &set, &more).await;
        for _ in 0..2 * moment {
            tokio::time::sleep(std::time::Duration::from_millis(4)).await;
            shelf.clock.advance(fulgurite_units::Duration::from_secs(20));
        }
        all.extend(more);
        let writer = set.tome_of(&all[9]).unwrap();
        close(set);
        let lost = TomeId::new((writer.get() + moment) % 8);
        fs::remove_dir_all(metadata(&shelf.folder, lost)).unwrap();
        let (set, report) = rebuilt(&shelf, lost).await;
        let context = format!("tome {lost} after {moment}, of {writer}");
        assert_eq!(report.lost, [] as [&str; 0], "{context}");
        assert_eq!(report.differing, [], "{context}");
        whole(&shelf, set, &all, &context).await;
    }
}

/// Writes an arbitrary block with a label that is valid for its place.
fn forge(
    file: &(usize, PathBuf),
    physical_block: u32,
    label_fields: (u32, u32, u32),
    block: &[u8],
) {
    let (number, path) = file;
    let (region, offset, version) = label_fields;
    let mut bytes = fs::read(path).unwrap();
    bytes.resize(HEADER + SLOTS * (LABEL + BLOCK), 0);
    let at = |slot: usize| HEADER + slot * (LABEL + BLOCK);
    // Any label of the file has the owner's fields.
    let mut labels = (0..SLOTS).map(|slot| &bytes[at(slot)..at(slot) + LABEL]);
    let mut label = labels.find(|label| label.starts_with(b"FULGTOMB")).unwrap().to_vec();
    for (place, value) in [(28, physical_block), (32, region), (36, offset), (40, version)] {
        label[place..place + 4].copy_from_slice(&value.to_le_bytes());
    }
    label[56..64].copy_from_slice(&signature(block).0);
    let sum = crc32c(&label[..LABEL - 4]);
    label[LABEL - 4..].copy_from_slice(&sum.to_le_bytes());
    let at = at(physical_block as usize - number * SLOTS);
    bytes[at..at + LABEL].copy_from_slice(&label);
    bytes[at + LABEL..at + LABEL + BLOCK].copy_from_slice(block);
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn stale_or_swapped_blocks_are_not_used() {
    let (shelf, names) = filled(12).await;
    let set = shelf.open();
    let tome = set.tome_of(&names[0]).unwrap();
    close(set);
    let mut unplugged = pull(&shelf.folder, tome);
    let object = unplugged.metadata().object(&names[0]).unwrap().clone();
    assert_eq!(unplugged.object(&names[0]).unwrap(), content(&names[0]));
    let physical_blocks: Vec<u32> = object
        .blocks
        .iter()
        .map(|(region, offset)| {
            unplugged.metadata().region(*region).unwrap().physical_block(*offset).unwrap().get()
        })
        .collect();
    let used: Vec<u32> = unplugged
        .metadata()
        .regions()
        .flat_map(|(_, region)| region.physical_blocks())
        .map(|block| block.get())
        .collect();
    drop(unplugged);
    // A block of a later version in a free physical block: an uncommitted write.
    let file_of = |block: u32| {
        let number = block as usize / SLOTS;
        (number, root(&shelf.folder, tome).join(format!("blocks-{number:05}")))
    };
    let is_free = |block: &u32| !used.contains(block) && file_of(*block).1.exists();
    let free = (0..).find(is_free).unwrap();
    let (region, offset) = object.blocks[0];
    let fields = (region.get(), offset.get(), 1_000_000);
    forge(&file_of(free), free, fields, &noise("stale", BLOCK));
    // And the second block in place of the third one, with a label that claims to be that.
    let (region, offset) = object.blocks[2];
    let fields = (region.get(), offset.get(), 2_000_000);
    forge(
        &file_of(physical_blocks[2]),
        physical_blocks[2],
        fields,
        &content(&names[0])[BLOCK..2 * BLOCK],
    );
    fs::remove_dir_all(metadata(&shelf.folder, tome)).unwrap();
    let (set, report) = rebuilt(&shelf, tome).await;
    assert_eq!((report.bad, report.lost.len(), report.differing.len()), (1, 0, 0), "{report:?}");
    whole(&shelf, set, &names, "forged").await;
}

#[tokio::test]
async fn unrecoverable_object_is_reported_by_name() {
    let shelf = Shelf::new();
    let set = shelf.init();
    // No parity receives what is put.
    tomes().for_each(|tome| shelf.faults.inject(tome, fulgurite_tome::InjectedFault::Send));
    let all = names(0..2);
    put(&shelf, &set, &all).await;
    let tome = set.tome_of(&all[0]).unwrap();
    assert_eq!(set.tome_of(&all[1]).unwrap(), tome, "a spinning tome is preferred");
    close(set);
    tomes().for_each(|tome| shelf.faults.mend(tome));
    let unplugged = pull(&shelf.folder, tome);
    let object = unplugged.metadata().object(&all[0]).unwrap().clone();
    let physical_blocks: Vec<u32> = object
        .blocks
        .iter()
        .map(|(region, offset)| {
            unplugged.metadata().region(*region).unwrap().physical_block(*offset).unwrap().get()
        })
        .collect();
    drop(unplugged);
    for block in &physical_blocks {
        let number = *block as usize / SLOTS;
        let path = root(&shelf.folder, tome).join(format!("blocks-{number:05}"));
        let mut file = fs::read(&path).unwrap();
        file[HEADER + (*block as usize % SLOTS) * (LABEL + BLOCK) + LABEL] ^= 1;
        fs::write(&path, &file).unwrap();
    }
    fs::remove_dir_all(metadata(&shelf.folder, tome)).unwrap();
    let (set, report) = rebuilt(&shelf, tome).await;
    assert_eq!(report.lost, ["object 00"]);
    let reasons = set.status().await.reasons;
    assert!(reasons.iter().any(|why| why.ends_with("are gone: object 00")), "{reasons:?}");
    assert_eq!(shelf.wait(set.get("object 01")).await.unwrap(), content("object 01"));
    assert_eq!(set.tome_of("object 00").unwrap_err().kind(), ErrorKind::NotFound);
    shelf.wait(set.protected("object 01")).await.unwrap();
    shelf.settle(&set).await;
    close(set);
    let set = shelf.open();
    whole(&shelf, set, &all[1..], "with one lost").await;
}

#[tokio::test]
async fn metadata_store_copied_since_latest_start_is_detected() {
    // Copied while it is open and restored: parities, or the set, know of later versions.
    for is_protected in [true, false] {
        let shelf = Shelf::new();
        let set = shelf.init();
        let mut all = names(0..4);
        put(&shelf, &set, &all).await;
        for name in &all {
            shelf.wait(set.protected(name)).await.unwrap();
        }
        shelf.settle(&set).await;
        let aside = tempfile::tempdir().unwrap();
        for tome in tomes() {
            copy(&metadata(&shelf.folder, tome), &aside.path().join(tome.to_string()));
        }
        if !is_protected {
            tomes().for_each(|tome| shelf.faults.inject(tome, fulgurite_tome::InjectedFault::Send));
        }
        let more = names(4..8);
        put(&shelf, &set, &more).await;
        let tome = set.tome_of(&more[0]).unwrap();
        if is_protected {
            for name in &more {
                shelf.wait(set.protected(name)).await.unwrap();
            }
        }
        close(set);
        tomes().for_each(|tome| shelf.faults.mend(tome));
        all.extend(more);
        let (place, older) = (metadata(&shelf.folder, tome), aside.path().join(tome.to_string()));
        copy(&place, &aside.path().join("right"));
        fs::remove_dir_all(&place).unwrap();
        copy(&older, &place);
        // It is reported at each start, and left as it is.
        for _ in 0..2 {
            let set = shelf.open();
            let reasons = set.status().await.reasons;
            assert!(reasons.len() == 1 && reasons[0].contains("an older copy: "), "{reasons:?}");
            close(set);
        }
        // The right copy can still be restored.
        fs::remove_dir_all(&place).unwrap();
        copy(&aside.path().join("right"), &place);
        let set = shelf.open();
        assert!(set.status().await.is_well());
        close(set);
        fs::remove_dir_all(&place).unwrap();
        copy(&older, &place);
        let (set, report) = rebuilt(&shelf, tome).await;
        assert_eq!((report.lost.len(), report.differing.len()), (0, 0), "{report:?}");
        whole(&shelf, set, &all, "older").await;
        assert!(place.join("awake.lost-1").is_dir(), "the previous store is kept");
    }
}

#[tokio::test]
async fn move_finished_before_its_target_was_lost_is_adopted() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let all = names(0..12);
    put(&shelf, &set, &all).await;
    for name in &all {
        shelf.wait(set.protected(name)).await.unwrap();
    }
    shelf.settle(&set).await;
    let lost = set.tome_of(&all[0]).unwrap();
    close(set);
    lose(&shelf.folder, lost);
    let target = shelf.add();
    let set = shelf.init();
    set.rebuild(lost).await.unwrap();
    // The set's own store from before any move is restored after all of them.
    let aside = tempfile::tempdir().unwrap();
    for own in ["set", "pieces"] {
        copy(&shelf.folder.join("set").join(own), &aside.path().join(own));
    }
    shelf.moved(&set).await;
    shelf.settle(&set).await;
    close(set);
    for own in ["set", "pieces"] {
        fs::remove_dir_all(shelf.folder.join("set").join(own)).unwrap();
        copy(&aside.path().join(own), &shelf.folder.join("set").join(own));
    }
    lose(&shelf.folder, target);
    shelf.add();
    let set = shelf.init();
    set.rebuild(target).await.unwrap();
    let status = shelf.moved(&set).await;
    assert!(status.is_well(), "{:?}", status.reasons);
    for name in &all {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name), "{name}");
    }
    shelf.settle(&set).await;
    agree(&set, "member slots moved twice").await;
    close(set);
}
