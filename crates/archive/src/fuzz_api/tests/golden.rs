//! Golden bytes. Any change to them is a new version of a row, an entry or a slot.
//!
//! Encrypted data has another nonce each time. There, bytes that were stored once must open, and
//! their content is compared.

use expect_test::{Expect, expect};
use fulgurite_units::PlatterId;

use super::*;
use crate::bodies::digest::ChecksumAlgorithm;
use crate::bodies::entry::PartEntry;
use crate::bodies::log::{Extent, LogKind};
use crate::model::classes::Home;
use crate::rows::{LoggedBody, Place, Queued, Shard};

fn hex_lines(bytes: &[u8]) -> String {
    bytes.chunks(32).map(|line| hex::encode(line) + "\n").collect()
}

fn bytes_of(lines: &str) -> Vec<u8> {
    hex::decode(lines.split_whitespace().collect::<String>()).unwrap()
}

fn are<T: Row>(row: &T, bytes: &Expect) {
    bytes.assert_eq(&hex_lines(&rows::encode(row).unwrap()));
}

fn meta() -> ObjectMeta {
    let user = [("mtime".to_owned(), "1767609000.25".to_owned())].into();
    ObjectMeta { content_type: Some("text/plain".to_owned()), user, ..ObjectMeta::default() }
}

fn full_object() -> ObjectRow {
    ObjectRow { meta: meta(), bodies_staged: 1, body_count: 2, ..object_row() }
}

fn full_body() -> BodyRow {
    let extent = Extent { segment: 7, offset: 1 << 27, bytes: 65_552 };
    let platter = PlatterId::from_bytes([3; 16]);
    let shard = Shard { platter, offset: 1 << 40, body_offset: 9, bytes: 300, crc: Some(u64::MAX) };
    BodyRow {
        body_id: ObjectId::from_bytes(BODY),
        key_slot: 300,
        bytes: 65_536,
        digest: 0x0102_0304_0506_0708,
        place: Place::Log(LoggedBody {
            kind: LogKind::Staging,
            extents: vec![extent],
            framing: vec![Extent { bytes: 64, ..extent }],
            queued: Some(Queued::Glass {
                sequence: 12,
                placed: vec![shard, Shard { crc: None, ..shard }],
            }),
        }),
        restored: Some(vec![Extent { segment: 1, ..extent }]),
    }
}

fn part_entry() -> PartEntry {
    PartEntry {
        bucket: "vault".to_owned(),
        bucket_created: testing::NOW,
        key: "a/b".to_owned(),
        upload_id: UploadId::from_bytes([2; 16]),
        initiated: testing::NOW,
        class: StorageClass::DeepArchive,
        meta: meta(),
        algorithm: Some(ChecksumAlgorithm::Crc64Nvme),
        full_object: true,
        number: 7,
        body_bytes: 65_536,
        body_digest: 0x0102_0304_0506_0708,
        md5: [9; 16],
        modified: testing::NOW,
        checksum: object_row().checksum,
    }
}

fn upload_row() -> UploadRow {
    UploadRow {
        initiated: testing::NOW,
        class: StorageClass::Glacier,
        meta: meta(),
        algorithm: Some(ChecksumAlgorithm::Sha256),
        full_object: false,
        home: Home::Glass,
    }
}

#[test]
fn object_rows_match_golden_bytes() {
    are(
        &full_object(),
        &expect![[r#"
            0110010101010101010101010101010101010520346233613632313862623365
            3361373330336538613137316136306663663932c0c0d3edb83301010a746578
            742f706c61696e00000000000001056d74696d650d313736373630393030302e
            323501020826985b6e514a4c2400010302010110020202020202020202020202
            02020202010300bac2d3edb83301bac2d3edb8330000000001
        "#]],
    );
    are(
        &full_body(),
        &expect![[r#"
            011005050505050505050505050505050505ac02808004888e98a8c0e0808101
            00000107808080409080040107808080404001000c0210030303030303030303
            0303030303030380808080802009ac0201ffffffffffffffffff011003030303
            03030303030303030303030380808080802009ac020001010180808040908004
        "#]],
    );
    are(
        &upload_row(),
        &expect![[r#"
            01bac2d3edb83301010a746578742f706c61696e00000000000001056d74696d
            650d313736373630393030302e323501040001
        "#]],
    );
    let (body, checksum) = (full_body(), object_row().checksum);
    are(
        &PartRow { body, md5: [9; 16], modified: testing::NOW, checksum },
        &expect![[r#"
            011005050505050505050505050505050505ac02808004888e98a8c0e0808101
            00000107808080409080040107808080404001000c0210030303030303030303
            0303030303030380808080802009ac0201ffffffffffffffffff011003030303
            03030303030303030303030380808080802009ac020001010180808040908004
            09090909090909090909090909090909bac2d3edb83301020826985b6e514a4c
            2400
        "#]],
    );
    are(
        &restore_row(),
        &expect![[r#"
            01057661756c740161000300bac2d3edb83301bac2d3edb833030103776879
        "#]],
    );
    are(
        &ExpiryRow { name: testing::name("a") },
        &expect![[r#"
            01057661756c74016100
        "#]],
    );
    are(
        &queue_row(),
        &expect![[r#"
            01100101010101010101010101010101010109057661756c7403612f6200bac2
            d3edb8338080808014
        "#]],
    );
    are(
        &BucketRow { created: testing::NOW },
        &expect![[r#"
        01bac2d3edb833
    "#]],
    );
}

#[test]
fn unconfirmed_rows_match_golden_bytes() {
    are(
        &unconfirmed_row(full_body()),
        &expect![[r#"
            0110040404040404040404040404040404040010050505050505050505050505
            05050505ac02808004888e98a8c0e08081010000010780808040908004010780
            8080404001000c02100303030303030303030303030303030380808080802009
            ac0201ffffffffffffffffff0110030303030303030303030303030303038080
            8080802009ac020001010180808040908004
        "#]],
    );
    are(
        &rows::SettledRow { staging: 300, online: 7 },
        &expect![[r#"
        01ac0207
    "#]],
    );
}

#[test]
fn totals_rows_match_golden_bytes() {
    let totals = Totals {
        objects_online: 1,
        objects_staged: 2,
        objects_on_glass: 3,
        restored: 4,
        restores_waiting: 5,
        staged_bytes: 600,
        sequence: 7,
        run: 8,
        objects_in_tiers: 9,
        moving_bytes: 10,
    };
    are(
        &totals,
        &expect![[r#"
            010102030405d8040708090a
        "#]],
    );
}

#[test]
fn golden_key_slots_open() {
    let (master, key) = (SecretKey::from_bytes(KEY), SecretKey::from_bytes([9; 32]));
    let body = ObjectId::from_bytes(BODY);
    let new = encode(&master, body, &key, 300).unwrap();
    let golden: Slot = bytes_of(SLOT).try_into().unwrap_or_else(|_| panic!("{}", hex_lines(&new)));
    assert_eq!(content(&golden), Content::Valid { body, run: 300 });
    let (found, opened) = decode(&master, &golden).unwrap();
    assert_eq!((found, opened.expose()), (body, &[9; 32]));
    // Everything except the nonce, the data encrypted with it and the checksum of both.
    for same in [0..24, 84..92, 124..128] {
        assert_eq!(new[same.clone()], golden[same.clone()], "{same:?}");
    }
}

#[test]
fn golden_sealed_entries_open() {
    let (key, body) = (SecretKey::from_bytes(KEY), ObjectId::from_bytes(BODY));
    let plain = |sealed: &[u8]| crate::bodies::cipher::open_entry(&key, body, sealed).unwrap();
    let (object, part) = (Entry { meta: meta(), ..entry() }, part_entry());
    let new_object = object.seal(&key, body).unwrap();
    expect![[r#"
        01057661756c7403612f6200bac2d3edb8331001010101010101010101010101
        010101000105888e98a8c0e08081010520346233613632313862623365336137
        3330336538613137316136306663663932c0c0d3edb83301010a746578742f70
        6c61696e00000000000001056d74696d650d313736373630393030302e323501
        020826985b6e514a4c2400000110020202020202020202020202020202020107
        70726f6a6563740673696c6963610101bac2d3edb8330100
    "#]]
    .assert_eq(&hex_lines(&plain(&new_object)));
    let new_part = part.record(&key, body, testing::NOW).unwrap().sealed;
    expect![[r#"
        81057661756c74bac2d3edb83303612f62100202020202020202020202020202
        0202bac2d3edb83302010a746578742f706c61696e00000000000001056d7469
        6d650d313736373630393030302e323501020107808004888e98a8c0e0808101
        09090909090909090909090909090909bac2d3edb83301020826985b6e514a4c
        2400
    "#]]
    .assert_eq(&hex_lines(&plain(&new_part)));
    let opened = Entry::open(&key, body, &bytes_of(OBJECT_ENTRY));
    assert_eq!(opened.ok(), Some(object), "the new bytes are\n{}", hex_lines(&new_object));
    let opened = PartEntry::open(&key, body, &bytes_of(PART_ENTRY));
    assert_eq!(opened.ok(), Some(part), "the new bytes are\n{}", hex_lines(&new_part));
}

/// Body 0505.., its key 0909.. under the master key 0707.., of run 300.
const SLOT: &str = "
    46474b45590100000505050505050505050505050505050591f7d45879680efc
    f0b6e4ff3a6a0d17b42c2e93c18735eb99633c35bb935c3934e99184c653745e
    eec74fc14f86c4c45e5320b5f3b37eb020d37a6b2c010000000000004b021f96
    d4d85b5b80883b4df6a72c93efb5b28b5b5861062547435c6974c35300000000
";

/// The object's entry.
const OBJECT_ENTRY: &str = "
    a3f220000fb67362efe4d2ff2dd97ddc791345d346b8d63d58c6c29810fd266d
    8ee5b6a331c4489bc60953d2db373d9736378c9977b3c6f367b60c193673bfa8
    525ad6cbfbf9b7a0b8661e25c3f7c19f646ad6df8338937308e3ee3c30347ba7
    85383f903d853d670bb41deee9c1a1c6e7ac5268013a930f076d7cdb4bf037bc
    718ada062b5ea6609e57f9008e0572cfde0484f3f4895f596e68093673e58d04
    026fb8b231e4bc040e6ab5e491fb8c4c26ec802d007a7bb306db4f3cb1de6794
    360b9983f6ebf2417b057081df9b765b84a3fd75
";

/// The part's.
const PART_ENTRY: &str = "
    1e9ba6d33791971d59b8c5ff35b665bb5665429daf8ae54f6e79268c957eb40d
    7abe4fee78d6073e24ab25875fb7195d6d80e4f339187c8f17c266c5b6f46640
    b44bcad5a13c6dab3cd4607565fb7526d9290c2ea28aa2cc1bb493a84825d084
    7b0d57b40d9f9acba21493d7b49cbf17eb7658f08262017569372c82315670dd
    5335048d56745f3f45c436d72e82381e345b9428e51614c766a6c74826a9
";
