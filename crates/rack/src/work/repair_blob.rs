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

use super::on_disk::{Origin, StackSink};
use super::read::{open, open_named};
use super::write::check;
use super::{DiskContext, Group, disk_name};
use crate::blob::{ReadMode, rebuild};
use crate::error::LostStack;
use crate::format::bytes;
use crate::index::BlobRow;
use crate::stack::{StackReader, file_name, new_name};
use crate::{Fault, RackError, Result};

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairResult {
    /// Faulty stacks.
    pub lost: Vec<LostStack>,
    /// Stacks that were rebuilt, with their new places.
    pub rebuilt: Vec<(u8, PlaceId)>,
}

impl RepairResult {
    /// Returns the number of stacks that are still lost.
    #[must_use]
    pub fn still_lost(&self) -> usize {
        self.lost.len().saturating_sub(self.rebuilt.len())
    }
}

/// Reads a blob from all of its stacks and rebuilds lost ones. Returns none when the blob is gone.
///
/// # Errors
/// [`RackError::TooFewStacks`] when it cannot be read, [`RackError::Corrupt`] when its stacks
/// yield other bytes than were written.
pub fn repair_blob(ctx: &DiskContext, group: &Group, blob: BlobId) -> Result<Option<RepairResult>> {
    let Some(row) = ctx.index.blob(group.id, blob)? else { return Ok(None) };
    let mut reader = open(ctx, group, blob, &row, (Origin::Disk, ReadMode::All))?;
    let lost = check(&mut reader)?;
    if lost.is_empty() {
        return Ok(Some(RepairResult::default()));
    }
    let header_bytes = bytes(reader.header(0).bytes());
    let stack = ByteCount::new(reader.stripes().stack_bytes(header_bytes));
    let stacks = choose(ctx, group, &row, blob, &lost, stack);
    if stacks.is_empty() {
        return Ok(Some(RepairResult { lost, rebuilt: Vec::new() }));
    }
    let sequence = ctx.index.begin(group.id, blob, stacks.clone())?;
    let whole = row.places.len() - lost.len();
    let can_remove = whole >= usize::from(row.coding()?.information());
    let mut rebuilt = Vec::new();
    let mut wanted = Vec::new();
    for &(index, place) in &stacks {
        match begin(ctx, group, &file_name(blob, index), place, stack, can_remove) {
            Ok(sink) => {
                wanted.push((index, disk_name(place), sink));
                rebuilt.push((index, place));
            }
            Err(fault) => {
                tracing::warn!(%blob, %place, "cannot rebuild a stack: {fault}");
            }
        }
    }
    ctx.fail.pass("rack-rebuild-half");
    let failed = match rebuild(&mut reader, wanted) {
        Ok(failed) => failed,
        Err(error) => {
            ctx.index.abandon_intent(blob, sequence)?;
            return Err(error);
        }
    };
    rebuilt.retain(|(index, _)| failed.iter().all(|failed| failed.index != *index));
    let is_there = read_back(ctx, group, blob, &row, &rebuilt);
    rebuilt.retain(|(index, _)| is_there.contains(index));
    rebuilt.retain(|&(index, place)| {
        let name = file_name(blob, index);
        let put = ctx.put_in_place(place, &new_name(&name), &name);
        ctx.fail.pass("rack-rebuild-named");
        put.is_ok()
    });
    ctx.fail.pass("rack-rebuilt");
    let stay = lost.iter().filter(|lost| lost.fault.is_foreign()).map(|lost| lost.index);
    let is_alive =
        ctx.index.record_rebuilt(group.id, blob, sequence, rebuilt.clone(), stay.collect())?;
    Ok(is_alive.then_some(RepairResult { lost, rebuilt }))
}

/// Begins a stack beside the one that it will replace.
fn begin(
    ctx: &DiskContext,
    group: &Group,
    name: &str,
    place: PlaceId,
    stack: ByteCount,
    can_remove: bool,
) -> Result<StackSink, Fault> {
    let new = new_name(name);
    // Left over from an interrupted attempt.
    ctx.remove(place, &new)?;
    let has_room = ctx.rooms(group, stack).iter().any(|room| room.place == place);
    if !has_room && can_remove {
        ctx.remove(place, name)?;
    }
    ctx.create(place, &new, stack)
}

/// Chooses where each lost stack is rebuilt: on its own disk if that can be used, else on one that
/// has no stack of the blob.
fn choose(
    ctx: &DiskContext,
    group: &Group,
    row: &BlobRow,
    blob: BlobId,
    lost: &[LostStack],
    stack: ByteCount,
) -> Vec<(u8, PlaceId)> {
    let mut stacks = Vec::new();
    let mut displaced = Vec::new();
    for lost in lost {
        let at = row.places.get(usize::from(lost.index)).copied().flatten().map(PlaceId::new);
        // A disk that is only away still has its stacks.
        if lost.fault.may_pass() && at.is_some_and(|at| !ctx.places.is_given_up(at)) {
            continue;
        }
        // A disk that gives I/O errors is not used again; the stack on it stays until it is
        // replaced.
        let is_failing = matches!(lost.fault, Fault::Io { .. });
        let own = at.filter(|place| {
            group.usable.contains(place) && !lost.fault.is_foreign() && !is_failing
        });
        match own {
            Some(place) => stacks.push((lost.index, place)),
            None => displaced.push(lost.index),
        }
    }
    let taken: Vec<PlaceId> =
        row.places.iter().flatten().map(|&place| PlaceId::new(place)).collect();
    let mut rooms = ctx.rooms(group, stack);
    // An intact file of the same name that belongs to something else stays.
    let is_free = |place: PlaceId| {
        displaced.iter().all(|&index| {
            match ctx
                .open(place, &file_name(blob, index), Origin::Memory)
                .and_then(StackReader::open)
            {
                Ok(found) => found.header().blob == blob && found.header().rack == ctx.rack,
                Err(fault) => !fault.is_foreign(),
            }
        })
    };
    rooms.retain(|room| !taken.contains(&room.place) && is_free(room.place));
    let chosen = ctx.choose.choose(&rooms, &taken, displaced.len());
    stacks.extend(displaced.into_iter().zip(chosen));
    stacks
}

/// Returns the rebuilt stacks that read back correctly.
fn read_back(
    ctx: &DiskContext,
    group: &Group,
    blob: BlobId,
    row: &BlobRow,
    rebuilt: &[(u8, PlaceId)],
) -> Vec<u8> {
    let mut row = row.clone();
    for &(index, place) in rebuilt {
        if let Some(at) = row.places.get_mut(usize::from(index)) {
            *at = Some(place.get());
        }
    }
    let name = |index: u8| {
        let name = file_name(blob, index);
        if rebuilt.iter().any(|(rebuilt, _)| *rebuilt == index) { new_name(&name) } else { name }
    };
    let opened = open_named(ctx, group, blob, &row, (Origin::Disk, ReadMode::All), &name);
    let read = opened.and_then(|mut reader| check(&mut reader));
    let lost: Result<Vec<LostStack>, RackError> = read;
    let is_lost = |index: u8| match &lost {
        Ok(lost) => lost.iter().any(|lost| lost.index == index),
        Err(_) => true,
    };
    rebuilt.iter().map(|&(index, _)| index).filter(|&index| !is_lost(index)).collect()
}
