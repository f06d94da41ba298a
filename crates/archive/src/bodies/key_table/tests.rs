//! Keys come back only with the right master key, destroyed ones leave no byte behind, and each
//! copy of the table restores what the other lost.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use proptest::prelude::*;
use tempfile::TempDir;

use super::slot::{SEALED, SLOT_BYTES};
use super::*;

fn archive() -> ArchiveId {
    ArchiveId::from_bytes([3; 16])
}

fn master(seed: u8) -> SecretKey {
    SecretKey::from_bytes([seed; 32])
}

fn body(number: u8) -> ObjectId {
    ObjectId::from_bytes([number; 16])
}

/// A table in two files of a directory, with keys for bodies 10, 11, ...
struct World {
    dir: TempDir,
    run: u64,
}

impl World {
    fn new(keys: u8) -> Self {
        let mut world = Self { dir: crate::testing::dir(), run: 0 };
        let table = world.start().unwrap();
        for number in 0..keys {
            table.create(body(number + 10)).unwrap();
        }
        table.sync_blocking().unwrap();
        world
    }

    fn paths(&self) -> Vec<PathBuf> {
        ["table", "table.copy"].map(|name| self.dir.path().join(name)).to_vec()
    }

    fn open(&self) -> Result<KeyTable> {
        KeyTable::open(&self.paths(), master(1), archive(), self.run == 0)
    }

    /// Starts like a server: the table records the run first, then the catalog.
    fn start(&mut self) -> Result<KeyTable> {
        let table = self.open()?;
        self.run = table.begin_run(self.run)?;
        Ok(table)
    }

    fn bytes(&self, copy: usize) -> Vec<u8> {
        std::fs::read(&self.paths()[copy]).unwrap()
    }

    fn change(&self, copy: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.bytes(copy);
        change(&mut bytes);
        std::fs::write(&self.paths()[copy], bytes).unwrap();
    }

    fn has_all(&self, table: &KeyTable, keys: u8) -> bool {
        (0..keys).all(|number| table.load(u32::from(number) + 1, body(number + 10)).is_ok())
    }
}

#[test]
fn destroyed_keys_leave_no_trace_in_any_file() {
    let world = World::new(0);
    let table = world.open().unwrap();
    let (key, slot) = table.create(body(5)).unwrap();
    let wrapped = world.bytes(0)[slot as usize * SLOT_BYTES..][SEALED].to_vec();
    assert_eq!(world.open().unwrap().load(slot, body(5)).unwrap().expose(), key.expose());

    table.destroy_blocking(&[(slot, body(5))]).unwrap();
    assert!(table.load(slot, body(5)).is_err());
    for copy in [world.bytes(0), world.bytes(1)] {
        assert!(!copy.windows(wrapped.len()).any(|window| window == wrapped));
        assert!(!copy.windows(16).any(|window| window == body(5).to_bytes()));
    }
    // The slot is reused, and destroying the old key again leaves the new one alone.
    assert_eq!(table.create(body(6)).unwrap().1, slot);
    table.destroy_blocking(&[(slot, body(5))]).unwrap();
    assert!(table.load(slot, body(6)).is_ok());
}

#[test]
fn reader_loads_the_same_keys_as_the_table() {
    let mut world = World::new(200);
    let table = world.start().unwrap();
    // A damaged slot with an intact other copy, and missing keys.
    world.change(0, |bytes| bytes[70 * SLOT_BYTES..71 * SLOT_BYTES].fill(0x5A));
    let mut reader = table.reader();
    for number in (0..200).chain([3, 150, 69, 0]) {
        let (index, body) = (u32::from(number) + 1, body(number + 10));
        let key = reader.load(index, body).unwrap();
        assert_eq!(key.expose(), table.load(index, body).unwrap().expose());
    }
    assert!(reader.load(1, body(11)).is_err());
    assert!(reader.load(5000, body(10)).is_err());
}

#[test]
fn wrong_master_key_is_refused_at_open() {
    let world = World::new(2);
    let open = |seed| KeyTable::open(&world.paths(), master(seed), archive(), false);
    assert!(matches!(open(2), Err(ArchiveError::WrongMasterKey { .. })));
    assert!(open(1).is_ok());
    // This holds without any probe, too.
    for copy in 0..2 {
        world.change(copy, |bytes| bytes[..SLOT_BYTES].fill(0xAA));
    }
    assert!(matches!(open(2), Err(ArchiveError::WrongMasterKey { .. })));
    assert!(world.has_all(&open(1).unwrap(), 2));
}

#[test]
fn key_table_of_another_archive_is_refused() {
    let world = World::new(1);
    let other = ArchiveId::from_bytes([4; 16]);
    let opened = KeyTable::open(&world.paths(), master(1), other, false);
    assert!(matches!(opened, Err(ArchiveError::Unusable { .. })));
    assert_eq!(KeyTable::archive_of(&world.paths()), Some(archive()));
}

#[test]
fn each_copy_is_rebuilt_from_the_other() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 5] = [
        ("missing", |path| std::fs::remove_file(path).unwrap()),
        ("empty", |path| drop(File::create(path).unwrap())),
        ("cut", |path| File::options().write(true).open(path).unwrap().set_len(200).unwrap()),
        ("a page of zeros", |path| {
            File::options().write(true).open(path).unwrap().write_all_at(&[0; 4096], 0).unwrap();
        }),
        ("a page of noise", |path| {
            File::options().write(true).open(path).unwrap().write_all_at(&[9; 4096], 0).unwrap();
        }),
    ];
    for (name, damage) in damages {
        for copy in 0..2 {
            let mut world = World::new(40);
            damage(&world.paths()[copy]);
            let table = world.start().unwrap();
            assert!(world.has_all(&table, 40), "{name} of copy {copy}");
            assert_eq!(table.lost(), 0, "{name} of copy {copy}");
            assert_eq!(world.bytes(0), world.bytes(1), "{name} of copy {copy}");
        }
    }
}

#[test]
fn archive_with_keys_does_not_open_without_a_copy() {
    let world = World::new(3);
    for path in world.paths() {
        std::fs::remove_file(path).unwrap();
    }
    let error = KeyTable::open(&world.paths(), master(1), archive(), false).unwrap_err();
    assert!(error.to_string().contains("table.copy"), "the error names the files: {error}");
    assert!(matches!(error, ArchiveError::Unusable { .. }));
}

#[test]
fn older_copy_does_not_revive_destroyed_keys() {
    let mut world = World::new(2);
    let old = world.bytes(1);
    let table = world.start().unwrap();
    table.destroy_blocking(&[(1, body(10))]).unwrap();
    table.create(body(20)).unwrap();
    drop(table);
    std::fs::write(&world.paths()[1], &old).unwrap();
    let table = world.start().unwrap();
    assert!(table.load(1, body(10)).is_err());
    assert!(table.load(1, body(20)).is_ok());
    assert!(table.load(2, body(11)).is_ok());
    assert_eq!(world.bytes(0), world.bytes(1));
}

#[test]
fn key_table_that_missed_runs_is_refused() {
    let mut world = World::new(2);
    let old = world.bytes(0);
    world.start().unwrap();
    for path in world.paths() {
        std::fs::write(path, &old).unwrap();
    }
    assert!(matches!(world.start(), Err(ArchiveError::Unusable { .. })));
}

/// A table that a newer program wrote is refused by its version, and nothing is changed.
#[test]
fn newer_key_table_is_left_as_it_is() {
    let mut world = World::new(2);
    for copy in 0..2 {
        world.change(copy, |bytes| {
            bytes[5] = 2;
            let checksum = blake3::hash(&bytes[..92]);
            bytes[92..124].copy_from_slice(checksum.as_bytes());
        });
        let before = [world.bytes(0), world.bytes(1)];
        let Err(error) = world.start() else { panic!("a newer table was opened") };
        assert!(matches!(error, ArchiveError::Unusable { .. }), "{error}");
        assert!(error.to_string().contains("version 2"), "{error}");
        assert_eq!([world.bytes(0), world.bytes(1)], before);
    }
}

#[test]
fn interrupted_destruction_keeps_the_key_until_repeated() {
    let mut world = World::new(3);
    world.change(0, |bytes| bytes[SLOT_BYTES..2 * SLOT_BYTES].fill(0));
    let table = world.start().unwrap();
    assert!(table.load(1, body(10)).is_ok(), "the slot may also be damaged");
    table.destroy_blocking(&[(1, body(10))]).unwrap();
    assert!(table.load(1, body(10)).is_err());
    assert_eq!(world.bytes(0), world.bytes(1));
}

#[test]
fn slot_with_damaged_magic_is_not_free() {
    let mut world = World::new(2);
    for copy in 0..2 {
        world.change(copy, |bytes| bytes[SLOT_BYTES..SLOT_BYTES + 40].fill(0x5A));
    }
    let table = world.start().unwrap();
    assert_eq!(table.lost(), 1);
    assert_eq!(table.create(body(30)).unwrap().1, 3, "the slot is not reused");
    assert_eq!(world.bytes(0)[SLOT_BYTES], 0x5A);
}

#[test]
fn damaged_slot_is_repaired_at_runtime() {
    let mut world = World::new(1);
    let table = world.start().unwrap();
    world.change(0, |bytes| bytes[SLOT_BYTES + 30] ^= 0xFF);
    assert!(table.load(1, body(10)).is_ok());
    assert_eq!(world.bytes(0), world.bytes(1));
}

proptest! {
    /// The bit is flipped in every copy, so that no copy can help.
    #[test]
    fn flipped_bit_loses_no_key(bit in 0..3 * SLOT_BYTES * 8) {
        let mut world = World::new(2);
        for copy in 0..2 {
            world.change(copy, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        }
        let table = world.start().unwrap();
        prop_assert!(world.has_all(&table, 2));
        prop_assert_eq!(table.lost(), 0);
        let mut found = table.scan().unwrap();
        found.retain(|slot| slot.body == body(10) || slot.body == body(11));
        prop_assert_eq!(found.len(), 2);
    }

    /// Damages bytes around a wrapped key, but not its body id: the cipher detects it.
    #[test]
    fn key_survives_damage_around_it(noise in any::<[u8; 40]>()) {
        let mut world = World::new(1);
        for copy in 0..2 {
            world.change(copy, |bytes| {
                bytes[SLOT_BYTES + 84..2 * SLOT_BYTES - 4].copy_from_slice(&noise);
            });
        }
        let table = world.start().unwrap();
        prop_assert!(world.has_all(&table, 1));
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "two race")]
fn concurrent_destruction_frees_a_slot_once() {
    let world = World::new(0);
    let table = world.open().unwrap();
    for round in 0..300u32 {
        let body = body(u8::try_from(round % 250).unwrap());
        let (_, slot) = table.create(body).unwrap();
        let barrier = std::sync::Barrier::new(2);
        let clear = || {
            barrier.wait();
            table.clear(&[(slot, body)]).unwrap().len()
        };
        let cleared = std::thread::scope(|scope| {
            let other = scope.spawn(clear);
            clear() + other.join().unwrap()
        });
        assert_eq!(cleared, 1, "round {round}");
        table.lock().free.push(slot);
    }
}

#[test]
fn failed_sync_refuses_changes_and_notifies_process() {
    let world = World::new(1);
    let table = world.open().unwrap();
    let error = ArchiveError::Internal { what: "cannot sync".to_owned() };
    assert!(table.synced(Err(error)).is_err());
    assert!(matches!(table.create(body(20)), Err(ArchiveError::KeysFailed { .. })));
    assert!(table.load(1, body(10)).is_ok(), "existing keys can be read");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        assert!(table.failed().await.contains("cannot sync"));
        assert!(matches!(table.sync().await, Err(ArchiveError::KeysFailed { .. })));
        assert!(matches!(
            table.destroy(&[(1, body(10))]).await,
            Err(ArchiveError::KeysFailed { .. })
        ));
    });
}

/// Makes every read of a copy fail.
fn unreadable(world: &World, table: &mut KeyTable, copy: usize) {
    let file = File::options().write(true).open(&world.paths()[copy]).unwrap();
    table.copies[copy].target.file = std::sync::Arc::new(file);
}

#[test]
fn unreadable_keys_are_neither_lost_nor_destroyed() {
    let world = World::new(1);
    let mut table = world.open().unwrap();
    let keys = [(1, body(10))];
    unreadable(&world, &mut table, 0);
    table.load(1, body(10)).unwrap();
    unreadable(&world, &mut table, 1);
    assert!(matches!(table.load(1, body(10)), Err(ArchiveError::Io { .. })));
    assert!(matches!(table.destroy_blocking(&keys), Err(ArchiveError::Io { .. })));
    let mut table = world.open().unwrap();
    table.load(1, body(10)).unwrap();
    // The content of the readable copy is assumed for this one.
    unreadable(&world, &mut table, 1);
    table.destroy_blocking(&keys).unwrap();
    for copy in 0..2 {
        assert_eq!(world.bytes(copy)[SLOT_BYTES..], EMPTY, "copy {copy}");
    }
}
