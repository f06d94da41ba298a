//! Rows survive the round trip, have their golden bytes, and bytes that are no row are an error.

use std::collections::BTreeSet;
use std::fmt::{Debug, Write as _};

use fulgurite_units::PlatterId;
use proptest::prelude::*;

use super::*;
use crate::testing;

/// The values from which rows of all kinds are built.
#[derive(Clone, Debug)]
struct Facts {
    name: ObjectName,
    id: [u8; 16],
    large: u64,
    small: u32,
    text: String,
    labels: Labels,
    /// Whether optional fields are set.
    is_full: bool,
}

impl Facts {
    /// Returns fixed values.
    fn fixed() -> Self {
        Self {
            name: ObjectName { version: testing::version(Some([8; 16])), ..testing::name("a\0b") },
            id: [1; 16],
            large: 0x0102_0304_0506_0708,
            small: 300,
            text: "why".to_owned(),
            labels: testing::labels(),
            is_full: true,
        }
    }

    fn some<T>(&self, value: T) -> Option<T> {
        self.is_full.then_some(value)
    }

    fn many<T>(&self, value: T) -> Vec<T> {
        self.some(value).into_iter().collect()
    }

    fn object_id(&self) -> ObjectId {
        ObjectId::from_bytes(self.id)
    }

    fn platter(&self) -> PlatterId {
        PlatterId::from_bytes(self.id)
    }

    fn time(&self) -> UnixTime {
        UnixTime::from_millis(self.large)
    }

    fn checksum(&self) -> Option<Checksum> {
        let algorithm = ChecksumAlgorithm::Sha1;
        self.some(Checksum { algorithm, value: vec![2; 20], composite_parts: Some(self.small) })
    }

    fn meta(&self) -> ObjectMeta {
        let user = self.many((self.text.clone(), "value".to_owned()));
        let content_type = self.some(self.text.clone());
        ObjectMeta { content_type, user: user.into_iter().collect(), ..ObjectMeta::default() }
    }

    fn mark(&self) -> RestoreMark {
        let (requested, expiry) = (self.time(), self.some(self.time()));
        RestoreMark { days: self.small, retrieval: Retrieval::Expedited, requested, expiry }
    }

    fn object(&self) -> ObjectRow {
        ObjectRow {
            object_id: self.object_id(),
            bytes: self.large,
            etag: self.text.clone(),
            modified: self.time(),
            class: StorageClass::DeepArchive,
            meta: self.meta(),
            checksum: self.checksum(),
            part_count: self.some(self.small),
            body_count: self.small,
            bodies_staged: 1,
            upload_id: self.some(UploadId::from_bytes(self.id)),
            restore: self.some(self.mark()),
            version: self.name.version,
            labels: self.labels.clone(),
            home: self.home(),
        }
    }

    fn home(&self) -> Home {
        self.some(Home::Tier(tier())).unwrap_or(Home::Online)
    }

    /// Returns a body in each place.
    fn bodies(&self) -> [BodyRow; 4] {
        let extent = Extent { segment: self.small, offset: self.large, bytes: 7 };
        let shard = Shard {
            platter: self.platter(),
            offset: self.large,
            body_offset: 9,
            bytes: 7,
            crc: self.some(self.large),
        };
        let logged = |queued| LoggedBody {
            kind: LogKind::Online,
            extents: vec![extent; 2],
            framing: self.many(extent),
            queued: self.some(queued),
        };
        let sequence = self.large;
        let places = [
            Place::Log(logged(Queued::Glass { sequence, placed: vec![shard] })),
            Place::Log(logged(Queued::Tier { sequence, tier: tier() })),
            Place::Glass(vec![shard]),
            Place::Tier(tier()),
        ];
        places.map(|place| BodyRow {
            body_id: self.object_id(),
            key_slot: self.small,
            bytes: self.large,
            digest: self.large,
            place,
            restored: self.some(vec![extent]),
        })
    }
}

fn tier() -> TierName {
    TierName::new("cold").unwrap()
}

/// A check applied to a row of each kind.
trait Check {
    fn row<T: Row + PartialEq + Debug>(&mut self, row: &T);
}

fn each_row(facts: &Facts, check: &mut impl Check) {
    let (name, object_id) = (facts.name.clone(), facts.object_id());
    facts.bodies().iter().for_each(|body| check.row(body));
    let [body, ..] = facts.bodies();
    let (bytes, version) = (facts.large, name.version);
    check.row(&facts.object());
    let md5 = facts.id;
    check.row(&UnconfirmedRow { object_id, version, body: body.clone() });
    check.row(&PartRow { body, md5, modified: facts.time(), checksum: facts.checksum() });
    check.row(&BucketRow { created: facts.time() });
    let (index, arrived) = (facts.small, facts.time());
    check.row(&QueueRow { object_id, index, name: name.clone(), arrived, bytes });
    let (failures, error) = (facts.small, facts.some(facts.text.clone()));
    check.row(&RestoreRow { name: name.clone(), mark: facts.mark(), failures, error });
    check.row(&ExpiryRow { name });
    check.row(&UploadRow {
        initiated: facts.time(),
        class: StorageClass::Glacier,
        meta: facts.meta(),
        algorithm: facts.some(ChecksumAlgorithm::Crc32c),
        full_object: facts.is_full,
        home: facts.home(),
    });
    check.row(&facts.platter());
    check.row(&SettledRow { staging: facts.small, online: 7 });
    check.row(&Totals { objects_online: 1, sequence: bytes, run: 7, ..Totals::default() });
    check.row(&CatalogAge { run: bytes, commits: 7 });
    check.row(&PurgeRow { marked: bytes, forgotten: 7, tries: 3 });
    check.row(&tier());
    check.row(&tiers::StoreRow { id: facts.text.clone() });
    check.row(&Checksum {
        algorithm: ChecksumAlgorithm::Sha1,
        value: vec![2; 20],
        composite_parts: facts.some(facts.small),
    });
    check.row(&facts.small);
    check.row(&facts.large);
}

/// Returns the name of a type without its path.
fn name_of<T>() -> &'static str {
    std::any::type_name::<T>().rsplit("::").next().unwrap()
}

/// Checks that a row decodes from exactly its bytes, and not in a future version.
struct RoundTrip;

impl Check for RoundTrip {
    fn row<T: Row + PartialEq + Debug>(&mut self, row: &T) {
        let bytes = encode(row).unwrap();
        assert_eq!(bytes[0], T::VERSION);
        assert_eq!(decode::<T>(META, &bytes).unwrap(), *row);
        for cut in 0..bytes.len() {
            assert!(decode::<T>(META, &bytes[..cut]).is_err(), "cut at {cut} of {}", bytes.len());
        }
        assert!(decode::<T>(META, &[&bytes[..], &[0]].concat()).is_err(), "{}", name_of::<T>());
        let newer = [&[T::VERSION + 1], &bytes[1..]].concat();
        let refused = decode::<T>(QUEUE, &newer).unwrap_err();
        assert!(matches!(refused, ArchiveError::Newer { .. }), "{refused}");
        let (next, known) = (T::VERSION + 1, T::VERSION);
        let expected = format!(
            "written by a newer program: a row of space \"queue\" of the catalog has version \
             {next}, and this program knows up to {known}"
        );
        assert_eq!(refused.to_string(), expected);
        assert!(decode::<T>(META, &[&[0], &bytes[1..]].concat()).is_err(), "{}", name_of::<T>());
    }
}

/// Collects the bytes of each kind of row, as lines.
#[derive(Default)]
struct Golden {
    text: String,
    kinds: BTreeSet<&'static str>,
}

impl Check for Golden {
    fn row<T: Row + PartialEq + Debug>(&mut self, row: &T) {
        self.kinds.insert(name_of::<T>());
        let bytes = encode(row).unwrap();
        writeln!(self.text, "{} {}", name_of::<T>(), bytes[0]).unwrap();
        for line in bytes[1..].chunks(36) {
            writeln!(self.text, "    {}", hex::encode(line)).unwrap();
        }
    }
}

/// Checks that any bytes in any version decode or are an error.
struct AnyBytes<'a>(&'a [u8]);

impl Check for AnyBytes<'_> {
    fn row<T: Row + PartialEq + Debug>(&mut self, _: &T) {
        for version in 0..=T::VERSION + 1 {
            // They need not be rejected, but what decodes is a row that survives the round trip.
            if let Ok(row) = decode::<T>(META, &[&[version], self.0].concat()) {
                assert_eq!(decode::<T>(META, &encode(&row).unwrap()).unwrap(), row);
            }
        }
    }
}

#[test]
fn every_row_kind_matches_golden_bytes() {
    let mut golden = Golden::default();
    each_row(&Facts::fixed(), &mut golden);
    let numbers_and_ids = ["u32", "u64", "PlatterId"].len();
    let declared = include_str!("coding.rs").matches("\nimpl Row for ").count() + numbers_and_ids;
    assert_eq!(golden.kinds.len(), declared, "every kind of row has golden bytes");
    expect_test::expect_file!["bytes.txt"].assert_eq(&golden.text);
}

#[test]
fn store_has_the_spaces_of_all_crates() {
    for space in fulgurite_glass::SPACES {
        assert!(SPACES.contains(&space), "{space:?}");
    }
}

fn facts() -> impl Strategy<Value = Facts> {
    let version = prop::option::of(any::<[u8; 16]>()).prop_map(testing::version);
    let name = ("[a-z]{3,9}", ".{1,20}", version)
        .prop_map(|(bucket, key, version)| ObjectName::parse(&bucket, &key, version).unwrap());
    let labels = any::<bool>()
        .prop_map(|has_some| if has_some { testing::labels() } else { Labels::default() });
    let numbers = (any::<[u8; 16]>(), any::<u64>(), any::<u32>());
    (name, numbers, ".{0,9}", labels, any::<bool>()).prop_map(
        |(name, (id, large, small), text, labels, is_full)| Facts {
            name,
            id,
            large,
            small,
            text,
            labels,
            is_full,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_round_trip_and_truncated_rows_fail(facts in facts()) {
        each_row(&facts, &mut RoundTrip);
    }

    #[test]
    fn decoding_arbitrary_bytes_never_panics(bytes: Vec<u8>) {
        each_row(&Facts::fixed(), &mut AnyBytes(&bytes));
        let _ = parse_object_key(&bytes);
    }

    /// A row may have a name that this program does not allow.
    #[test]
    fn names_in_rows_are_validated(bucket in "[A-Z]{0,4}", key in ".{0,4}") {
        let row = encode(&ExpiryRow { name: testing::name("k") }).unwrap();
        let bytes = postcard::to_extend(&(bucket, key, 0u8), row[..1].to_vec()).unwrap();
        prop_assert!(decode::<ExpiryRow>(EXPIRIES, &bytes).is_err());
    }
}

proptest! {
    #[test]
    fn row_keys_round_trip_and_keep_name_order(
        a in ("[a-z]{3,5}", ".{0,6}"),
        b in ("[a-z]{3,5}", ".{0,6}"),
        id: [u8; 16],
        number: u64,
    ) {
        let (left, right) = (object_key(&a.0, &a.1), object_key(&b.0, &b.1));
        prop_assert_eq!(left.cmp(&right), a.cmp(&b));
        prop_assert_eq!(parse_object_key(&left).unwrap(), a.clone());
        prop_assert!(parse_object_key(&left[..left.len() - 1]).is_err());
        let other = [&left[..left.len() - 1], &[1]].concat();
        prop_assert!(parse_object_key(&other).is_err(), "only the current version has a row");

        let upload = UploadId::from_bytes(id);
        let parsed = parse_upload_key(&upload_key(&a.0, &a.1, upload)).unwrap();
        prop_assert_eq!(parsed, (a.1, upload));
        let (time, object) = (UnixTime::from_millis(number), ObjectId::from_bytes(id));
        prop_assert_eq!(parse_expiry_key(&expiry_key(time, object)).unwrap(), (time, object));
        let segment = u32::try_from(number >> 32).unwrap();
        for kind in LogKind::ALL {
            let parsed = parse_segment_key(&segment_key(kind, segment)).unwrap();
            prop_assert_eq!(parsed, (kind.code(), segment));
        }
    }
}
