//! Writes a blob to its places. The stacks are written and synced, read back, then committed, then
//! the put is acknowledged.
//!
//! ```text
//! begin --> write, sync --> read back --> commit --> acknowledge
//!              |               |
//!              '- lost? -------'--> rebuilt on other disks, and read back again
//! ```
//!
//! A blob that cannot be written to enough disks is abandoned: its stacks become unwanted and are
//! garbage-collected.

use std::io::Read;

use fulgurite_disks::PlaceId;
use fulgurite_units::{BlobId, ByteCount};

use super::on_disk::{Origin, StackSink};
use super::{DiskContext, Group, disk_name};
use crate::blob::{BlobReader, BlobWriter, Expected, Located, ReadMode, Written, rebuild};
use crate::error::LostStack;
use crate::format::{Coding, Header, Stripes, bytes};
use crate::index::{BlobRow, Mode, Object, PendingBlob};
use crate::limits::WRITE_ATTEMPTS_MAX;
use crate::stack::file_name;
use crate::{Fault, RackError, Result};

/// A blob to be written.
pub struct Job {
    /// Its unique id.
    pub blob: BlobId,
    /// How it is to be coded.
    pub coding: Coding,
    /// Its object.
    pub object: Object,
    /// Condition on the key.
    pub mode: Mode,
    /// How many bytes it has.
    pub length: ByteCount,
    /// The bytes.
    pub bytes: Box<dyn Read + Send>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Job");
        shown.field("blob", &self.blob).field("object", &self.object).finish_non_exhaustive()
    }
}

/// Where the stacks of a blob being written are.
struct BlobLayout {
    header: Header,
    sequence: u64,
    stack: ByteCount,
    /// The place of each stack; none if it is lost.
    places: Vec<Option<PlaceId>>,
    /// Places that were tried: they have a stack, or failed.
    tried: Vec<PlaceId>,
    /// What went wrong.
    lost: Vec<LostStack>,
}

/// Writes a blob to a group. Returns its sequence.
///
/// # Errors
/// [`RackError::Full`] when the group has no space for it, [`RackError::TooFewStacks`] when too
/// many disks failed, and those of the condition.
pub fn write(ctx: &DiskContext, group: &Group, job: Job) -> Result<u64> {
    let entry = entry(&job.object)?;
    let header = Header { rack: ctx.rack, blob: job.blob, coding: job.coding, index: 0, entry };
    let header_bytes = bytes(header.bytes());
    let stack = Stripes::new(job.coding, job.length).stack_bytes(header_bytes);
    let stack = ByteCount::new(stack);
    let places = ctx.places(group, job.coding, stack)?;
    let sequence = ctx.index.begin(group.id, job.blob, by_index(&places))?;
    ctx.fail.pass("rack-begun");
    let blob = job.blob;
    let tried = places.clone();
    let places = places.into_iter().map(Some).collect();
    let layout = BlobLayout { header, sequence, stack, places, tried, lost: Vec::new() };
    let written = write_stacks(ctx, group, job, layout);
    if let Err(error) = &written {
        // Begun but uncommitted stacks become unwanted; a refused commit has already recorded that.
        if let Err(also) = ctx.index.abandon_intent(blob, sequence) {
            // The next start abandons it.
            tracing::warn!(%blob, "cannot abandon a failed write: {also}; its error: {error}");
        }
    }
    written.map(|()| sequence)
}

/// Encodes the entry of a stack as in docs/formats/stack.md.
pub(super) fn entry(object: &Object) -> Result<Vec<u8>> {
    serde_json::to_vec(object).map_err(|error| RackError::Internal {
        detail: format!("the entry of {:?} does not encode: {error}", object.key),
    })
}

fn by_index(places: &[PlaceId]) -> Vec<(u8, PlaceId)> {
    (0..).zip(places.iter().copied()).collect()
}

fn write_stacks(
    ctx: &DiskContext,
    group: &Group,
    mut job: Job,
    mut layout: BlobLayout,
) -> Result<()> {
    let sinks = (0..).zip(&layout.places).filter_map(|(index, place)| {
        let place = (*place)?;
        Some((disk_name(place), sink(ctx, &layout, index, place)))
    });
    let writer = BlobWriter::begin(layout.header.clone(), &group.name(), sinks.collect())?;
    let Written { length, sum, lost } = fill(ctx, writer, &mut job, layout.sequence)?;
    ctx.fail.pass("rack-synced");
    layout.lose(lost);
    for attempt in 0.. {
        // Only stacks that read back count as written.
        let mut reader = open(ctx, group, &layout)?;
        let bad = check(&mut reader)?;
        layout.lose(bad);
        if layout.places.iter().all(Option::is_some) || attempt == WRITE_ATTEMPTS_MAX {
            break;
        }
        let made = rebuild_lost(ctx, group, &mut layout, reader)?;
        if !made {
            break;
        }
    }
    ctx.fail.pass("rack-read-back");
    let have = layout.places.iter().flatten().count();
    if have < layout.places.len() {
        // Nothing is acknowledged with reduced redundancy: another group may have disks for all of
        // it.
        let (blob, name, need) = (job.blob, group.name(), layout.places.len());
        return Err(RackError::TooFewStacks { blob, group: name, have, need, lost: layout.lost });
    }
    let places = layout.places.iter().map(|place| place.map(PlaceId::get)).collect();
    let information = job.coding.information();
    let row = BlobRow { sequence: layout.sequence, length, sum, information, places };
    let pending = PendingBlob { blob: job.blob, group: group.id, row };
    ctx.index.commit(job.object, pending, job.mode)?;
    ctx.fail.pass("rack-committed");
    Ok(())
}

/// Writes the bytes to the stacks.
fn fill(
    ctx: &DiskContext,
    mut writer: BlobWriter<StackSink>,
    job: &mut Job,
    sequence: u64,
) -> Result<Written> {
    let mut left = job.length.get();
    let internal = |detail: String| RackError::Internal { detail };
    while left > 0 {
        let room = writer.room();
        let now = usize::try_from(left).unwrap_or(usize::MAX).min(room.len());
        job.bytes
            .read_exact(&mut room[..now])
            .map_err(|error| internal(format!("the bytes of {:?}: {error}", job.object.key)))?;
        writer.append(now)?;
        left -= bytes(now);
        if left <= job.length.get() / 2 {
            ctx.fail.pass("rack-half");
        }
    }
    writer.finish(sequence)
}

fn sink(
    ctx: &DiskContext,
    layout: &BlobLayout,
    index: u8,
    place: PlaceId,
) -> Result<StackSink, Fault> {
    ctx.create(place, &file_name(layout.header.blob, index), layout.stack)
}

fn open(
    ctx: &DiskContext,
    group: &Group,
    layout: &BlobLayout,
) -> Result<BlobReader<super::on_disk::StackSource>> {
    let Header { rack, blob, coding, .. } = layout.header;
    let stacks = (0..).zip(&layout.places).map(|(index, place)| match place {
        Some(place) => {
            let source = ctx.open(*place, &file_name(blob, index), Origin::Disk);
            Located { disk: disk_name(*place), source }
        }
        None => Located { disk: "no disk".to_owned(), source: Err(Fault::Missing) },
    });
    BlobReader::open(
        Expected { rack, blob, coding },
        &group.name(),
        ReadMode::All,
        stacks.collect(),
    )
}

/// Reads and verifies a whole blob. Returns its faulty stacks.
pub(super) fn check<R: crate::stack::ReadAt + Sync>(
    reader: &mut BlobReader<R>,
) -> Result<Vec<LostStack>> {
    let mut sum = crate::format::running_sum();
    for stripe in 0..reader.stripes().count() {
        sum.update(reader.stripe(stripe)?);
    }
    reader.compare(sum.finalize())?;
    Ok(reader.lost())
}

/// Rebuilds lost stacks on disks that were not tried yet. Returns whether there was such a disk.
fn rebuild_lost(
    ctx: &DiskContext,
    group: &Group,
    layout: &mut BlobLayout,
    mut reader: BlobReader<super::on_disk::StackSource>,
) -> Result<bool> {
    let lost: Vec<u8> = (0..)
        .zip(&layout.places)
        .filter(|(_, place)| place.is_none())
        .map(|(index, _)| index)
        .collect();
    let taken: Vec<PlaceId> = layout.places.iter().copied().flatten().collect();
    let mut rooms = ctx.rooms(group, layout.stack);
    rooms.retain(|room| !layout.tried.contains(&room.place));
    let chosen = ctx.choose.choose(&rooms, &taken, lost.len());
    if chosen.is_empty() {
        return Ok(false);
    }
    // Recorded before they are written, in the same intent: after a crash all are
    // garbage-collected.
    let stacks: Vec<(u8, PlaceId)> = lost.into_iter().zip(chosen).collect();
    ctx.index.extend_intent(group.id, layout.header.blob, layout.sequence, stacks.clone())?;
    let mut wanted = Vec::new();
    for &(index, place) in &stacks {
        layout.tried.push(place);
        match sink(ctx, layout, index, place) {
            Ok(sink) => {
                layout.places[usize::from(index)] = Some(place);
                wanted.push((index, disk_name(place), sink));
            }
            Err(fault) => layout.lost.push(LostStack { index, disk: disk_name(place), fault }),
        }
    }
    let failed = rebuild(&mut reader, wanted)?;
    layout.lose(failed);
    Ok(true)
}

impl BlobLayout {
    /// Marks stacks as lost.
    fn lose(&mut self, lost: Vec<LostStack>) {
        for lost in lost {
            let was = self.places.get_mut(usize::from(lost.index)).and_then(Option::take);
            if was.is_some() {
                self.lost.push(lost);
            }
        }
    }
}
