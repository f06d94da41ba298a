//! The list of tables of a keyspace. fjall writes its checksum but does not verify it.
//!
//! ```text
//!   current   M u64 | XXH3-128 of the file vM | 00
//!   vM        sections | table of contents | "SFA!" 01 00 | its checksum (16)
//!             | where it begins u64 | its length u64
//!   contents  "TOC!" | count u32 | (begin u64 | length u64 | name length u16 | name) ...
//!   "tables"  levels u8 | (runs u8 | (tables u32 | table ...) ...) ...
//!   table     number u64 | 00 | XXH3-128 of its file | version added to its rows' u64
//! ```
//!
//! All integers are little-endian.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use super::errors::damaged;
use super::{bit_repair, layout};
use crate::CatalogError;

/// The kind of checksum in `current` and in the list.
const CHECKSUM_XXH3: u8 = 0;
const TRAILER_BYTES: usize = 38;
const TRAILER_MAGIC: &[u8] = b"SFA!\x01\x00";
const CONTENTS_MAGIC: &[u8] = b"TOC!";

/// A table in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableEntry {
    /// The name of its file.
    pub(super) number: u64,
    /// XXH3-128 of its file.
    pub(super) checksum: u128,
    /// Added to the versions in it: not 0 for bulk-loaded tables.
    pub(super) added_version: u64,
}

/// Reads the tables in use of the keyspace at `path`, from a list that matches its checksum.
pub(super) fn read(path: &Path) -> Result<Vec<TableEntry>, CatalogError> {
    let (number, checksum) = current(path)?;
    let list = path.join(format!("v{number}"));
    let content = layout::read(&list)?;
    if xxh3_128(&content) != checksum {
        return Err(damaged(&list, "its checksum differs"));
    }
    parse(&content).ok_or_else(|| damaged(&list, "it is not a list of tables"))
}

/// Reads the list where [`read`] fails, if one bit of the list or of its checksum was flipped.
pub(super) fn repair(path: &Path) -> Option<Vec<TableEntry>> {
    let current = current(path).ok();
    newest(path).into_iter().rev().find_map(|list| {
        let content = fs::read(&list).ok()?;
        let (_, checksum) = current?;
        let repair = bit_repair::correct_bit_flip(&content, |bytes| xxh3_128(bytes) == checksum);
        let is_off_by_one_bit = (xxh3_128(&content) ^ checksum).count_ones() <= 1;
        parse(&repair.or_else(|| is_off_by_one_bit.then_some(content))?)
    })
}

/// Returns the lists at `path`, newest last. There is more than one only after a crash.
fn newest(path: &Path) -> Vec<PathBuf> {
    let mut numbers: Vec<u64> = Vec::new();
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let name = entry.file_name();
        numbers.extend(name.to_str().and_then(|n| n.strip_prefix('v')?.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    numbers.into_iter().map(|number| path.join(format!("v{number}"))).collect()
}

/// Returns the number of the list in use, and its checksum.
fn current(path: &Path) -> Result<(u64, u128), CatalogError> {
    let current = layout::read(&path.join("current"))?;
    let mut fields = current.as_slice();
    let (Some(number), Some(checksum), [CHECKSUM_XXH3]) =
        (take(&mut fields), take(&mut fields), fields)
    else {
        return Err(damaged(path, "current is not a checksum"));
    };
    Ok((u64::from_le_bytes(number), u128::from_le_bytes(checksum)))
}

fn parse(content: &[u8]) -> Option<Vec<TableEntry>> {
    let tables = section(content, 0, b"tables")?;
    let place = |at| usize::try_from(at).ok();
    parse_tables(content.get(place(tables.start)?..place(tables.end)?)?)
}

/// Returns the range of a file that holds the section `name`; `tail` is the file from byte `start`.
pub(super) fn section(tail: &[u8], start: u64, name: &[u8]) -> Option<Range<u64>> {
    let trailer = tail.len().checked_sub(TRAILER_BYTES)?;
    let mut fields = tail[trailer..].strip_prefix(TRAILER_MAGIC)?;
    let checksum = u128::from_le_bytes(take(&mut fields)?);
    let begin = usize::try_from(u64::from_le_bytes(take(&mut fields)?).checked_sub(start)?).ok()?;
    let contents = tail.get(begin..trailer)?;
    if xxh3_128(contents) != checksum {
        return None;
    }
    let mut contents = contents.strip_prefix(CONTENTS_MAGIC)?;
    for _ in 0..u32::from_le_bytes(take(&mut contents)?) {
        let begin = u64::from_le_bytes(take(&mut contents)?);
        let length = u64::from_le_bytes(take(&mut contents)?);
        let name_bytes = usize::from(u16::from_le_bytes(take(&mut contents)?));
        if contents.split_off(..name_bytes)? == name {
            return Some(begin..begin.checked_add(length)?);
        }
    }
    None
}

fn parse_tables(mut rest: &[u8]) -> Option<Vec<TableEntry>> {
    let mut listed = Vec::new();
    let [levels] = take(&mut rest)?;
    for _ in 0..levels {
        let [runs] = take(&mut rest)?;
        for _ in 0..runs {
            for _ in 0..u32::from_le_bytes(take(&mut rest)?) {
                let number = u64::from_le_bytes(take(&mut rest)?);
                let [kind] = take(&mut rest)?;
                let checksum = u128::from_le_bytes(take(&mut rest)?);
                let added_version = u64::from_le_bytes(take(&mut rest)?);
                if kind != CHECKSUM_XXH3 {
                    return None;
                }
                listed.push(TableEntry { number, checksum, added_version });
            }
        }
    }
    rest.is_empty().then_some(listed)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, remaining) = rest.split_first_chunk::<N>()?;
    *rest = remaining;
    Some(*first)
}
