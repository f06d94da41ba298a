//! Verifies a whole blob and rebuilds its lost stacks.
//!
//! A damaged or missing stack is rebuilt on its own disk; if that disk gives errors, on another of
//! the group (Pelican, OSDI 2014, section 3.3). An intact file that belongs to something else is
//! not touched.
//!
//! The other fragments of a damaged stack may still be needed. It stays until its replacement was
//! synced and read back. It is removed earlier only if the disk has no space for both, and the blob
//! can be read without any damaged stack.

use fulgurite_disks::PlaceId;
use fulgurite_units::{BlobId, ByteCount};

use super::on_disk::{From, Writing};
use super::read::{open, open_named};
use super::write::check;
use super::{Group, Shop, disk_name};
use crate::blob::{How, rebuild};
use crate::error::LostStack;
use crate::format::bytes;
use crate::index::BlobRow;
use crate::stack::{StackReader, file_name, new_name};
use crate::{Fault, Result, StacksError};

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// Faulty stacks.
    pub lost: Vec<LostStack>,
    /// Stacks that were rebuilt, with their new places.
    pub made: Vec<(u8, PlaceId)>,
}

impl Mended {
    /// Returns the number of stacks that are still lost.
    #[must_use]
    pub fn still_lost(&self) -> usize {
        self.lost.len().saturating_sub(self.made.len())
    }
}

/// Reads a blob from all of its stacks and rebuilds lost ones. Returns none when the blob is gone.
///
/// # Errors
/// [`StacksError::TooFewStacks`] when it cannot be read, [`StacksError::Corrupt`] when its stacks
/// yield other bytes than were written.
pub fn mend(shop: &Shop, group: &Group, blob: BlobId) -> Result<Option<Mended>> {
    let Some(row) = shop.index.blob(group.id, blob)? else { return Ok(None) };
    let mut reader = open(shop, group, blob, &row, (From::Disk, How::All))?;
    let lost = check(&mut reader)?;
    if lost.is_empty() {
        return Ok(Some(Mended::default()));
    }
    let header_bytes = bytes(reader.header(0).bytes());
    let stack = ByteCount::new(reader.stripes().stack_bytes(header_bytes));
    let stacks = choose(shop, group, &row, blob, &lost, stack);
    if stacks.is_empty() {
        return Ok(Some(Mended { lost, made: Vec::new() }));
    }
    let sequence = shop.index.begin(group.id, blob, stacks.clone())?;
    let whole = row.places.len() - lost.len();
    let may_go = whole >= usize::from(row.coding()?.information());
    let mut made = Vec::new();
    let mut wanted = Vec::new();
    for &(index, place) in &stacks {
        match begin(shop, group, &file_name(blob, index), place, stack, may_go) {
            Ok(sink) => {
                wanted.push((index, disk_name(place), sink));
                made.push((index, place));
            }
            Err(fault) => {
                tracing::warn!(%blob, %place, "a stack is not made anew: {fault}");
            }
        }
    }
    shop.fail.pass("rack-rebuild-half");
    let failed = match rebuild(&mut reader, wanted) {
        Ok(failed) => failed,
        Err(error) => {
            shop.index.give_up(blob, sequence)?;
            return Err(error);
        }
    };
    made.retain(|(index, _)| failed.iter().all(|failed| failed.index != *index));
    let is_there = read_back(shop, group, blob, &row, &made);
    made.retain(|(index, _)| is_there.contains(index));
    made.retain(|&(index, place)| {
        let name = file_name(blob, index);
        let put = shop.put_in_place(place, &new_name(&name), &name);
        shop.fail.pass("rack-rebuild-named");
        put.is_ok()
    });
    shop.fail.pass("rack-rebuilt");
    let stay = lost.iter().filter(|lost| lost.fault.is_somebodys()).map(|lost| lost.index);
    let is_left = shop.index.moved(group.id, blob, sequence, made.clone(), stay.collect())?;
    Ok(is_left.then_some(Mended { lost, made }))
}

/// Begins a stack beside the one that it will replace.
fn begin(
    shop: &Shop,
    group: &Group,
    name: &str,
    place: PlaceId,
    stack: ByteCount,
    may_go: bool,
) -> Result<Writing, Fault> {
    let new = new_name(name);
    // Left over from an interrupted attempt.
    shop.remove(place, &new)?;
    let has_room = shop.rooms(group, stack).iter().any(|room| room.place == place);
    if !has_room && may_go {
        shop.remove(place, name)?;
    }
    shop.create(place, &new, stack)
}

/// Chooses where each lost stack is rebuilt: on its own disk if that can be used, else on one that
/// has no stack of the blob.
fn choose(
    shop: &Shop,
    group: &Group,
    row: &BlobRow,
    blob: BlobId,
    lost: &[LostStack],
    stack: ByteCount,
) -> Vec<(u8, PlaceId)> {
    let mut stacks = Vec::new();
    let mut homeless = Vec::new();
    for lost in lost {
        let at = row.places.get(usize::from(lost.index)).copied().flatten().map(PlaceId::new);
        // A disk that is only away still has its stacks.
        if lost.fault.may_pass() && at.is_some_and(|at| !shop.places.is_given_up(at)) {
            continue;
        }
        // A disk that gives I/O errors is not used again; the stack on it stays until it is
        // replaced.
        let is_failing = matches!(lost.fault, Fault::Io { .. });
        let own = at.filter(|place| {
            group.usable.contains(place) && !lost.fault.is_somebodys() && !is_failing
        });
        match own {
            Some(place) => stacks.push((lost.index, place)),
            None => homeless.push(lost.index),
        }
    }
    let taken: Vec<PlaceId> =
        row.places.iter().flatten().map(|&place| PlaceId::new(place)).collect();
    let mut rooms = shop.rooms(group, stack);
    // An intact file of the same name that belongs to something else stays.
    let is_free = |place: PlaceId| {
        homeless.iter().all(|&index| {
            match shop
                .open(place, &file_name(blob, index), From::Memory)
                .and_then(StackReader::open)
            {
                Ok(found) => found.header().blob == blob && found.header().rack == shop.rack,
                Err(fault) => !fault.is_somebodys(),
            }
        })
    };
    rooms.retain(|room| !taken.contains(&room.place) && is_free(room.place));
    let chosen = shop.choose.choose(&rooms, &taken, homeless.len());
    stacks.extend(homeless.into_iter().zip(chosen));
    stacks
}

/// Returns the rebuilt stacks that read back correctly.
fn read_back(
    shop: &Shop,
    group: &Group,
    blob: BlobId,
    row: &BlobRow,
    made: &[(u8, PlaceId)],
) -> Vec<u8> {
    let mut row = row.clone();
    for &(index, place) in made {
        if let Some(at) = row.places.get_mut(usize::from(index)) {
            *at = Some(place.get());
        }
    }
    let name = |index: u8| {
        let name = file_name(blob, index);
        if made.iter().any(|(made, _)| *made == index) { new_name(&name) } else { name }
    };
    let opened = open_named(shop, group, blob, &row, (From::Disk, How::All), &name);
    let read = opened.and_then(|mut reader| check(&mut reader));
    let lost: Result<Vec<LostStack>, StacksError> = read;
    let is_lost = |index: u8| match &lost {
        Ok(lost) => lost.iter().any(|lost| lost.index == index),
        Err(_) => true,
    };
    made.iter().map(|&(index, _)| index).filter(|&index| !is_lost(index)).collect()
}
