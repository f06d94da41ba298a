//! Notes: what is told of them, and what is refused.

use std::collections::BTreeMap;

use fulgurite_units::UnixTime;

use super::*;

fn object() -> ObjectId {
    ObjectId::from_bytes([7; 16])
}

fn shared() -> SecretKey {
    SecretKey::from_bytes([1; 32])
}

fn a_note() -> Note {
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
    }
}

fn found(note: Option<String>) -> SharedFound {
    let (name, time) = ("shared/films/x".to_owned(), UnixTime::from_millis(1_999));
    SharedFound { name, version: 4, bytes: cipher_bytes(5), time, note }
}

fn described(note: Option<String>) -> Result<Described> {
    Described::of(&shared(), &found(note), ("films", "reel"))
}

#[test]
fn what_was_noted_is_what_is_told() {
    let sealed = a_note().seal(&shared(), object()).unwrap();
    let told = described(Some(sealed)).unwrap();
    assert_eq!((told.object_id, told.version), (object(), 4));
    assert_eq!(told.upload, Some(UploadId::from_bytes([3; 16])));
    assert_eq!((told.info.bytes, told.info.etag.as_str()), (5, "etag"));
    assert_eq!(told.info.modified, UnixTime::from_millis(1_000), "as headers have it");
}

#[test]
fn the_same_note_is_never_sealed_to_the_same_text() {
    let texts = [(); 2].map(|()| a_note().seal(&shared(), object()).unwrap());
    assert_ne!(texts[0], texts[1]);
}

#[test]
fn what_is_not_the_note_of_that_object_is_refused() {
    let sealed = a_note().seal(&shared(), object()).unwrap();
    let mut turned = sealed.clone().into_bytes();
    let middle = turned.len() / 2;
    turned[middle] = if turned[middle] == b'A' { b'B' } else { b'A' };
    let elsewhere = Note { key: "other".to_owned(), ..a_note() };
    let foreign = Note { bucket: "sound".to_owned(), ..a_note() };
    let of_other_key = SecretKey::from_bytes([2; 32]);
    let refused = [
        None,
        Some(String::from_utf8(turned).unwrap()),
        Some(sealed[..sealed.len() - 1].to_owned()),
        Some("1".to_owned()),
        Some(a_note().seal(&of_other_key, object()).unwrap()),
        Some(elsewhere.seal(&shared(), object()).unwrap()),
        Some(foreign.seal(&shared(), object()).unwrap()),
    ];
    for note in refused {
        let shown = format!("{note:?}");
        assert!(matches!(described(note), Err(ArchiveError::Corrupt { .. })), "{shown}");
    }
    let newer = described(Some(sealed.replacen('1', "2", 1)));
    assert!(matches!(newer, Err(ArchiveError::Newer { .. })));
}

#[test]
fn bytes_that_are_not_as_many_as_noted_are_refused() {
    let sealed = a_note().seal(&shared(), object()).unwrap();
    let short = SharedFound { bytes: cipher_bytes(5) - 1, ..found(Some(sealed)) };
    let described = Described::of(&shared(), &short, ("films", "reel"));
    assert!(matches!(described, Err(ArchiveError::Corrupt { .. })));
}

#[test]
fn what_is_too_long_for_a_row_is_refused_by_its_length() {
    let user = BTreeMap::from([("name".to_owned(), "v".repeat(SHARED_NOTE_BYTES_MAX))]);
    let long = Note { meta: ObjectMeta { user, ..ObjectMeta::default() }, ..a_note() };
    let refused = long.seal(&shared(), object()).unwrap_err();
    assert!(refused.to_string().contains("5120 are the most"), "{refused}");
}
