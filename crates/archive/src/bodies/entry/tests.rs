//! A sealed entry has the planned length, and only its own key opens it.

use proptest::prelude::*;

use super::*;
use crate::bodies::log::LogKind;
use crate::model::labels::Labels;
use crate::model::names::{ObjectName, VersionId};
use crate::testing;

fn entry(key: String, user: std::collections::BTreeMap<String, String>, bytes: u64) -> Entry {
    let object = testing::object_row(StorageClass::DeepArchive);
    let body = testing::body_row(LogKind::Staging);
    Entry {
        name: ObjectName::parse("vault", &key, VersionId::NULL).unwrap(),
        bucket_created: testing::NOW,
        object_id: object.object_id,
        index: 3,
        body_count: 4,
        body_bytes: body.bytes,
        body_digest: bytes.rotate_left(7),
        bytes,
        etag: object.etag,
        modified: object.modified,
        class: object.class,
        meta: ObjectMeta { user, ..ObjectMeta::default() },
        checksum: object.checksum,
        part_count: Some(4),
        upload_id: None,
        labels: Labels::default(),
        part_checksum: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn sealed_length_equals_planned_length(
        key in ".{1,200}",
        user in prop::collection::btree_map("[a-z]{1,20}", ".{0,80}", 0..5),
        bytes: u64,
        is_part: bool,
    ) {
        let entry = entry(key, user, bytes);
        let checksum = testing::object_row(StorageClass::Standard).checksum;
        let entry = entry.with_part(checksum.filter(|_| is_part));
        let (secret, body) = (SecretKey::random().unwrap(), ObjectId::from_bytes([4; 16]));
        let sealed = entry.seal(&secret, body).unwrap();
        prop_assert_eq!(sealed.len(), entry.sealed_bytes().unwrap());
        prop_assert_eq!(Entry::open(&secret, body, &sealed).unwrap(), entry);

        let other = SecretKey::random().unwrap();
        prop_assert!(Entry::open(&other, body, &sealed).is_err());
        prop_assert!(Entry::open(&secret, ObjectId::from_bytes([5; 16]), &sealed).is_err());
        prop_assert!(Entry::open(&secret, body, &sealed[..sealed.len() - 1]).is_err());
        // A future version is reported as newer; a part's version is corruption.
        let plain = open_entry(&secret, body, &sealed).unwrap();
        prop_assert_eq!(plain[0], 1);
        for version in [0, 2, 0x7f, 0x80, 0x81, 0x82] {
            let plain = [&[version], &plain[1..]].concat();
            let sealed = seal_entry(&secret, body, &plain).unwrap();
            let refused = Entry::open(&secret, body, &sealed).unwrap_err();
            let is_newer = matches!(refused, ArchiveError::Newer { .. });
            prop_assert_eq!(is_newer, (2..0x81).contains(&version), "{}", refused);
            let version_text = format!("version {version}");
            prop_assert!(refused.to_string().contains(&version_text), "{}", refused);
            let refused = PartEntry::open(&secret, body, &sealed).err();
            let is_newer = matches!(refused, Some(ArchiveError::Newer { .. }));
            prop_assert_eq!(is_newer, version == 0x82);
        }
        // Trailing bytes are an error.
        let longer = seal_entry(&secret, body, &[&plain[..], &[0]].concat()).unwrap();
        prop_assert!(Entry::open(&secret, body, &longer).is_err());
        // The zeros that replace a deleted body's entry never open.
        prop_assert!(Entry::open(&secret, body, &vec![0; sealed.len()]).is_err());
    }
}
