//! The format: a platter has the same bytes as the golden one, which is readable, also by a reader
//! written from the description alone.

use expect_test::{expect, expect_file};
use fulgurite_platter::{
    ErrorKind, FORMAT_TEXT, ListEntry, ListReader, ListWriter, NoFaults, PlatterHeader, SetMember,
    TrackBuffer, list_bytes, list_entry_bytes,
};
use fulgurite_units::ObjectId;

use crate::peer::{Peer, solve_small};
use crate::support::{forged, open, read_all, single_header, tiny, user_bytes, write, write_set};

static GOLDEN: &[u8] = include_bytes!("../golden/platter-1.glass");

const DATA_BYTES: usize = 40_000;

fn entries() -> Vec<ListEntry> {
    let entry = |n: u8, offset, length| ListEntry {
        object: ObjectId::from_bytes([n; 16]),
        offset,
        length,
        body_offset: u64::from(n),
        body_bytes: length + u64::from(n),
        sealed: user_bytes(100 + usize::from(n), n.into()),
    };
    vec![entry(0, 0, 30_000), entry(1, 30_000, 10_000)]
}

fn golden_header() -> PlatterHeader {
    let sealed =
        entries().iter().map(|e| list_entry_bytes(u32::try_from(e.sealed.len()).unwrap())).sum();
    let mut header = single_header(&tiny(), DATA_BYTES as u64);
    header.list_bytes = list_bytes(sealed);
    header.list_entries = 2;
    header.members[0] = Some(SetMember {
        platter: header.platter,
        data_bytes: header.data_bytes,
        list_bytes: header.list_bytes,
    });
    header
}

fn golden_user_bytes() -> Vec<u8> {
    let header = golden_header();
    let mut bytes = user_bytes(DATA_BYTES, 42);
    let entry_bytes = header.list_bytes - list_bytes(0);
    let mut list = ListWriter::new(header.platter, 2, entry_bytes, &mut bytes);
    entries().iter().for_each(|entry| list.push(entry, &mut bytes));
    list.finish(&mut bytes);
    bytes
}

#[test]
fn new_platter_matches_the_golden_bytes() {
    let new = write(&golden_header(), &golden_user_bytes(), 7777);
    if option_env!("FULGURITE_WRITE_GOLDEN").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/platter-1.glass");
        std::fs::write(path, &new).unwrap();
    }
    assert_eq!(new.len(), GOLDEN.len());
    // The header tracks contain the text of the description, whose wording may improve; the digest
    // in the final record covers their checksums.
    let image = tiny().track_image_bytes();
    let tracks = image..GOLDEN.len() - 1024 - image;
    assert!(new[tracks.clone()] == GOLDEN[tracks.clone()], "the format has changed");
    let digest = fulgurite_codes::sector_checksum(&GOLDEN[tracks]);
    expect!["0f8c4ad6ace830690d768b8c27a57055aa441de33947fd9b565043df942b96dc"]
        .assert_eq(&hex(&digest));
    let golden = GOLDEN.to_vec();
    assert_eq!(open(&golden).unwrap().header(), open(&new).unwrap().header());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn golden_platter_is_readable() {
    let golden = GOLDEN.to_vec();
    let reader = open(&golden).unwrap();
    let bytes = read_all(&reader, &NoFaults).unwrap();
    assert!(bytes == golden_user_bytes());
    let header = reader.header();
    assert_eq!(header, &golden_header());
    let mut list = ListReader::new(header.platter);
    list.push(&bytes[DATA_BYTES..]);
    for entry in entries() {
        assert_eq!(list.next_entry().unwrap().unwrap(), entry);
    }
    assert_eq!(list.finish().unwrap(), 2);
    let report = reader.verify(&NoFaults, &mut TrackBuffer::new(), &mut |_, _| {}).unwrap();
    assert_eq!(report.seal_matches, Some(true));
}

#[test]
fn header_contains_what_a_reader_needs() {
    let json = serde_json::to_string_pretty(&Peer::open(GOLDEN).json).unwrap();
    expect_file!["../golden/header-1.json"].assert_eq(&(json + "\n"));
    assert!(FORMAT_TEXT.is_ascii());
    let shown = String::from_utf8_lossy(GOLDEN);
    assert!(shown.contains("## How to write a reader"));
}

#[test]
fn reader_written_from_the_description_reads_a_platter() {
    let user = golden_user_bytes();
    let mut file = GOLDEN.to_vec();
    let sector = 2176;
    let track = |n: usize| n * 11 * sector;
    // Three sectors of track 1 are lost, information and redundancy.
    for layer in [0, 5, 9] {
        file[track(1) + layer * sector + 500] ^= 1;
    }
    let peer = Peer::open(&file);
    let start = |t: usize| t * 16_384;
    let restored = peer.track(1).unwrap().concat();
    assert!(restored == user[start(0)..start(1)]);
    // A track with four losses exceeds its own code.
    file[track(1) + 7 * sector + 500] ^= 1;
    let peer = Peer::open(&file);
    assert!(peer.track(1).is_none());
    // Its group restores it, and the padded last track too.
    let mut padded = user.clone();
    padded.resize(start(3), 0);
    let whole = Peer::open(GOLDEN);
    for t in 0..3 {
        let restored = whole.track_by_group(t, 3).unwrap().concat();
        assert!(restored == padded[start(t)..start(t + 1)], "track {t}");
    }
}

#[test]
fn the_description_covers_sets_that_were_closed_short() {
    let platters = vec![Some(user_bytes(20_000, 1)), Some(user_bytes(16_000, 2)), None];
    let files = write_set(&tiny(), &platters);
    let peers: Vec<_> = files.iter().map(|f| f.as_ref().map(|f| Peer::open(f))).collect();
    // Platters 0 and 1 are lost; platter 2 was never written.
    let mut restored = Vec::new();
    for layer in 0..8 {
        let mut shards = vec![None, None, Some(vec![0; 2048])];
        shards.extend(peers[3..].iter().flatten().map(|peer| peer.sector(1, layer)));
        restored.push(solve_small(3, shards).unwrap());
    }
    let platter =
        |n: usize| restored.iter().flat_map(|layer| layer[n].clone()).collect::<Vec<u8>>();
    assert!(platter(0) == platters[0].as_ref().unwrap()[..16_384]);
    assert!(platter(1)[..16_000] == platters[1].as_ref().unwrap()[..]);
}

#[test]
fn invalid_headers_are_refused() {
    // Rebuilds every sector of both headers around a changed JSON of the same length.
    for (from, to) in [
        ("\"groups\":2", "\"groups\":0"),
        ("\"data_bytes\":40000", "\"data_bytes\":90000"),
        ("0x11D", "0x11B"),
        ("\"format_version\":1", "\"format_version\":7"),
        ("\"list_entries\":2", "\"list_entriez\":2"),
        ("\"generation\":0", "\"generation\":1"),
        ("\"kind\":\"information\",\"index\":0", "\"kind\":\"information\",\"index\":1"),
    ] {
        let mut file = GOLDEN.to_vec();
        let sectors = file.len() / 2176;
        for sector in file.chunks_exact_mut(2176).take(sectors) {
            let (content, checksum) = sector.split_at_mut(2176 - 32);
            if content[10] == 0 {
                let text: String = content.iter().map(|&byte| char::from(byte)).collect();
                let changed: Vec<u8> =
                    text.replace(from, to).chars().map(|c| u8::try_from(c).unwrap()).collect();
                content.copy_from_slice(&changed);
                checksum.copy_from_slice(&fulgurite_codes::sector_checksum(content));
            }
        }
        assert_ne!(file, GOLDEN, "{from}");
        let error = open(&file).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{from}: {error}");
    }
}

/// Impossible numbers in a header whose sectors are all valid: the platter is corrupt, whatever
/// program wrote it. Only a user's request can be invalid.
#[test]
fn impossible_geometry_on_a_platter_is_damage() {
    let file = write(&single_header(&tiny(), 5000), &user_bytes(5000, 1), 5000);
    assert!(open(&forged(&file, &tiny(), &[("tiny", "thin")])).is_ok());
    for (old, new, expected) in [
        ("_bytes\":2048", "_bytes\":2049", "is not a multiple of 128"),
        ("track_information_sectors\":8", "track_information_sectors\":0", "not within a track"),
        ("track_information_sectors\":8", "track_information_sectors\":9999", "exceeds 4096"),
        ("group_span_sectors\":3", "group_span_sectors\":9", "a span of 9 sectors"),
        ("set_span_sectors\":5", "set_span_sectors\":0", "a span of 0 sectors"),
        ("\"groups\":2", "\"groups\":0", "a platter of 0 tracks"),
        ("\"groups\":2", "\"groups\":4294967295", "is not possible"),
        ("set_information_platters\":3", "set_information_platters\":65535", "code"),
        ("set_redundancy_platters\":2", "set_redundancy_platters\":300", "code"),
        ("set_redundancy_platters\":2", "set_redundancy_platters\":3", "a set of 5 members"),
        ("group_redundancy_tracks\":1", "group_redundancy_tracks\":65535", "large-group code"),
        ("track_redundancy_sectors\":3", "track_redundancy_sectors\":70000", "expected u16"),
        ("\"data_bytes\":5000", "\"data_bytes\":5000000", "does not list this platter"),
    ] {
        let error = open(&forged(&file, &tiny(), &[(old, new)])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{new}: {error}");
        assert!(error.to_string().contains(expected), "{new}: {error}");
    }
}
