//! Formats: byte by byte, and what is rejected.

use std::path::Path;

use expect_test::expect;
use fulgurite_catalog::row::{Row as Versioned, encode};
use fulgurite_codes::{Signature, sector_checksum, signature};
use fulgurite_disks::{Guard, Lease, PlaceId, Power};
use fulgurite_tome_core::consistency::Change;
use fulgurite_tome_core::group::{Group, Move};
use fulgurite_tome_core::membership::Membership;
use fulgurite_tome_core::membership_state::{Building, MembershipState};
use fulgurite_tome_core::metadata::{Object, Row, Scrubbed, TomeMetadata};
use fulgurite_tome_core::object_assembler::{ExpectedObject, VerifiedObject};
use fulgurite_tome_core::pending::{Parities, Pending};
use fulgurite_tome_core::rebuild::Rebuild;
use fulgurite_tome_core::token::{TokenId, TokenState};
use fulgurite_tome_core::{
    Epoch, GroupId, Layout, Member, Offset, Parts, PhysicalBlock, RegionId, RegionIndex, TomeId,
    Version,
};
use fulgurite_units::{ByteCount, Duration, ErrorKind, Instant, TomeSetId};

use crate::rows::{
    BlockRow, DeltaRow, FloorRow, MemberSlotRow, MembershipRow, ObjectRow, PendingRow, ScrubRow,
    TomeRow,
};
use crate::set_store::{GroupRow, MadeRow, SetRow, TokenRow};
use crate::spin_gate::SpinGate;
use crate::start_counts::{CopyAge, StartCountsRow, StartRow};
use crate::{Disk, Label, MetadataStore, TOME_FILE, TomeIdentity, TomesError, identity};
use crate::{FAIL_POINTS, FailPoints};

const REGION: RegionIndex = RegionIndex::new(1);

fn layout(regions: u32) -> Layout {
    let segment = "4+2".parse().unwrap();
    let block = ByteCount::new(256);
    Layout::new(Parts { block, segment, segments: 2, regions, spares: 20 }).unwrap()
}

fn set(number: u8) -> TomeSetId {
    TomeSetId::from_bytes([number; 16])
}

fn own(tome: u32) -> TomeIdentity {
    TomeIdentity::new(set(7), TomeId::new(tome), layout(3))
}

/// Returns a group in which tome 0 has data.
fn group() -> Group {
    let slots = (0..5).map(|tome| RegionId { tome: TomeId::new(tome), index: REGION });
    Group::new(GroupId::new(3), "3+2".parse().unwrap(), slots.collect()).unwrap()
}

fn lease(folder: &Path) -> Lease {
    let (guard, place) = (Guard::new(), PlaceId::new(0));
    guard.add(place, folder);
    guard.turn(place, Power::SpinningUp).unwrap();
    guard.turn(place, Power::Active).unwrap();
    guard.acquire(place).unwrap()
}

fn pending(offset: u32, old: Option<u32>, new: u32) -> Pending {
    Pending {
        offset: Offset::new(offset),
        old: old.map(PhysicalBlock::new),
        new: PhysicalBlock::new(new),
        change: signature(&[3; 256]),
        missing: Parities::all("3+2".parse().unwrap()),
        is_sent: false,
        since: Instant::from_nanos(300),
    }
}

fn change(version: u32) -> Change {
    let version = Version::new(version);
    Change { offset: Offset::new(2), version, signature: Signature([1, 2, 3, 4, 5, 6, 7, 8]) }
}

#[track_caller]
fn golden(row: &impl Versioned, expected: &expect_test::Expect) {
    expected.assert_eq(&hex::encode(encode(row).unwrap()));
}

#[test]
fn row_format_v1_is_stable() {
    let identity = own(300);
    let row = TomeRow { set: identity.set, tome: identity.tome, layout: identity.layout };
    golden(&row, &expect!["011007070707070707070707070707070707ac02800203342b32020314"]);
    golden(&MemberSlotRow(group()), &expect!["010303332b32050001010102010301040100"]);
    let membership =
        Membership::new(group(), RegionId { tome: TomeId::new(0), index: REGION }).unwrap();
    let membership =
        Membership { state: MembershipState::Left, latest: Version::new(300), ..membership };
    golden(&MembershipRow::new(&membership), &expect!["010003ac020000"]);
    let (physical_block, version) = (PhysicalBlock::new(300), Version::new(7));
    golden(
        &BlockRow { physical_block, version, signature: [9; 8] },
        &expect!["01ac02070909090909090909"],
    );
    golden(&PendingRow(pending(5, Some(6), 700)), &expect!["01050106bc05422a45941fef58430300ac02"]);
    let rebuilt = DeltaRow { change: change(9), is_folded: true, slot: None };
    golden(&rebuilt, &expect!["01020901020304050607080100"]);
    let received = DeltaRow { slot: Some(300), is_folded: false, ..rebuilt };
    golden(&received, &expect!["01020901020304050607080001ac02"]);
    golden(&FloorRow(Version::new(300)), &expect!["01ac02"]);
    let blocks = vec![(REGION, Offset::new(2)), (REGION, Offset::new(300))];
    let object = Object { blocks, bytes: 400, digest: sector_checksum(b"bytes") };
    golden(
        &ObjectRow(object),
        &expect![
            "0102010201ac029003df19b1f105ff929191ce49d0bbfdc5b4edc2a71a40f502dc955359eb33649e24"
        ],
    );
    let scrubbed = Scrubbed { next: 5, spent: Duration::from_nanos(6), passes: 7 };
    let own = SetRow { set: set(7), layout: layout(3), split: "3+2".parse().unwrap(), tomes: 300 };
    golden(&own, &expect!["011007070707070707070707070707070707800203342b3202031403332b32ac02"]);
    golden(&GroupRow(group()), &expect!["010303332b32050001010102010301040100"]);
    golden(&MadeRow(TomeId::new(300)), &expect!["01ac02"]);
    golden(&StartRow(300), &expect!["01ac02"]);
    golden(&StartCountsRow { begun: 300, done: 299 }, &expect!["01ac02ab02"]);
    let kept = |holder| TokenRow(TokenState { epoch: Epoch::new(300), holder });
    golden(&kept(Some(TomeId::new(9))), &expect!["01ac020109"]);
    golden(&kept(None), &expect!["01ac0200"]);
    golden(&ScrubRow(scrubbed), &expect!["01050607"]);
}

/// Returns all kinds of rows, in an order in which a core would make them.
fn all_kinds_of_rows() -> Vec<Row> {
    let block = |region, offset, physical_block, version, bytes: u8| Row::Block {
        region,
        offset: Offset::new(offset),
        physical_block: PhysicalBlock::new(physical_block),
        version: Version::new(version),
        change: signature(&[bytes; 256]),
    };
    let second = RegionIndex::new(2);
    let (region, version) = (REGION, Version::new(3));
    let waits = |version, pending| Row::Pending { region, version: Version::new(version), pending };
    let blocks = vec![(region, Offset::new(0))];
    let object = Object { blocks, bytes: 4, digest: sector_checksum(b"four") };
    let named = |name: &str| Row::Object { name: name.to_owned(), object: object.clone() };
    let (member, bytes) = (Member::new(1), vec![0xcd; 256]);
    let stored = |version| Row::Stored {
        region: second,
        member,
        change: Change { signature: signature(&bytes), ..change(version) },
        bytes: bytes.clone(),
    };
    let folded = |version| Row::Folded { region: second, member, version: Version::new(version) };
    let other = GroupId::new(4);
    let slots = (0..5).map(|tome| RegionId { tome: TomeId::new((tome + 2) % 5), index: second });
    let parity = Group::new(other, "3+2".parse().unwrap(), slots.collect()).unwrap();
    vec![
        Row::MemberSlot { region, group: group() },
        Row::MemberSlot { region: second, group: parity },
        block(region, 0, 0, 1, 1),
        waits(1, pending(0, None, 0)),
        // Not sent: the next change of the block is merged with it.
        block(region, 0, 1, 2, 2),
        waits(2, pending(0, Some(0), 1)),
        Row::Sent { region, version: Version::new(2) },
        block(region, 0, 2, 3, 3),
        waits(3, pending(0, Some(1), 2)),
        block(region, 1, 3, 4, 4),
        waits(4, pending(1, None, 3)),
        Row::Sent { region, version: Version::new(4) },
        Row::Confirmed { region, version: Version::new(4), parity: 0 },
        Row::Confirmed { region, version: Version::new(4), parity: 1 },
        Row::Sent { region, version },
        Row::Confirmed { region, version, parity: 1 },
        // Repaired: the same version elsewhere.
        Row::Block {
            region,
            offset: Offset::new(0),
            physical_block: PhysicalBlock::new(9),
            version,
            change: Signature::ZERO,
        },
        named("kept\0"),
        named("gone"),
        Row::Removed { name: "gone".to_owned() },
        stored(3),
        stored(4),
        stored(6),
        folded(3),
        folded(4),
        block(second, 2, 40, 1, 7),
        Row::Floor { region: second, member, floor: Version::new(4) },
        stored(8),
        Row::Scrubbed(Scrubbed { next: 5, spent: Duration::from_nanos(6), passes: 7 }),
    ]
}

/// Ignores epochs of regions: they start over with a start, and count changes.
fn assert_same(found: &TomeMetadata, expected: &TomeMetadata) {
    let regions = |metadata: &TomeMetadata| -> Vec<_> {
        let state = |region: &fulgurite_tome_core::metadata::Region| {
            let physical_blocks: Vec<_> =
                (0..12).map(|offset| region.physical_block(Offset::new(offset))).collect();
            let versions: Vec<_> = (0..12).map(|o| region.version(Offset::new(o))).collect();
            let report = region.report();
            let (tree, side) = (region.tree().clone(), report.side);
            (
                region.membership().clone(),
                region.role().clone(),
                physical_blocks,
                versions,
                tree,
                side,
            )
        };
        metadata.regions().map(|(index, region)| (index, region.latest(), state(region))).collect()
    };
    assert_eq!(regions(found), regions(expected));
    assert!(found.objects().eq(expected.objects()));
    assert_eq!(found.scrubbed(), expected.scrubbed());
}

#[test]
fn committed_rows_survive_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let (path, identity) = (folder.path().join("tome"), own(0));
    let mut expected = TomeMetadata::new(identity.tome, identity.layout);
    drop(MetadataStore::init(&path, &identity).unwrap());
    for (number, rows) in all_kinds_of_rows().chunks(2).enumerate() {
        rows.iter().for_each(|row| expected.apply(row).unwrap());
        let store = MetadataStore::open(&path, &identity).unwrap();
        store.commit(rows, &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
        assert_same(&store.load(&identity).unwrap(), &expected);
        drop(store);
        if number % 4 == 0 {
            let store = MetadataStore::open(&path, &identity).unwrap();
            assert_same(&store.load(&identity).unwrap(), &expected);
        }
    }
    // The same in one commit.
    let store = MetadataStore::init(&folder.path().join("other"), &identity).unwrap();
    store.commit(&all_kinds_of_rows(), &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
    assert_same(&store.load(&identity).unwrap(), &expected);
    let floor = expected.region(RegionIndex::new(2)).unwrap();
    let stored: Vec<u32> = floor.stored().map(|(_, version, _)| version.get()).collect();
    assert_eq!(stored, [4, 6, 8], "nothing is stored below the floor");
    assert_eq!(expected.region(REGION).unwrap().pending().unwrap().len(), 2);
}

/// Returns a delta of the second region of [`all_kinds_of_rows`] with bytes of its own.
fn another_delta(version: u32) -> Row {
    let bytes = vec![u8::try_from(version).unwrap(); 256];
    let change = Change { signature: signature(&bytes), ..change(version) };
    Row::Stored { region: RegionIndex::new(2), member: Member::new(1), change, bytes }
}

#[test]
fn delta_bytes_are_written_once_and_slots_are_reused() {
    let folder = tempfile::tempdir().unwrap();
    let identity = own(0);
    let fail = FailPoints::unarmed(&FAIL_POINTS);
    let path = folder.path().join("deltas");
    let length = || std::fs::metadata(&path).unwrap().len();
    let mut expected = TomeMetadata::new(identity.tome, identity.layout);
    all_kinds_of_rows().iter().for_each(|row| expected.apply(row).unwrap());
    let mut store = MetadataStore::init(folder.path(), &identity).unwrap();
    store.commit(&all_kinds_of_rows(), &fail).unwrap();
    // The commit added four deltas and removed one of them.
    assert_eq!(length(), 4 * 256);
    let region = RegionIndex::new(2);
    let member = Member::new(1);
    for version in 9..40 {
        let floor = Row::Floor { region, member, floor: Version::new(version) };
        let folded = Row::Folded { region, member, version: Version::new(version) };
        for rows in [vec![another_delta(version), floor], vec![folded]] {
            rows.iter().for_each(|row| expected.apply(row).unwrap());
            store.commit(&rows, &fail).unwrap();
            assert_same(&store.load(&identity).unwrap(), &expected);
        }
        if version % 7 == 0 {
            drop(store);
            store = MetadataStore::open(folder.path(), &identity).unwrap();
            assert_same(&store.load(&identity).unwrap(), &expected);
            assert!(length() <= 2 * 256, "the file is truncated behind the last slot");
        }
    }
    assert!(length() <= 4 * 256, "it does not grow");
    store.commit(&[Row::Dropped { region }], &fail).unwrap();
    drop(store);
    drop(MetadataStore::open(folder.path(), &identity).unwrap());
    assert_eq!(length(), 0, "a dropped region has none");
}

#[test]
fn wrong_or_missing_delta_bytes_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (identity, fail) = (own(0), FailPoints::unarmed(&FAIL_POINTS));
    let store = MetadataStore::init(folder.path(), &identity).unwrap();
    store.commit(&all_kinds_of_rows(), &fail).unwrap();
    let path = folder.path().join("deltas");
    let whole = std::fs::read(&path).unwrap();
    let mut bad = whole.clone();
    bad[2 * 256 + 9] ^= 1;
    std::fs::write(&path, bad).unwrap();
    let error = store.load(&identity).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().ends_with("do not match its signature"), "{error}");
    drop(store);
    for left in [&whole[..3 * 256], &[]] {
        std::fs::write(&path, left).unwrap();
        let error = MetadataStore::open(folder.path(), &identity).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        MetadataStore::open(folder.path(), &identity).unwrap_err().kind(),
        ErrorKind::Corrupt
    );
    std::fs::write(&path, &whole).unwrap();
    let store = MetadataStore::open(folder.path(), &identity).unwrap();
    assert_eq!(store.load(&identity).unwrap().objects().count(), 1);
}

/// Returns rows of a data and a parity region that are rebuilt, a rebuild that is dropped, and a
/// region that leaves.
fn moves() -> Vec<Row> {
    let place = |index: u32| RegionId { tome: TomeId::new(0), index: RegionIndex::new(index) };
    let slots = |own: usize, index: u32| -> Vec<RegionId> {
        let others = (1..5).map(|tome| RegionId { tome: TomeId::new(tome), index: REGION });
        let mut slots: Vec<RegionId> = others.collect();
        slots.insert(own, place(index));
        slots
    };
    let split: fulgurite_tome_core::CodeParams = "3+2".parse().unwrap();
    let taken = |index: u32, own: usize, id: u32| {
        let (member, from) = (Member::at(own), RegionId { tome: TomeId::new(9), index: REGION });
        let planned = Move { group: GroupId::new(id), member, from, to: place(index) };
        let mut building = Building::new(planned, Instant::from_nanos(300));
        let available = (0..5).filter(|at| *at != own).map(Member::at).collect();
        let plan = Rebuild::new(planned.group, split, member, &available).unwrap();
        building.latest = [30, 40, 50].map(Version::new).to_vec();
        (building.available, building.plan, building.segment) = (available, Some(plan), 1);
        let group = Group::new(GroupId::new(id), split, slots(own, index)).unwrap();
        let region = RegionIndex::new(index);
        let block = |version: u32, physical_block: u32| Row::Block {
            region,
            offset: Offset::new(physical_block % 12),
            physical_block: PhysicalBlock::new(physical_block),
            version: Version::new(version),
            change: signature(&[3; 256]),
        };
        vec![
            Row::MemberSlot { region, group },
            Row::Building { region, building: building.clone() },
            block(70, index * 12),
            block(71, index * 12 + 1),
            Row::Cleared { region },
            Row::Building { region, building },
            block(72, index * 12 + 2),
            Row::SlotBuilt { region },
            Row::Learned { region, tome: TomeId::new(9) },
        ]
    };
    let (data, parity, dropped) = (taken(0, 1, 5), taken(1, 4, 6), taken(2, 0, 7));
    let after = data[0].clone();
    let Row::MemberSlot { group, .. } = after else { panic!("a member slot") };
    let from = group.slots()[1];
    let to = RegionId { tome: TomeId::new(8), index: REGION };
    let planned = Move { group: group.id(), member: Member::new(1), from, to };
    let left = group.after(&planned).unwrap();
    let (first, second, third) = (RegionIndex::new(0), REGION, RegionIndex::new(2));
    let ends = [
        Row::Named { region: first },
        Row::Frozen { region: second, planned: Some(planned) },
        Row::Frozen { region: second, planned: None },
        Row::Dropped { region: third },
        Row::Regroup { region: first, group: left },
    ];
    let made = data.into_iter().chain(parity).chain(dropped.into_iter().take(7));
    made.chain(ends).collect()
}

#[test]
fn rebuild_rows_survive_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let (path, identity) = (folder.path().join("tome"), own(0));
    let mut expected = TomeMetadata::new(identity.tome, identity.layout);
    drop(MetadataStore::init(&path, &identity).unwrap());
    for row in moves() {
        expected.apply(&row).unwrap();
        let store = MetadataStore::open(&path, &identity).unwrap();
        store.commit(&[row], &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
        assert_same(&store.load(&identity).unwrap(), &expected);
    }
    // The same in one commit.
    let store = MetadataStore::init(&folder.path().join("other"), &identity).unwrap();
    store.commit(&moves(), &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
    assert_same(&store.load(&identity).unwrap(), &expected);
    assert_eq!(expected.regions().count(), 2, "one was dropped");
    let latest = expected.region(REGION).unwrap().latest();
    assert_eq!(latest, Version::new(72), "no version is reused");
}

#[test]
fn metadata_store_of_another_tome_or_in_use_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tome");
    let refused = |identity: &TomeIdentity, may_make| {
        let opened = if may_make { MetadataStore::init } else { MetadataStore::open };
        let error = opened(&path, identity).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        error.to_string().replace(&path.display().to_string(), "PATH")
    };
    expect![[
        r#"the metadata store "PATH" cannot be used: it is missing: there is no such folder"#
    ]]
    .assert_eq(&refused(&own(0), false));
    let store = MetadataStore::init(&path, &own(0)).unwrap();
    expect![[r#""PATH/lock" is in use by another process"#]].assert_eq(&refused(&own(0), true));
    store.commit(&all_kinds_of_rows(), &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
    drop(store);
    expect![[r#"the metadata store "PATH" cannot be used: it belongs to tome 0, not to tome 1"#]]
        .assert_eq(&refused(&own(1), true));
    let other = TomeIdentity::new(set(8), TomeId::new(0), layout(3));
    assert!(refused(&other, true).ends_with(&format!(
        "it belongs to set {}, not to set {}",
        set(7),
        set(8)
    )));
    let other = TomeIdentity::new(set(7), TomeId::new(0), layout(4));
    assert!(refused(&other, true).contains("its layout is"));
    let (store, found) = MetadataStore::open_any(&path).unwrap();
    assert_eq!(found, own(0));
    assert_eq!(store.load(&found).unwrap().objects().count(), 1);
}

#[test]
fn inconsistent_rows_are_errors_not_panics() {
    let bad = |row: Row| {
        let folder = tempfile::tempdir().unwrap();
        let store = MetadataStore::init(folder.path(), &own(0)).unwrap();
        store.commit(&all_kinds_of_rows(), &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
        store.commit(&[row], &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
        let error = store.load(&own(0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        error.to_string().replace("the metadata store of tome 0 is damaged: ", "")
    };
    let block = |offset, physical_block| Row::Block {
        region: REGION,
        offset: Offset::new(offset),
        physical_block: PhysicalBlock::new(physical_block),
        version: Version::new(50),
        change: Signature::ZERO,
    };
    expect!["offset 12 is not below 12"].assert_eq(&bad(block(12, 50)));
    expect!["physical block 56 is not below 56"].assert_eq(&bad(block(3, 56)));
    expect!["two blocks of region 1 share a physical block"].assert_eq(&bad(block(3, 9)));
    expect!["physical block 40 of region 2 belongs to another one too"]
        .assert_eq(&bad(block(3, 40)));
    let (region, member) = (REGION, Member::new(0));
    let floor = Row::Floor { region, member, floor: Version::new(2) };
    expect!["region 1 cannot have deltas of member 0 of its group"].assert_eq(&bad(floor));
    let object = Object {
        blocks: vec![(REGION, Offset::new(0))],
        bytes: 3,
        digest: sector_checksum(b"one"),
    };
    let second = Row::Object { name: "second".to_owned(), object };
    expect![[r#"block 0 of region 1 cannot belong to object "second""#]].assert_eq(&bad(second));
}

const LABEL: Label = Label { region: REGION, offset: Offset::new(3), version: Version::new(9) };

#[test]
fn file_format_v1_is_stable() {
    let folder = tempfile::tempdir().unwrap();
    let lease = lease(folder.path());
    identity::make(&lease, &own(300), &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
    let mut disk = Disk::open(lease, &own(300)).unwrap();
    disk.write(PhysicalBlock::new(13), LABEL, &[0xee; 256], &FailPoints::unarmed(&FAIL_POINTS))
        .unwrap();
    disk.sync().unwrap();
    let bytes = std::fs::read(folder.path().join("blocks-00001")).unwrap();
    assert_eq!(bytes.len(), 4096 + 2 * 768);
    // The bytes that are not zero.
    let shown = |from: usize, length: usize| hex::encode(&bytes[from..from + length]);
    expect!["46554c47544f4d46010000000100000007070707070707070707070707070707"]
        .assert_eq(&shown(0, 32));
    expect!["2c0100000c000000000100000000000004000000020000000200000003000000"]
        .assert_eq(&shown(32, 32));
    expect!["14000000"].assert_eq(&shown(64, 4));
    expect!["743c4d49"].assert_eq(&shown(4092, 4));
    let slot = 4096 + 768;
    expect!["46554c47544f4d42070707070707070707070707070707072c0100000d000000"]
        .assert_eq(&shown(slot, 32));
    expect!["010000000300000009000000000000000001000000000000b7d12cbab8fb20ed"]
        .assert_eq(&shown(slot + 32, 32));
    expect!["60e75c91"].assert_eq(&shown(slot + 508, 4));
    assert_eq!(bytes[slot + 512..], [0xee; 256]);
    let text = std::fs::read_to_string(folder.path().join(TOME_FILE)).unwrap();
    expect![[r#"
        {
          "format": "fulgurite-tome-1",
          "set": "07070707-0707-0707-0707-070707070707",
          "tome": 300,
          "layout": {
            "block": "256B",
            "segment": "4+2",
            "segments": 2,
            "regions": 3,
            "spares": 20
          }
        }"#]]
    .assert_eq(&text);
    assert_eq!(disk.read(PhysicalBlock::new(13)).unwrap(), Some((LABEL, vec![0xee; 256])));
}

#[test]
fn scattered_object_is_read_only_if_every_byte_matches() {
    let folder = tempfile::tempdir().unwrap();
    let lease = lease(folder.path());
    identity::make(&lease, &own(0), &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
    let mut disk = Disk::open(lease.clone(), &own(0)).unwrap();
    // Two in sequence, one after a gap, one before, and two in another file.
    let physical_blocks = [2, 3, 5, 1, 12, 13].map(PhysicalBlock::new);
    let blocks: Vec<Vec<u8>> = (1..7).map(|byte| vec![byte; 256]).collect();
    for (physical_block, block) in physical_blocks.iter().zip(&blocks) {
        disk.write(*physical_block, LABEL, block, &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
    }
    disk.sync().unwrap();
    let bytes = blocks.concat()[..6 * 256 - 100].to_vec();
    // The last block of an object is padded with zeros.
    let mut last = vec![6; 156];
    last.resize(256, 0);
    disk.write(physical_blocks[5], LABEL, &last, &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
    let signatures = blocks[..5].iter().chain([&last]).map(|block| signature(block)).collect();
    let (length, digest) = (bytes.len() as u64, sector_checksum(&bytes));
    let wanted = ExpectedObject { signatures, block_bytes: 256, bytes: length, digest };
    let read_object = |physical_blocks: &[PhysicalBlock]| {
        let mut disk = Disk::open(lease.clone(), &own(0)).unwrap();
        disk.read_object(physical_blocks, wanted.clone()).unwrap().map(VerifiedObject::into_bytes)
    };
    assert_eq!(read_object(&physical_blocks), Some(bytes));
    assert_eq!(
        read_object(&[2, 3, 5, 1, 12, 14].map(PhysicalBlock::new)),
        None,
        "nothing is there"
    );
    assert_eq!(
        read_object(&[2, 3, 5, 1, 12, 30].map(PhysicalBlock::new)),
        None,
        "there is no such file"
    );
    for physical_block in physical_blocks {
        let (file, slot) = (physical_block.get() / 12, physical_block.get() % 12);
        let path = folder.path().join(format!("blocks-{file:05}"));
        let whole = std::fs::read(&path).unwrap();
        for at in [0, 9, 40, 60, 511, 512, 600, 767] {
            let mut bad = whole.clone();
            bad[4096 + 768 * slot as usize + at] ^= 1;
            std::fs::write(&path, bad).unwrap();
            assert_eq!(
                read_object(&physical_blocks),
                None,
                "byte {at} of physical block {physical_block}"
            );
        }
        std::fs::write(&path, whole).unwrap();
    }
}

#[test]
fn block_with_mismatched_label_is_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let lease = lease(folder.path());
    identity::make(&lease, &own(0), &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
    let mut disk = Disk::open(lease.clone(), &own(0)).unwrap();
    for number in 0..3 {
        disk.write(
            PhysicalBlock::new(number),
            LABEL,
            &[1; 256],
            &FailPoints::unarmed(&FAIL_POINTS),
        )
        .unwrap();
    }
    disk.sync().unwrap();
    let path = folder.path().join("blocks-00000");
    let whole = std::fs::read(&path).unwrap();
    let read = |bytes: &[u8], number| {
        std::fs::write(&path, bytes).unwrap();
        Disk::open(lease.clone(), &own(0)).unwrap().read(PhysicalBlock::new(number)).unwrap()
    };
    assert_eq!(read(&whole, 1), Some((LABEL, vec![1; 256])));
    for at in [4096 + 768, 4096 + 768 + 40, 4096 + 768 + 511, 4096 + 768 + 700] {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        assert_eq!(read(&bad, 1), None, "byte {at}");
        assert!(read(&bad, 2).is_some());
    }
    let mut moved = whole.clone();
    moved.copy_within(4096..4096 + 768, 4096 + 768);
    assert_eq!(read(&moved, 1), None, "the block belongs elsewhere");
    assert_eq!(read(&whole[..whole.len() - 1], 2), None, "cut off");
    assert_eq!(read(&whole, 30), None, "there is no such file");
    let mut bad = whole;
    bad[9] ^= 1;
    assert_eq!(read(&bad, 1), None, "a file that is not this tome's");
    let mut disk = Disk::open(lease.clone(), &own(0)).unwrap();
    let error = disk
        .write(PhysicalBlock::new(1), LABEL, &[2; 256], &FailPoints::unarmed(&FAIL_POINTS))
        .unwrap_err();
    expect!["a file of tome 0 is damaged: blocks-00000 has a header that is not of this tome"]
        .assert_eq(&error.to_string());
}

#[test]
fn disk_of_another_tome_is_rejected_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let lease = lease(folder.path());
    let fail = FailPoints::unarmed(&FAIL_POINTS);
    let refused = |identity: &TomeIdentity| {
        let error = identity::make(&lease, identity, &fail).unwrap_err();
        assert!(matches!(error, TomesError::WrongDisk { .. }));
        error.to_string().replace("the disk of tome 0 cannot be used: ", "")
    };
    std::fs::write(folder.path().join("blocks-00000"), "whose?").unwrap();
    expect![[r#"it has "blocks-00000" but no identity file"#]].assert_eq(&refused(&own(0)));
    std::fs::remove_file(folder.path().join("blocks-00000")).unwrap();
    let error = Disk::open(lease.clone(), &own(0)).unwrap_err();
    expect!["the disk of tome 0 cannot be used: it has no identity file"]
        .assert_eq(&error.to_string());
    identity::make(&lease, &own(0), &fail).unwrap();
    let text = std::fs::read_to_string(folder.path().join(TOME_FILE)).unwrap();
    expect!["the disk of tome 1 cannot be used: it belongs to tome 0, not to tome 1"]
        .assert_eq(&refused(&own(1)));
    let other = TomeIdentity::new(set(8), TomeId::new(0), layout(3));
    let expected = format!("it belongs to set {}, not to set {}", set(7), set(8));
    assert_eq!(refused(&other), expected);
    refused(&TomeIdentity::new(set(7), TomeId::new(0), layout(2)));
    assert_eq!(std::fs::read_to_string(folder.path().join(TOME_FILE)).unwrap(), text);
    // One of the two copies is enough, and the other is rewritten.
    std::fs::write(folder.path().join(TOME_FILE), &text[..20]).unwrap();
    Disk::open(lease.clone(), &own(0)).unwrap();
    refused(&own(1));
    identity::make(&lease, &own(0), &fail).unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join(TOME_FILE)).unwrap(), text);
}

#[test]
fn start_counts_detect_older_copies() {
    let starts = StartCountsRow { begun: 7, done: 7 };
    let begun = starts.next();
    assert_eq!(
        (begun, begun.ended()),
        (StartCountsRow { begun: 8, done: 7 }, StartCountsRow { begun: 8, done: 8 })
    );
    let ages = |counts: StartCountsRow| [6, 7, 8, 9].map(|own| counts.age(StartRow(own)));
    use CopyAge::{Latest, Older, SetOlder};
    assert_eq!(ages(starts), [Older, Latest, SetOlder, SetOlder]);
    assert_eq!(ages(begun), [Older, Latest, Latest, SetOlder], "the store has it, or not");
    assert_eq!(ages(begun.ended()), [Older, Older, Latest, SetOlder]);
    // Stores that were never started.
    assert_eq!(StartCountsRow::default().age(StartRow::default()), Latest);
}

#[test]
fn spin_gate_admits_one_spinning_disk_per_token() {
    let gate = SpinGate::default();
    let (token, epoch) = (TokenId(0), Epoch::new);
    let (first, second) = (TomeId::new(1), TomeId::new(2));
    gate.admit(token, epoch(3), first).unwrap();
    gate.admit(TokenId(1), epoch(1), TomeId::new(3)).unwrap();
    let error = gate.admit(token, epoch(4), second).unwrap_err();
    expect!["the disk of tome 1 still spins under token 0"].assert_eq(&error.to_string());
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // The later lease is known, so the earlier one is void.
    let stale = gate.admit(token, epoch(3), first).unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Conflict);
    assert_eq!((gate.token_of(first), gate.token_of(second)), (Some(token), None));
    gate.stopped(first);
    gate.admit(token, epoch(4), second).unwrap();
    assert_eq!((gate.token_of(first), gate.token_of(second)), (None, Some(token)));
}
