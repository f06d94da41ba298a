//! Keys come back only with the right master key, and destroyed ones leave no byte behind.

use super::*;

fn archive() -> ArchiveId {
    ArchiveId::from_bytes([3; 16])
}

fn open(path: &Path, master: u8) -> Result<KeyTable> {
    KeyTable::open(path, SecretKey::from_bytes([master; 32]), archive())
}

#[test]
fn destroyed_keys_leave_no_trace_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("table");
    let table = open(&path, 1).unwrap();
    let body = ObjectId::from_bytes([5; 16]);
    let (key, slot) = table.create(body).unwrap();
    let before = std::fs::read(&path).unwrap();
    let wrapped = before[slot as usize * SLOT_BYTES..][SEALED].to_vec();
    assert_eq!(open(&path, 1).unwrap().load(slot, body).unwrap().expose(), key.expose());

    table.destroy_blocking(&[(slot, body)]).unwrap();
    assert!(table.load(slot, body).is_err());
    let after = std::fs::read(&path).unwrap();
    assert!(!after.windows(wrapped.len()).any(|window| window == wrapped));
    assert!(!after.windows(16).any(|window| window == body.to_bytes()));
    // The slot is used again, and a late second destroy of the old key leaves the new one alone.
    let next = ObjectId::from_bytes([6; 16]);
    assert_eq!(table.create(next).unwrap().1, slot);
    table.destroy_blocking(&[(slot, body)]).unwrap();
    assert!(table.load(slot, next).is_ok());
}

#[test]
fn a_wrong_master_key_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("table");
    open(&path, 1).unwrap();
    assert!(matches!(open(&path, 2), Err(ArchiveError::WrongMasterKey { .. })));
    assert!(open(&path, 1).is_ok());
}

#[test]
fn a_table_cut_in_a_slot_still_opens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("table");
    let table = open(&path, 1).unwrap();
    let bodies: Vec<_> = (0..5).map(|i| ObjectId::from_bytes([i + 10; 16])).collect();
    let slots: Vec<_> = bodies.iter().map(|&b| table.create(b).unwrap().1).collect();
    drop(table);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(5 * SLOT_BYTES as u64 + 40).unwrap();
    let table = open(&path, 1).unwrap();
    assert!(table.load(slots[3], bodies[3]).is_ok());
    assert!(table.load(slots[4], bodies[4]).is_err());
    assert_eq!(table.scan().unwrap().len(), 4);
}

#[test]
fn of_two_that_destroy_a_key_one_frees_its_slot() {
    let dir = tempfile::tempdir().unwrap();
    let table = open(&dir.path().join("table"), 1).unwrap();
    for round in 0..300u32 {
        let body = ObjectId::from_bytes([u8::try_from(round % 250).unwrap(); 16]);
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
