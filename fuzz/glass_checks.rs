//! What must hold of platters and file lists, whatever the bytes: no panic, and what is read is
//! what its lengths say.

use fulgurite_platter::{ListReader, NoFaults, PlatterReader};
use fulgurite_units::PlatterId;

/// The platter that the samples' lists are of.
pub(crate) const PLATTER: [u8; 16] = [9; 16];

/// Bytes of a sector of the golden platter, and of its payload before and behind which the rest is.
const SECTOR_BYTES: usize = 2176;
const PAYLOAD: std::ops::Range<usize> = 96..2144;
/// Bytes that say of a page which it is; see `crates/platter/src/header.rs`.
const PAGE_HEADER_BYTES: usize = 16;

static GOLDEN: &[u8] = include_bytes!("../crates/platter/tests/golden/platter-1.glass");

/// Any file, and any header document in sectors whose checksums are right: a platter whose header
/// fits its size, or an error.
pub(crate) fn platter_header(input: &[u8]) {
    opens_file(input.to_vec());
    opens(input);
}

/// Whether these bytes are the header document of a platter of the golden one's size.
pub(crate) fn opens(document: &[u8]) -> bool {
    with_document(document).is_some_and(opens_file)
}

fn opens_file(file: Vec<u8>) -> bool {
    let bytes = file.len() as u64;
    let Ok(reader) = PlatterReader::open(file, None, &NoFaults) else { return false };
    assert_eq!(reader.map().file_bytes(), bytes);
    let header = reader.header();
    header.validate().expect("a header that was read is valid");
    let geometry = &header.geometry;
    let members = geometry.set_information_platters + geometry.set_redundancy_platters;
    assert_eq!(header.members.len(), usize::from(members));
    true
}

/// The golden platter with another header document; `None` when there are not so many sectors.
fn with_document(document: &[u8]) -> Option<Vec<u8>> {
    let mut platter = GOLDEN.to_vec();
    let pages = document.chunks(PAYLOAD.len() - PAGE_HEADER_BYTES);
    let (count, length) = (pages.len(), u32::try_from(document.len()).ok()?);
    for (number, page) in pages.enumerate() {
        let sector = platter.get_mut(number * SECTOR_BYTES..)?.get_mut(..SECTOR_BYTES)?;
        let payload = &mut sector[PAYLOAD];
        let numbers = [u32::try_from(number).ok()?, u32::try_from(count).ok()?, length, length];
        for (place, number) in payload.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        payload[PAGE_HEADER_BYTES..].fill(0);
        payload[PAGE_HEADER_BYTES..][..page.len()].copy_from_slice(page);
        let (content, checksum) = sector.split_at_mut(PAYLOAD.end);
        checksum.copy_from_slice(&fulgurite_codes::sector_checksum(content));
    }
    Some(platter)
}

/// Any file list, however it comes in pieces: entries one after another, or an error.
pub(crate) fn file_list(input: &[u8]) {
    let Some((piece, list)) = input.split_first() else { return };
    let whole = entries(list, list.len().max(1));
    let pieces = entries(list, usize::from(*piece) + 1);
    assert_eq!(whole, pieces, "where the pieces end changes nothing");
}

/// The entries that a list gives, and whether it ends as it says.
fn entries(list: &[u8], piece: usize) -> (Vec<String>, bool) {
    let mut reader = ListReader::new(PlatterId::from_bytes(PLATTER));
    let mut found = Vec::new();
    for piece in list.chunks(piece) {
        reader.push(piece);
        loop {
            match reader.next_entry() {
                Ok(Some(entry)) => found.push(format!("{entry:?}")),
                Ok(None) => break,
                Err(_) => return (found, false),
            }
        }
    }
    let count = reader.finish();
    (found, count.is_ok())
}
