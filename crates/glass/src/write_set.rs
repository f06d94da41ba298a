//! Writes a planned set: information platters from the waiting bodies, then redundancy platters
//! from the information platters.
//!
//! ```text
//! bodies --> information platters, one a processor ---.----> finishing: sync, name
//!                    '--(read again, checked)--> redundancy platters --^
//! ```
//!
//! Every platter is a `.part` file until it is sealed and synced. That happens while other platters
//! are written, and is complete when the set counts as written. An interrupted attempt is
//! discarded: the next one writes the whole set again with the generation raised.

mod finisher;
mod redundancy;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_catalog::Transaction;
use fulgurite_platter::limits::SOFTWARE_BYTES_MAX;
use fulgurite_platter::{
    Blank, ListEntry, ListWriter, NoFaults, PlatterHeader, PlatterReader, PlatterRole,
    PlatterWriter, SetMember, WriteDrive, list_entry_bytes,
};
use fulgurite_tier::Progress;
use fulgurite_units::{ObjectId, PlatterId, SetId, error_chain};

use self::finisher::{Finisher, with_finisher};
use crate::limits::{CHUNK_BYTES, ROWS_PER_TRANSACTION_MAX};
use crate::rows::{self, PLANS, PLATTERS, PlanRow, PlatterRow, SetRow};
use crate::{
    Bodies, Context, GlassError, IngestedBody, Panics, PlatterFileSink, PlatterFileSource,
    PlatterFiles, Result, cipher_crc, joined_crc,
};

type Writer = PlatterWriter<PlatterFileSink>;

/// The name of the program in headers.
const SOFTWARE: &str = concat!("fulgurite ", env!("CARGO_PKG_VERSION"));
const _: () = assert!(SOFTWARE.len() <= SOFTWARE_BYTES_MAX, "a geometry keeps room for it");

/// What was written.
#[derive(Debug, Default)]
struct Pieces {
    bodies: BTreeMap<ObjectId, Written>,
    /// Plan rows of pieces of split bodies, with their CRCs.
    split_rows: Vec<(Vec<u8>, PlanRow)>,
}

/// The pieces of a body that were written.
#[derive(Debug)]
struct Written {
    /// The place of the body in the queue.
    place: u64,
    pieces: Vec<Piece>,
}

/// A piece of a body that was written.
#[derive(Clone, Copy, Debug)]
struct Piece {
    body_offset: u64,
    bytes: u64,
    /// `None` when its staged bytes could not be read.
    crc: Option<u64>,
}

/// One attempt to write a set.
#[derive(Debug)]
pub(crate) struct SetWriting<'a> {
    pub(crate) context: &'a Context,
    pub(crate) bodies: &'a dyn Bodies,
    pub(crate) files: &'a PlatterFiles,
    pub(crate) set: SetId,
    pub(crate) row: &'a SetRow,
    pub(crate) progress: &'a Arc<Progress>,
}

/// Converts an error of the platter format while writing.
pub(crate) fn glass_error(
    platter: PlatterId,
) -> impl Fn(fulgurite_platter::PlatterError) -> GlassError {
    move |error| {
        use fulgurite_platter::PlatterError;
        let reason = error_chain(&error);
        // A failure to decode is not the platter's fault.
        if let PlatterError::Medium { .. } = error {
            return GlassError::Undecoded { platter, reason };
        }
        // Nor is a failing or full disk. A file that is too short is the platter's fault.
        if let PlatterError::Io { source, .. } = error
            && source.kind() != std::io::ErrorKind::UnexpectedEof
        {
            let path = std::path::PathBuf::from(format!("{platter}.glass"));
            return GlassError::io("write or read", &path)(source);
        }
        GlassError::PlatterUnreadable { platter, reason }
    }
}

impl SetWriting<'_> {
    /// Writes every platter; returns the bodies whose staged bytes are damaged.
    pub(crate) fn run(&self) -> Result<Vec<ObjectId>> {
        let members = self.members()?;
        let pieces = Mutex::<Pieces>::default();
        with_finisher(self.context, self.files, |finisher| {
            let information = self.write_information(&members, &pieces, finisher)?;
            self.write_redundancy(&members, information, finisher)
        })?;
        let pieces = pieces.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.record_checksums(pieces.split_rows)?;
        self.damaged(&pieces.bodies)
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
        rows::get(&*self.context.catalog, PLATTERS, &platter.to_bytes())?.ok_or_else(|| {
            GlassError::Corrupt { what: format!("platter {platter} has no row in the catalog") }
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
            archive: self.context.archive,
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
            software: SOFTWARE.to_owned(),
        };
        let sink = self.files.blank(platter, self.progress)?;
        WriteDrive::new().write(Blank::new(platter), header, sink).map_err(glass_error(platter))
    }

    /// Ends a platter, queues it to be synced and named, and returns a reader of what was written.
    fn end(
        &self,
        platter: PlatterId,
        writer: Writer,
        finisher: &Finisher,
    ) -> Result<PlatterFileSource> {
        let (written, sink) = writer.finish().map_err(glass_error(platter))?;
        let source = sink.source()?;
        finisher.finish((written, sink))?;
        Ok(source)
    }

    /// Writes the information platters, as many at a time as there are processors; returns what was
    /// written, by position.
    fn write_information(
        &self,
        members: &[Option<SetMember>],
        pieces: &Mutex<Pieces>,
        finisher: &Finisher,
    ) -> Result<BTreeMap<u16, PlatterFileSource>> {
        let todo: Mutex<VecDeque<(u16, PlatterId)>> =
            Mutex::new((0u16..).zip(self.row.information.iter().copied()).collect());
        let next = || todo.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let done = Mutex::<BTreeMap<u16, PlatterFileSource>>::default();
        let work = || -> Result<()> {
            while let Some((position, platter)) = next() {
                self.context.check_stopping()?;
                let writer = self.begin(position, platter, members)?;
                let writer = self.write_platter(position, platter, writer, pieces)?;
                let source = self.end(platter, writer, finisher)?;
                done.lock().unwrap_or_else(PoisonError::into_inner).insert(position, source);
            }
            Ok(())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        in_parallel(threads.min(self.row.information.len()), &self.context.panics, work)?;
        Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn write_platter(
        &self,
        position: u16,
        platter: PlatterId,
        mut writer: Writer,
        pieces: &Mutex<Pieces>,
    ) -> Result<Writer> {
        let range = rows::plan_range(self.set, position);
        let plan: Vec<(Vec<u8>, PlanRow)> =
            rows::rows_in(&*self.context.catalog, PLANS, &range, usize::MAX)?;
        let mut buffer = Vec::new();
        let half = plan.len() / 2;
        for (index, planned) in plan.iter().enumerate() {
            if index == half {
                self.context.fail.pass("write-half");
            }
            self.write_shard(platter, planned, &mut writer, &mut buffer, pieces)?;
        }
        self.write_list(platter, &plan, &mut writer)?;
        Ok(writer)
    }

    fn write_shard(
        &self,
        platter: PlatterId,
        (key, shard): &(Vec<u8>, PlanRow),
        writer: &mut Writer,
        buffer: &mut Vec<u8>,
        pieces: &Mutex<Pieces>,
    ) -> Result<()> {
        // Deleted since it was planned: zeros take its place.
        let mut reader = self.bodies.open(shard.place)?;
        let mut is_whole = true;
        let mut crc = cipher_crc();
        let mut done = 0;
        while done < shard.bytes {
            let now = usize::try_from(shard.bytes - done).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            buffer.resize(now, 0);
            // One damaged body must not keep the others from glass: zeros take its place.
            let read = reader.as_mut().map(|r| r.read_at(shard.body_offset + done, buffer));
            if let Some(Err(error)) = &read {
                tracing::error!(body = %shard.body_id, %error, "a staged body cannot be read");
                (reader, is_whole) = (None, false);
            }
            if !matches!(read, Some(Ok(()))) {
                buffer.fill(0);
            }
            crc.update(buffer);
            writer.write(buffer).map_err(glass_error(platter))?;
            done += now as u64;
        }
        let crc = is_whole.then(|| crc.finalize());
        let mut pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Written { place: shard.place, pieces: Vec::new() };
        let written = pieces.bodies.entry(shard.body_id).or_insert_with(fresh);
        let (body_offset, bytes) = (shard.body_offset, shard.bytes);
        written.pieces.push(Piece { body_offset, bytes, crc });
        if shard.bytes != shard.body_bytes {
            pieces.split_rows.push((key.clone(), PlanRow { crc, ..*shard }));
        }
        Ok(())
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
        let planned = shard.sealed_bytes as usize;
        // The entry of a body that was just deleted must never be opened.
        let entry = self.bodies.entry(shard.place)?;
        let sealed = entry.unwrap_or_else(|| vec![0; planned]);
        if sealed.len() != planned {
            return Err(GlassError::Internal {
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
            body_bytes: shard.body_bytes,
            sealed,
        })
    }

    fn write_redundancy(
        &self,
        members: &[Option<SetMember>],
        information: BTreeMap<u16, PlatterFileSource>,
        finisher: &Finisher,
    ) -> Result<()> {
        let geometry = &self.row.geometry;
        let mut readers: Vec<PlatterReader<PlatterFileSource>> = Vec::new();
        for (&platter, source) in self.row.information.iter().zip(information.into_values()) {
            let expected = Some((self.context.archive, platter));
            let reader = PlatterReader::open(source, expected, &NoFaults);
            readers.push(reader.map_err(glass_error(platter))?);
        }
        let mut readers: Vec<_> = readers.iter().map(Some).collect();
        readers.resize(usize::from(geometry.set_information_platters), None);
        let mut writers = Vec::new();
        for (index, &platter) in (0u16..).zip(&self.row.redundancy) {
            let position = geometry.set_information_platters + index;
            writers.push((platter, self.begin(position, platter, members)?));
        }
        let tracks = geometry.tracks_for(self.row.redundancy_bytes);
        self.encode(tracks, &readers, |columns, bytes| {
            self.context.check_stopping()?;
            for ((platter, writer), column) in writers.iter_mut().zip(columns.chunks_exact(bytes)) {
                writer.write(column).map_err(glass_error(*platter))?;
            }
            Ok(())
        })?;
        writers
            .into_iter()
            .try_for_each(|(platter, writer)| self.end(platter, writer, finisher).map(drop))
    }

    /// Records the CRCs of pieces in the plan, so that a later set can verify the whole body.
    fn record_checksums(&self, mut split_rows: Vec<(Vec<u8>, PlanRow)>) -> Result<()> {
        split_rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for batch in split_rows.chunks(ROWS_PER_TRANSACTION_MAX) {
            let batch = batch.to_vec();
            self.context.committer.commit_blocking(
                move |tx: &mut Transaction<'_>| -> Result<()> {
                    batch.into_iter().try_for_each(|(key, row)| rows::put(tx, PLANS, key, &row))
                },
            )?;
        }
        Ok(())
    }

    /// Returns the bodies that still exist and whose bytes, as far as written with this set, are
    /// not those of their ingest. A body that continues in a later set is verified there.
    fn damaged(&self, bodies: &BTreeMap<ObjectId, Written>) -> Result<Vec<ObjectId>> {
        let mut damaged = Vec::new();
        for Written { place, pieces } in bodies.values() {
            let Some(body) = self.bodies.body(*place)? else { continue };
            if !is_as_ingested(&body, pieces) {
                damaged.push(body.body);
            }
        }
        Ok(damaged)
    }
}

/// Whether a body's pieces of this set, with those on glass before it, can be what was ingested.
fn is_as_ingested(body: &IngestedBody, written: &[Piece]) -> bool {
    let Some(first) = written.iter().map(|piece| piece.body_offset).min() else { return true };
    let before = body.placed.iter().filter(|shard| shard.body_offset < first);
    let all: Option<Vec<(u64, u64, u64)>> = before
        .map(|shard| (shard.body_offset, shard.bytes, shard.crc))
        .chain(written.iter().map(|piece| (piece.body_offset, piece.bytes, piece.crc)))
        .map(|(offset, bytes, crc)| crc.map(|crc| (offset, bytes, crc)))
        .collect();
    let Some(all) = all else { return false };
    joined_crc(&all, body.bytes).is_none_or(|crc| crc == body.digest)
}

/// Runs `work` on `threads` threads and returns the first error.
fn in_parallel(
    threads: usize,
    panics: &Panics,
    work: impl Fn() -> Result<()> + Sync,
) -> Result<()> {
    let work = || panics.run("a write drive", &work);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let died = || Err(GlassError::Internal { what: "a write drive died".to_owned() });
        let ended = running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| died()));
        ended.fold(Ok(()), Result::and)
    })
}
