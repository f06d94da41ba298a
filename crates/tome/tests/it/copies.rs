//! Stores of a set and its tomes that are missing, empty, truncated, damaged, or an older copy: it
//! is reported as such, nothing else is lost, and nothing is overwritten.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fulgurite_tome::{TomeSet, TomesError};
use fulgurite_tome_core::TomeId;
use fulgurite_units::ErrorKind;

use crate::shelf::{BLOCK, Shelf, lose, metadata, noise, root, tomes};

/// Names of objects that a set has.
type Names = BTreeSet<String>;

fn pieces(shelf: &Shelf) -> PathBuf {
    shelf.folder.join("set/pieces")
}

/// Returns the folder of the set's own store.
fn own(shelf: &Shelf) -> PathBuf {
    shelf.folder.join("set/set")
}

fn content(name: &str) -> Vec<u8> {
    noise(name, 2 * BLOCK + name.len())
}

/// Puts objects with these numbers, and returns when all are protected.
async fn fill(shelf: &Shelf, set: &TomeSet, numbers: std::ops::Range<u32>) -> Names {
    let names: Names = numbers.map(|number| format!("object {number:02}")).collect();
    for name in &names {
        shelf.wait(set.put(name, content(name))).await.unwrap();
    }
    for name in &names {
        shelf.wait(set.protected(name)).await.unwrap();
    }
    shelf.settle(set).await;
    names
}

/// Returns a closed set that was opened twice and has objects of both times, so that its stores
/// have tables and journals.
async fn closed() -> (Shelf, Names) {
    let shelf = Shelf::new();
    let set = shelf.init();
    let mut names = fill(&shelf, &set, 0..8).await;
    close(set);
    let set = shelf.open();
    names.extend(fill(&shelf, &set, 8..16).await);
    close(set);
    (shelf, names)
}

fn close(set: TomeSet) {
    set.stop();
    drop(set);
}

async fn all_there(shelf: &Shelf, set: &TomeSet, names: &Names) {
    for name in names {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name), "{name}");
    }
    assert!(set.list().iter().eq(names), "exactly these");
    shelf.settle(set).await;
}

async fn reasons(set: &TomeSet) -> Vec<String> {
    set.status().await.reasons
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

/// Restores a copy in place of what is there.
fn put_back(copied: &Path, place: &Path) {
    fs::remove_dir_all(place).unwrap();
    copy(copied, place);
}

/// Returns all files of a folder with their content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    all
}

/// Damages the content of a file.
type Damage = fn(&mut Vec<u8>);

/// Kinds of damage.
const DAMAGES: [(&str, Damage); 5] = [
    ("missing", |_| {}),
    ("empty", Vec::clear),
    ("cut off", |bytes| bytes.truncate(bytes.len() / 2)),
    ("one bit of its middle", |bytes| flip(bytes, 2)),
    ("one bit of its first quarter", |bytes| flip(bytes, 4)),
];

fn flip(bytes: &mut [u8], part: usize) {
    let at = bytes.len() / part;
    bytes[at] ^= 1;
}

/// Damages each file of a store in each way and checks the result; all is restored each time.
/// Returns how many damaged stores were rejected.
async fn damaged(
    shelf: &Shelf,
    store: &Path,
    mut check: impl AsyncFnMut(&str, &Path) -> bool,
) -> u32 {
    let aside = tempfile::tempdir().unwrap();
    let (set, disks) = (shelf.folder.join("set"), aside.path().join("disks"));
    copy(&shelf.folder, &disks);
    let mut refused = 0;
    for (path, bytes) in files(store).into_iter().filter(|(_, bytes)| !bytes.is_empty()) {
        for (what, damage) in DAMAGES {
            let mut bad = bytes.clone();
            damage(&mut bad);
            match what {
                "missing" => fs::remove_file(&path).unwrap(),
                _ => fs::write(&path, &bad).unwrap(),
            }
            let name = format!("{} {what}", path.strip_prefix(&set).unwrap().display());
            refused += u32::from(check(&name, &path).await);
            put_back(&disks.join("set"), &set);
        }
    }
    refused
}

#[tokio::test]
async fn missing_or_empty_piece_store_is_rebuilt_from_tomes() {
    for is_empty in [false, true] {
        let (shelf, names) = closed().await;
        fs::remove_dir_all(pieces(&shelf)).unwrap();
        if is_empty {
            fs::create_dir(pieces(&shelf)).unwrap();
        }
        let set = shelf.open();
        assert_eq!(reasons(&set).await, [] as [&str; 0]);
        all_there(&shelf, &set, &names).await;
        let lost = set.tome_of("object 00").unwrap();
        close(set);
        // And they serve their purpose as before.
        lose(&shelf.folder, lost);
        shelf.add();
        let set = shelf.init();
        set.rebuild(lost).await.unwrap();
        assert!(shelf.moved(&set).await.is_well());
        all_there(&shelf, &set, &names).await;
        close(set);
    }
}

#[tokio::test]
async fn damaged_piece_store_is_rejected_or_harmless() {
    let (shelf, names) = closed().await;
    let check = async |what: &str, path: &Path| {
        let before = fs::read(path).ok();
        match TomeSet::open(shelf.options()) {
            Ok(set) => {
                assert_eq!(reasons(&set).await, [] as [&str; 0], "{what}");
                assert!(set.list().iter().eq(&names), "{what}");
                close(set);
                false
            }
            Err(error) => {
                assert!(matches!(error, TomesError::Catalog(_)), "{what}: {error}");
                assert_eq!(fs::read(path).ok(), before, "{what}: nothing is overwritten");
                true
            }
        }
    };
    let refused = damaged(&shelf, &pieces(&shelf), check).await;
    assert!(refused > 5, "{refused}");
    let set = shelf.open();
    all_there(&shelf, &set, &names).await;
    close(set);
}

#[tokio::test]
async fn damaged_set_store_is_rejected_or_harmless() {
    let (shelf, names) = closed().await;
    let check = async |what: &str, path: &Path| {
        let before = fs::read(path).ok();
        match TomeSet::open(shelf.options()) {
            Ok(set) => {
                assert_eq!(reasons(&set).await, [] as [&str; 0], "{what}");
                assert!(set.list().iter().eq(&names), "{what}");
                close(set);
                false
            }
            Err(error) => {
                assert!(matches!(error, TomesError::Catalog(_)), "{what}: {error}");
                assert_eq!(fs::read(path).ok(), before, "{what}: nothing is overwritten");
                true
            }
        }
    };
    let refused = damaged(&shelf, &own(&shelf), check).await;
    assert!(refused > 5, "{refused}");
    let set = shelf.open();
    all_there(&shelf, &set, &names).await;
    close(set);
}

#[tokio::test]
async fn damaged_metadata_store_affects_only_its_tome() {
    let (shelf, names) = closed().await;
    let set = shelf.open();
    let tome = set.tome_of("object 00").unwrap();
    let others: Names =
        names.iter().filter(|name| set.tome_of(name).unwrap() != tome).cloned().collect();
    close(set);
    let check = async |what: &str, path: &Path| {
        let before = fs::read(path).ok();
        let set = shelf.open();
        let reported = reasons(&set).await;
        if reported.is_empty() {
            assert!(set.list().iter().eq(&names), "{what}");
            close(set);
            return false;
        }
        assert_eq!(reported.len(), 1, "{what}: {reported:?}");
        assert!(
            reported[0].starts_with(&format!("tome {tome}: given up: ")),
            "{what}: {reported:?}"
        );
        assert!(set.list().iter().eq(&names), "{what}: what is lost is known");
        assert!(others.iter().all(|name| set.tome_of(name).unwrap() != tome));
        close(set);
        assert_eq!(fs::read(path).ok(), before, "{what}: nothing is overwritten");
        true
    };
    let refused = damaged(&shelf, &metadata(&shelf.folder, tome).join("awake"), check).await;
    assert!(refused > 5, "{refused}");
    let set = shelf.open();
    all_there(&shelf, &set, &names).await;
    close(set);
}

#[tokio::test]
async fn older_piece_store_is_updated_from_tomes() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let mut names = fill(&shelf, &set, 0..8).await;
    close(set);
    let aside = tempfile::tempdir().unwrap();
    copy(&pieces(&shelf), &aside.path().join("older"));
    let set = shelf.open();
    names.extend(fill(&shelf, &set, 8..16).await);
    for gone in ["object 00", "object 09"] {
        shelf.wait(set.delete(gone)).await.unwrap();
        names.remove(gone);
    }
    let lost = set.tome_of("object 10").unwrap();
    close(set);
    put_back(&aside.path().join("older"), &pieces(&shelf));
    let set = shelf.open();
    all_there(&shelf, &set, &names).await;
    close(set);
    lose(&shelf.folder, lost);
    shelf.add();
    let set = shelf.init();
    set.rebuild(lost).await.unwrap();
    assert!(shelf.moved(&set).await.is_well());
    all_there(&shelf, &set, &names).await;
    close(set);
}

#[tokio::test]
async fn older_piece_store_with_deleted_objects_is_harmless() {
    for is_open in [false, true] {
        let shelf = Shelf::new();
        let set = shelf.init();
        let first = fill(&shelf, &set, 0..16).await;
        let aside = tempfile::tempdir().unwrap();
        let older = aside.path().join("older");
        if is_open {
            copy(&pieces(&shelf), &older);
        }
        let set = if is_open {
            set
        } else {
            close(set);
            copy(&pieces(&shelf), &older);
            shelf.open()
        };
        // Their blocks are overwritten, and the objects that did so are deleted too.
        for name in &first {
            shelf.wait(set.delete(name)).await.unwrap();
        }
        for name in &fill(&shelf, &set, 16..48).await {
            shelf.wait(set.delete(name)).await.unwrap();
        }
        let names = fill(&shelf, &set, 60..64).await;
        close(set);
        put_back(&older, &pieces(&shelf));
        let set = shelf.open();
        assert_eq!(reasons(&set).await, [] as [&str; 0], "copied open: {is_open}");
        all_there(&shelf, &set, &names).await;
        close(set);
    }
}

#[tokio::test]
async fn older_piece_store_is_reported_while_a_tome_is_lost() {
    for is_missing in [false, true] {
        let (shelf, _) = closed().await;
        let aside = tempfile::tempdir().unwrap();
        copy(&pieces(&shelf), &aside.path().join("older"));
        let set = shelf.open();
        fill(&shelf, &set, 16..24).await;
        let lost = set.tome_of("object 16").unwrap();
        close(set);
        copy(&pieces(&shelf), &aside.path().join("right"));
        fs::remove_dir_all(pieces(&shelf)).unwrap();
        if !is_missing {
            copy(&aside.path().join("older"), &pieces(&shelf));
        }
        lose(&shelf.folder, lost);
        for _ in 0..2 {
            let set = shelf.open();
            let reported = reasons(&set).await;
            let expected = format!("tome {lost}: which objects it had is not known for sure");
            assert!(reported.iter().any(|why| why.starts_with(&expected)), "{reported:?}");
            close(set);
        }
        // Nothing is lost once the right copy is restored.
        put_back(&aside.path().join("right"), &pieces(&shelf));
        shelf.add();
        let set = shelf.init();
        assert_eq!(reasons(&set).await.len(), 1);
        set.rebuild(lost).await.unwrap();
        assert!(shelf.moved(&set).await.is_well());
        assert_eq!(shelf.wait(set.get("object 16")).await.unwrap(), content("object 16"));
        close(set);
    }
}

#[tokio::test]
async fn older_metadata_store_is_reported_and_loses_nothing() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let mut names = fill(&shelf, &set, 0..8).await;
    close(set);
    let aside = tempfile::tempdir().unwrap();
    for tome in tomes() {
        copy(&metadata(&shelf.folder, tome), &aside.path().join(format!("older-{tome}")));
    }
    let set = shelf.open();
    let more = fill(&shelf, &set, 8..16).await;
    let tome = set.tome_of("object 08").unwrap();
    let (place, older) =
        (metadata(&shelf.folder, tome), aside.path().join(format!("older-{tome}")));
    names.extend(more);
    close(set);
    copy(&place, &aside.path().join("right"));
    put_back(&older, &place);
    let set = shelf.open();
    let reported = reasons(&set).await;
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("older"), "{reported:?}");
    assert!(set.list().iter().eq(&names), "lost objects are known");
    close(set);
    // With the right copy, or after a rebuild by others, everything is there.
    put_back(&aside.path().join("right"), &place);
    let set = shelf.open();
    all_there(&shelf, &set, &names).await;
    close(set);
    put_back(&older, &place);
    shelf.add();
    let set = shelf.init();
    set.rebuild(tome).await.unwrap();
    let status = shelf.moved(&set).await;
    assert!(status.is_well(), "{:?}", status.reasons);
    all_there(&shelf, &set, &names).await;
    close(set);
}

#[tokio::test]
async fn missing_or_older_set_store_is_rejected() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let mut names = fill(&shelf, &set, 0..8).await;
    let id = set.id();
    close(set);
    let aside = tempfile::tempdir().unwrap();
    copy(&own(&shelf), &aside.path().join("older"));
    let set = shelf.open();
    names.extend(fill(&shelf, &set, 8..12).await);
    close(set);
    copy(&own(&shelf), &aside.path().join("right"));
    let stores = || -> BTreeMap<PathBuf, Vec<u8>> {
        let disks = tomes().map(|tome| root(&shelf.folder, tome)).filter(|root| root.exists());
        disks.flat_map(|root| files(&root)).collect()
    };
    let before = stores();
    fs::remove_dir_all(own(&shelf)).unwrap();
    assert_eq!(TomeSet::open(shelf.options()).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(!own(&shelf).exists(), "none is created");
    for set in [None, Some(id)] {
        let options = fulgurite_tome::SetOptions { set, ..shelf.options() };
        let error = TomeSet::init(options).unwrap_err();
        assert!(matches!(error, TomesError::WrongStore { .. }), "{error}");
        fs::remove_dir_all(own(&shelf)).unwrap();
    }
    copy(&aside.path().join("older"), &own(&shelf));
    for opened in [TomeSet::open, TomeSet::init] {
        let error = opened(shelf.options()).unwrap_err();
        assert!(matches!(error, TomesError::WrongStore { .. }), "{error}");
        assert!(error.to_string().contains("it is an older copy"), "{error}");
    }
    assert!(stores() == before, "nothing was written");
    put_back(&aside.path().join("right"), &own(&shelf));
    let set = shelf.open();
    assert_eq!(set.id(), id);
    all_there(&shelf, &set, &names).await;
    let _: TomeId = set.tome_of("object 00").unwrap();
    close(set);
}

#[tokio::test]
async fn duplicate_object_name_is_reported_and_both_are_kept() {
    let shelf = Shelf::new();
    let set = shelf.init();
    fill(&shelf, &set, 0..4).await;
    let name = "object 00";
    let first = set.tome_of(name).unwrap();
    close(set);
    // Its objects are unknown while it is away.
    let aside = tempfile::tempdir().unwrap();
    for (at, place) in
        [root(&shelf.folder, first), metadata(&shelf.folder, first)].iter().enumerate()
    {
        copy(place, &aside.path().join(at.to_string()));
        fs::remove_dir_all(place).unwrap();
    }
    fs::remove_dir_all(pieces(&shelf)).unwrap();
    let set = shelf.open();
    let second = shelf.wait(set.put(name, b"other".to_vec())).await.unwrap();
    assert_ne!(second, first);
    close(set);
    for (at, place) in
        [root(&shelf.folder, first), metadata(&shelf.folder, first)].iter().enumerate()
    {
        copy(&aside.path().join(at.to_string()), place);
    }
    let set = shelf.open();
    let reported = reasons(&set).await;
    let (read, hidden) = (first.min(second), first.max(second));
    assert_eq!(set.tome_of(name).unwrap(), read);
    let expected = format!("tome {hidden}: 1 objects are not read");
    assert!(reported.len() == 1 && reported[0].starts_with(&expected), "{reported:?}");
    assert!(reported[0].ends_with(name), "{reported:?}");
    let got = shelf.wait(set.get(name)).await.unwrap();
    shelf.settle(&set).await;
    close(set);
    for (tome, content) in [(first, content(name)), (second, b"other".to_vec())] {
        assert!(tome != read || got == content);
        assert_eq!(crate::shelf::pull(&shelf.folder, tome).object(name).unwrap(), content);
    }
}
