//! Writing a planned set: information platters from the staging log, then redundancy platters
//! from the information platters.
//!
//! Every platter is a `.part` file until it is sealed and synced. An attempt that is cut short is
//! scrap: the next one writes the whole set again with the generation raised.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_catalog::{KeyValue as _, ReadView as _};
use fulgurite_glass::{
    Blank, InformationTrack, ListEntry, ListWriter, NoFaults, PlatterHeader, PlatterReader,
    PlatterRole, PlatterWriter, SetEncoder, SetMember, WriteDrive, list_entry_bytes,
};
use fulgurite_units::{ObjectId, PlatterId, SetId};

use crate::body::cipher_bytes;
use crate::commit::rows_in;
use crate::entry::Entry;
use crate::ingest::cipher_crc;
use crate::limits::CHUNK_BYTES;
use crate::log::{LogKind, LogReader};
use crate::plan::queued_body;
use crate::platter_files::{PlatterFileSink, PlatterFileSource, PlatterFiles};
use crate::rows::{self, PLANS, PLATTERS, PlanRow, PlatterRow, QUEUE, SetRow};
use crate::store::Store;
use crate::{ArchiveError, Result};

type Writer = PlatterWriter<PlatterFileSink>;

/// CRC of each piece of a body that was written: where it begins, how long it is.
type Pieces = BTreeMap<ObjectId, Vec<(u64, u64, u64)>>;

/// One attempt to write a set.
#[derive(Debug)]
pub(crate) struct SetWriting<'a> {
    pub(crate) store: &'a Arc<Store>,
    pub(crate) files: &'a PlatterFiles,
    pub(crate) set: SetId,
    pub(crate) row: &'a SetRow,
}

/// An error of the platter format met while writing.
pub(crate) fn glass_error(
    platter: PlatterId,
) -> impl Fn(fulgurite_glass::GlassError) -> ArchiveError {
    move |error| ArchiveError::PlatterUnreadable { platter, reason: error_chain(&error) }
}

/// An error with its sources, on one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

impl SetWriting<'_> {
    /// Writes every platter and returns the bodies whose staged bytes are damaged.
    pub(crate) fn run(&self) -> Result<Vec<ObjectId>> {
        let members = self.members()?;
        let pieces = Mutex::new(Pieces::new());
        self.write_information(&members, &pieces)?;
        self.write_redundancy(&members)?;
        let pieces = pieces.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.damaged(pieces)
    }

    fn members(&self) -> Result<Vec<Option<SetMember>>> {
        let mut members = vec![None; usize::from(self.row.geometry.set_platters())];
        for (position, platter) in self.row.platters() {
            let row = self.platter_row(platter)?;
            members[usize::from(position)] =
                Some(SetMember { platter, data_bytes: row.data_bytes, list_bytes: row.list_bytes });
        }
        Ok(members)
    }

    fn platter_row(&self, platter: PlatterId) -> Result<PlatterRow> {
        rows::get(&*self.store.kv, PLATTERS, &platter.to_bytes())?.ok_or_else(|| {
            ArchiveError::Corrupt { what: format!("platter {platter} has no row in the catalog") }
        })
    }

    fn begin(
        &self,
        position: u16,
        platter: PlatterId,
        members: &[Option<SetMember>],
    ) -> Result<Writer> {
        let row = self.platter_row(platter)?;
        let information = self.row.geometry.set_information_platters;
        let role = if position < information {
            PlatterRole::Information { index: position }
        } else {
            PlatterRole::Redundancy { index: position - information }
        };
        let header = PlatterHeader {
            archive: self.store.archive,
            platter,
            generation: self.row.generation,
            set: self.set,
            role,
            members: members.to_vec(),
            geometry: self.row.geometry.clone(),
            data_bytes: row.data_bytes,
            list_bytes: row.list_bytes,
            list_entries: row.list_entries,
            created: self.row.created,
            software: concat!("fulgurite ", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        let sink = self.files.blank(platter)?;
        WriteDrive::new().write(Blank::new(platter), header, sink).map_err(glass_error(platter))
    }

    fn end(&self, platter: PlatterId, writer: Writer) -> Result<()> {
        let (written, sink) = writer.finish().map_err(glass_error(platter))?;
        self.files.sync(&sink)?;
        self.store.fail.pass("write-synced");
        self.files.publish(written.platter(), sink)?;
        self.store.fail.pass("write-platter");
        Ok(())
    }

    /// Writes the information platters, as many at a time as there are processors.
    fn write_information(
        &self,
        members: &[Option<SetMember>],
        pieces: &Mutex<Pieces>,
    ) -> Result<()> {
        let todo: Mutex<VecDeque<(u16, PlatterId)>> =
            Mutex::new((0u16..).zip(self.row.information.iter().copied()).collect());
        let next = || todo.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let work = || -> Result<()> {
            while let Some((position, platter)) = next() {
                self.store.check_stopping()?;
                self.write_platter(position, platter, members, pieces)?;
            }
            Ok(())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        in_parallel(threads.min(self.row.information.len()), work)
    }

    fn write_platter(
        &self,
        position: u16,
        platter: PlatterId,
        members: &[Option<SetMember>],
        pieces: &Mutex<Pieces>,
    ) -> Result<()> {
        let mut writer = self.begin(position, platter, members)?;
        let range = rows::plan_of(self.set, position);
        let plan: Vec<(Vec<u8>, PlanRow)> = rows_in(&*self.store.kv, PLANS, &range, usize::MAX)?;
        let mut buffer = Vec::new();
        let half = plan.len() / 2;
        for (index, (_, shard)) in plan.iter().enumerate() {
            if index == half {
                self.store.fail.pass("write-half");
            }
            self.write_shard(platter, shard, &mut writer, &mut buffer, pieces)?;
        }
        self.write_list(platter, &plan, &mut writer)?;
        self.end(platter, writer)
    }

    fn write_shard(
        &self,
        platter: PlatterId,
        shard: &PlanRow,
        writer: &mut Writer,
        buffer: &mut Vec<u8>,
        pieces: &Mutex<Pieces>,
    ) -> Result<()> {
        // Deleted since it was planned: its place holds zeros.
        let mut reader = self.staged(shard)?;
        let mut crc = cipher_crc();
        let mut done = 0;
        while done < shard.bytes {
            let now = usize::try_from(shard.bytes - done).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            buffer.resize(now, 0);
            match &mut reader {
                Some(reader) => reader.read_at(shard.body_offset + done, buffer)?,
                None => buffer.fill(0),
            }
            crc.update(buffer);
            writer.write(buffer).map_err(glass_error(platter))?;
            done += now as u64;
        }
        pieces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(shard.body_id)
            .or_default()
            .push((shard.body_offset, shard.bytes, crc.finalize()));
        Ok(())
    }

    /// The staged bytes of a planned body, pinned; `None` when it was deleted.
    fn staged(&self, shard: &PlanRow) -> Result<Option<LogReader>> {
        let found = queued_body(&*self.store.kv.snapshot(), shard.queued)?;
        let Some((_, extents)) = found.and_then(|(_, _, body)| body.log) else { return Ok(None) };
        let reader = self.store.log(LogKind::Staging).reader(extents);
        // A delete may have freed the bytes before they were pinned; its queue row went first.
        let key = rows::sequence_key(shard.queued);
        Ok(self.store.kv.get(QUEUE, &key)?.map(|_| reader))
    }

    fn write_list(
        &self,
        platter: PlatterId,
        plan: &[(Vec<u8>, PlanRow)],
        writer: &mut Writer,
    ) -> Result<()> {
        let entries = u32::try_from(plan.len()).unwrap_or(u32::MAX);
        let entry_bytes = plan.iter().map(|(_, row)| list_entry_bytes(row.sealed_bytes)).sum();
        let mut out = Vec::new();
        let mut list = ListWriter::new(platter, entries, entry_bytes, &mut out);
        for (_, shard) in plan {
            list.push(&self.list_entry(shard)?, &mut out);
            if out.len() >= CHUNK_BYTES {
                writer.write(&out).map_err(glass_error(platter))?;
                out.clear();
            }
        }
        list.finish(&mut out);
        writer.write(&out).map_err(glass_error(platter))
    }

    fn list_entry(&self, shard: &PlanRow) -> Result<ListEntry> {
        let view = self.store.kv.snapshot();
        let planned = shard.sealed_bytes as usize;
        let sealed = match queued_body(&*view, shard.queued)? {
            Some((queue, object, body)) => {
                let entry =
                    Entry::new(&*view, &queue.bucket, &queue.key, &object, queue.index, &body)?;
                // A key destroyed a moment ago leaves an entry that nobody can open, as it should.
                match self.store.keys.load(body.key_slot, body.body_id) {
                    Ok(key) => entry.seal(&key, body.body_id)?,
                    Err(_) => vec![0; planned],
                }
            }
            None => vec![0; planned],
        };
        if sealed.len() != planned {
            return Err(ArchiveError::Internal {
                what: format!(
                    "the entry of body {} has {} bytes, not the planned {planned}",
                    shard.body_id,
                    sealed.len()
                ),
            });
        }
        Ok(ListEntry {
            object: shard.body_id,
            offset: shard.offset,
            length: shard.bytes,
            body_offset: shard.body_offset,
            body_bytes: cipher_bytes(shard.body_bytes),
            sealed,
        })
    }

    fn write_redundancy(&self, members: &[Option<SetMember>]) -> Result<()> {
        let geometry = &self.row.geometry;
        let mut readers: Vec<Option<PlatterReader<PlatterFileSource>>> = Vec::new();
        for &platter in &self.row.information {
            let source = self.files.open(platter)?;
            let expected = Some((self.store.archive, platter));
            let reader = PlatterReader::open(source, expected, &NoFaults);
            readers.push(Some(reader.map_err(glass_error(platter))?));
        }
        readers.resize_with(usize::from(geometry.set_information_platters), || None);
        let readers: Vec<Option<&PlatterReader<PlatterFileSource>>> =
            readers.iter().map(Option::as_ref).collect();
        let mut writers = Vec::new();
        for (index, &platter) in (0u16..).zip(&self.row.redundancy) {
            let position = geometry.set_information_platters + index;
            writers.push((platter, self.begin(position, platter, members)?));
        }
        let mut encoder = SetEncoder::new(geometry);
        for track in 0..geometry.tracks_for(self.row.redundancy_bytes) {
            self.store.check_stopping()?;
            encoder
                .encode_track(InformationTrack::new(track), &readers, &NoFaults, |index, piece| {
                    writers[usize::from(index)].1.write(piece)
                })
                .map_err(glass_error(self.row.redundancy[0]))?;
        }
        writers.into_iter().try_for_each(|(platter, writer)| self.end(platter, writer))
    }

    /// Bodies wholly in this set whose CRC is not that of their ingest, and that still exist.
    fn damaged(&self, pieces: Pieces) -> Result<Vec<ObjectId>> {
        let mut damaged = Vec::new();
        for position in 0..self.row.information.len() {
            let position = u16::try_from(position).unwrap_or(u16::MAX);
            let range = rows::plan_of(self.set, position);
            let plan: Vec<(Vec<u8>, PlanRow)> =
                rows_in(&*self.store.kv, PLANS, &range, usize::MAX)?;
            for (_, shard) in plan {
                let Some((queue, _, body)) = queued_body(&*self.store.kv, shard.queued)? else {
                    continue;
                };
                let written = pieces.get(&shard.body_id).map_or(&[][..], Vec::as_slice);
                let crc = joined_crc(written, cipher_bytes(body.bytes));
                if crc.is_some_and(|crc| crc != body.digest) && !damaged.contains(&body.body_id) {
                    tracing::error!(
                        bucket = %queue.bucket, key = %queue.key, body = %body.body_id,
                        "staged bytes are not what was ingested; the body stays staged"
                    );
                    damaged.push(body.body_id);
                }
            }
        }
        Ok(damaged)
    }
}

/// The CRC of a whole body out of its pieces; `None` when they do not cover it.
pub(crate) fn joined_crc(pieces: &[(u64, u64, u64)], bytes: u64) -> Option<u64> {
    let mut pieces = pieces.to_vec();
    pieces.sort_unstable();
    let mut end = 0;
    let mut joined = None;
    for (offset, length, crc) in pieces {
        if offset != end {
            return None;
        }
        end += length;
        joined = Some(joined.map_or(crc, |sum| {
            crc_fast::checksum_combine(crc_fast::CrcAlgorithm::Crc64Nvme, sum, crc, length)
        }));
    }
    joined.filter(|_| end == bytes)
}

/// Runs `work` on `threads` threads and returns the first error.
pub(crate) fn in_parallel(threads: usize, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(&work)).collect();
        running
            .into_iter()
            .map(|thread| {
                thread.join().unwrap_or_else(|_| {
                    Err(ArchiveError::Internal { what: "a worker died".to_owned() })
                })
            })
            .fold(Ok(()), Result::and)
    })
}
