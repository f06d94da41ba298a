//! Notes: which ones are accepted, with what content, and which are rejected.

use std::collections::BTreeMap;

use fulgurite_units::UnixTime;

use super::*;

fn object() -> ObjectId {
    ObjectId::from_bytes([7; 16])
}

fn shared() -> SecretKey {
    SecretKey::from_bytes([1; 32])
}

fn sample_note() -> Note {
    Note {
        bucket: "films".to_owned(),
        key: "reel".to_owned(),
        bytes: 5,
        etag: "etag".to_owned(),
        class: StorageClass::Standard,
        meta: ObjectMeta::default(),
        checksum: None,
        part_count: None,
        upload: Some(UploadId::from_bytes([3; 16])),
        runs: None,
    }
}

fn found(note: Option<String>) -> SharedObjectMeta {
    let (name, time) = ("shared/films/x".to_owned(), UnixTime::from_millis(1_999));
    SharedObjectMeta { name, version: 4, bytes: cipher_bytes(5), time, note }
}

fn described(note: Option<String>) -> Result<SharedObject> {
    SharedObject::open(&shared(), &found(note), ("films", "reel"))
}

#[test]
fn note_round_trips() {
    let sealed = sample_note().seal(&shared(), object()).unwrap();
    let opened = described(Some(sealed)).unwrap();
    assert_eq!((opened.object_id, opened.version), (object(), 4));
    assert_eq!(opened.upload, Some(UploadId::from_bytes([3; 16])));
    assert_eq!((opened.info.bytes, opened.info.etag.as_str()), (5, "etag"));
    assert_eq!(opened.info.modified, UnixTime::from_millis(1_000), "the resolution of headers");
}

#[test]
fn sealing_a_note_is_randomized() {
    let texts = [(); 2].map(|()| sample_note().seal(&shared(), object()).unwrap());
    assert_ne!(texts[0], texts[1]);
}

#[test]
fn note_of_another_object_is_rejected() {
    let sealed = sample_note().seal(&shared(), object()).unwrap();
    let mut turned = sealed.clone().into_bytes();
    let middle = turned.len() / 2;
    turned[middle] = if turned[middle] == b'A' { b'B' } else { b'A' };
    let elsewhere = Note { key: "other".to_owned(), ..sample_note() };
    let other = Note { bucket: "sound".to_owned(), ..sample_note() };
    let of_other_key = SecretKey::from_bytes([2; 32]);
    let refused = [
        None,
        Some(String::from_utf8(turned).unwrap()),
        Some(sealed[..sealed.len() - 1].to_owned()),
        Some("1".to_owned()),
        Some(sample_note().seal(&of_other_key, object()).unwrap()),
        Some(elsewhere.seal(&shared(), object()).unwrap()),
        Some(other.seal(&shared(), object()).unwrap()),
    ];
    for note in refused {
        let shown = format!("{note:?}");
        assert!(matches!(described(note), Err(ArchiveError::Corrupt { .. })), "{shown}");
    }
    let newer = described(Some(sealed.replacen('1', "2", 1)));
    assert!(matches!(newer, Err(ArchiveError::Newer { .. })));
}

#[test]
fn size_that_differs_from_the_note_is_rejected() {
    let sealed = sample_note().seal(&shared(), object()).unwrap();
    let short = SharedObjectMeta { bytes: cipher_bytes(5) - 1, ..found(Some(sealed)) };
    let described = SharedObject::open(&shared(), &short, ("films", "reel"));
    assert!(matches!(described, Err(ArchiveError::Corrupt { .. })));
}

#[test]
fn oversized_note_is_rejected() {
    let user = BTreeMap::from([("name".to_owned(), "v".repeat(SHARED_NOTE_BYTES_MAX))]);
    let long = Note { meta: ObjectMeta { user, ..ObjectMeta::default() }, ..sample_note() };
    let refused = long.seal(&shared(), object()).unwrap_err();
    assert!(refused.to_string().contains("at most 5120"), "{refused}");
}

/// Creates the note of an object with three parts of these lengths.
fn multipart_note(lengths: [u64; 3]) -> Note {
    let runs = PartRuns::from_lengths(lengths.into_iter());
    Note { part_count: Some(3), runs, ..sample_note() }
}

#[test]
fn part_lengths_round_trip() {
    let note = multipart_note([2, 2, 1]);
    let opened = described(Some(note.seal(&shared(), object()).unwrap())).unwrap();
    let find = |number: u32| opened.part(number).map(|part| (part.first, part.bytes));
    assert_eq!([1, 2, 3].map(|number| find(number).unwrap()), [(0, 2), (2, 2), (4, 1)]);
    for number in [0, 4] {
        let refused = find(number).unwrap_err();
        assert!(matches!(refused, ArchiveError::InvalidPartNumber { count: 3, .. }), "{refused}");
    }
}

#[test]
fn inconsistent_part_lengths_are_ignored() {
    let without = Note { runs: None, ..multipart_note([2, 2, 1]) };
    for note in [multipart_note([2, 2, 2]), without] {
        let opened = described(Some(note.seal(&shared(), object()).unwrap())).unwrap();
        let refused = opened.part(1).unwrap_err();
        assert!(matches!(refused, ArchiveError::PartsNotKept { .. }), "{refused}");
    }
    let whole = described(Some(sample_note().seal(&shared(), object()).unwrap())).unwrap();
    let only = whole.part(1).unwrap();
    assert_eq!((only.first, only.bytes), (0, 5), "a single-part object is its own part");
}

#[test]
fn client_metadata_takes_priority_over_part_lengths() {
    let user = BTreeMap::from([("name".to_owned(), "v".repeat(SHARED_NOTE_BYTES_MAX - 100))]);
    let mut note = multipart_note([2, 2, 1]);
    note.meta.user = user;
    while note.seal(&shared(), object()).is_ok() {
        note.etag.push('e');
    }
    note.etag.pop();
    let opened = described(Some(note.seal(&shared(), object()).unwrap())).unwrap();
    assert_eq!(opened.info.meta.user, note.meta.user);
    assert!(matches!(opened.part(1), Err(ArchiveError::PartsNotKept { .. })));
}
