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

use super::on_disk::{From, Writing};
use super::{Group, Shop, disk_name};
use crate::blob::{BlobReader, BlobWriter, Expected, How, Located, Written, rebuild};
use crate::error::LostStack;
use crate::format::{Coding, Header, Stripes, bytes};
use crate::index::{BlobRow, Mode, Object, Whole};
use crate::limits::WRITE_ATTEMPTS_MAX;
use crate::stack::file_name;
use crate::{Fault, Result, StacksError};

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
struct Laid {
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
/// [`StacksError::Full`] when the group has no space for it, [`StacksError::TooFewStacks`] when too
/// many disks failed, and those of the condition.
pub fn write(shop: &Shop, group: &Group, job: Job) -> Result<u64> {
    let entry = entry(&job.object)?;
    let header = Header { rack: shop.rack, blob: job.blob, coding: job.coding, index: 0, entry };
    let header_bytes = bytes(header.bytes());
    let stack = Stripes::new(job.coding, job.length).stack_bytes(header_bytes);
    let stack = ByteCount::new(stack);
    let places = shop.places(group, job.coding, stack)?;
    let sequence = shop.index.begin(group.id, job.blob, by_index(&places))?;
    shop.fail.pass("rack-begun");
    let blob = job.blob;
    let tried = places.clone();
    let places = places.into_iter().map(Some).collect();
    let laid = Laid { header, sequence, stack, places, tried, lost: Vec::new() };
    let written = lay(shop, group, job, laid);
    if let Err(error) = &written {
        // Begun but uncommitted stacks become unwanted; a refused commit has already recorded that.
        if let Err(also) = shop.index.give_up(blob, sequence) {
            // The next start abandons it.
            tracing::warn!(%blob, "what was begun is not given up: {also}, after: {error}");
        }
    }
    written.map(|()| sequence)
}

/// Encodes the entry of a stack as in docs/formats/stack.md.
pub(super) fn entry(object: &Object) -> Result<Vec<u8>> {
    serde_json::to_vec(object).map_err(|error| StacksError::Internal {
        what: format!("the entry of {:?} does not encode: {error}", object.key),
    })
}

fn by_index(places: &[PlaceId]) -> Vec<(u8, PlaceId)> {
    (0..).zip(places.iter().copied()).collect()
}

fn lay(shop: &Shop, group: &Group, mut job: Job, mut laid: Laid) -> Result<()> {
    let sinks = (0..).zip(&laid.places).filter_map(|(index, place)| {
        let place = (*place)?;
        Some((disk_name(place), sink(shop, &laid, index, place)))
    });
    let writer = BlobWriter::begin(laid.header.clone(), &group.name(), sinks.collect())?;
    let Written { length, sum, lost } = fill(shop, writer, &mut job, laid.sequence)?;
    shop.fail.pass("rack-synced");
    laid.lose(lost);
    for attempt in 0.. {
        // Only stacks that read back count as written.
        let mut reader = open(shop, group, &laid)?;
        let bad = check(&mut reader)?;
        laid.lose(bad);
        if laid.places.iter().all(Option::is_some) || attempt == WRITE_ATTEMPTS_MAX {
            break;
        }
        let made = make_anew(shop, group, &mut laid, reader)?;
        if !made {
            break;
        }
    }
    shop.fail.pass("rack-read-back");
    let have = laid.places.iter().flatten().count();
    if have < laid.places.len() {
        // Nothing is acknowledged with reduced redundancy: another group may have disks for all of
        // it.
        let (blob, name, need) = (job.blob, group.name(), laid.places.len());
        return Err(StacksError::TooFewStacks { blob, group: name, have, need, lost: laid.lost });
    }
    let places = laid.places.iter().map(|place| place.map(PlaceId::get)).collect();
    let information = job.coding.information();
    let row = BlobRow { sequence: laid.sequence, length, sum, information, places };
    let whole = Whole { blob: job.blob, group: group.id, row };
    shop.index.commit(job.object, whole, job.mode)?;
    shop.fail.pass("rack-committed");
    Ok(())
}

/// Writes the bytes to the stacks.
fn fill(
    shop: &Shop,
    mut writer: BlobWriter<Writing>,
    job: &mut Job,
    sequence: u64,
) -> Result<Written> {
    let mut left = job.length.get();
    let internal = |what: String| StacksError::Internal { what };
    while left > 0 {
        let room = writer.room();
        let now = usize::try_from(left).unwrap_or(usize::MAX).min(room.len());
        job.bytes
            .read_exact(&mut room[..now])
            .map_err(|error| internal(format!("the bytes of {:?}: {error}", job.object.key)))?;
        writer.append(now)?;
        left -= bytes(now);
        if left <= job.length.get() / 2 {
            shop.fail.pass("rack-half");
        }
    }
    writer.finish(sequence)
}

fn sink(shop: &Shop, laid: &Laid, index: u8, place: PlaceId) -> Result<Writing, Fault> {
    shop.create(place, &file_name(laid.header.blob, index), laid.stack)
}

fn open(shop: &Shop, group: &Group, laid: &Laid) -> Result<BlobReader<super::on_disk::Reading>> {
    let Header { rack, blob, coding, .. } = laid.header;
    let stacks = (0..).zip(&laid.places).map(|(index, place)| match place {
        Some(place) => {
            let source = shop.open(*place, &file_name(blob, index), From::Disk);
            Located { disk: disk_name(*place), source }
        }
        None => Located { disk: "no disk".to_owned(), source: Err(Fault::Missing) },
    });
    BlobReader::open(Expected { rack, blob, coding }, &group.name(), How::All, stacks.collect())
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
fn make_anew(
    shop: &Shop,
    group: &Group,
    laid: &mut Laid,
    mut reader: BlobReader<super::on_disk::Reading>,
) -> Result<bool> {
    let lost: Vec<u8> = (0..)
        .zip(&laid.places)
        .filter(|(_, place)| place.is_none())
        .map(|(index, _)| index)
        .collect();
    let taken: Vec<PlaceId> = laid.places.iter().copied().flatten().collect();
    let mut rooms = shop.rooms(group, laid.stack);
    rooms.retain(|room| !laid.tried.contains(&room.place));
    let chosen = shop.choose.choose(&rooms, &taken, lost.len());
    if chosen.is_empty() {
        return Ok(false);
    }
    // Recorded before they are written, in the same intent: after a crash all are
    // garbage-collected.
    let stacks: Vec<(u8, PlaceId)> = lost.into_iter().zip(chosen).collect();
    shop.index.begin_more(group.id, laid.header.blob, laid.sequence, stacks.clone())?;
    let mut wanted = Vec::new();
    for &(index, place) in &stacks {
        laid.tried.push(place);
        match sink(shop, laid, index, place) {
            Ok(sink) => {
                laid.places[usize::from(index)] = Some(place);
                wanted.push((index, disk_name(place), sink));
            }
            Err(fault) => laid.lost.push(LostStack { index, disk: disk_name(place), fault }),
        }
    }
    let failed = rebuild(&mut reader, wanted)?;
    laid.lose(failed);
    Ok(true)
}

impl Laid {
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
