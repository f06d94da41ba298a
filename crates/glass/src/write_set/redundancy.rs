//! The redundancy of a set, encoded from its information platters.
//!
//! ```text
//! (track, column) 0, 2, 4 ...  one thread: read, check, encode --.
//! (track, column) 1, 3, 5 ...  one thread: read, check, encode --+--> in order: their platters
//! ```
//!
//! Each thread holds one column and one that waits to be taken, whatever the size of a set.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use fulgurite_platter::{Column, Geometry, InformationTrack, NoFaults, PlatterReader, SetEncoder};

use super::{SetWriting, glass_error};
use crate::limits::ENCODERS_MAX;
use crate::{GlassError, PlatterFileSource, Result};

/// The information platters of a set by position, where there are any.
type Readers<'a> = [Option<&'a PlatterReader<PlatterFileSource>>];

impl SetWriting<'_> {
    /// Encodes this many tracks. `out` gets their columns in order: the user bytes of each
    /// redundancy platter, one after the other, and the number of bytes per platter.
    pub(super) fn encode(
        &self,
        tracks: u32,
        readers: &Readers<'_>,
        out: impl FnMut(&[u8], usize) -> Result<()>,
    ) -> Result<()> {
        let geometry = &self.row.geometry;
        let all = || columns(geometry, tracks);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = processors.min(ENCODERS_MAX);
        let panics = &self.context.panics;
        std::thread::scope(|scope| {
            let (mut queues, mut running) = (Vec::new(), Vec::new());
            for first in 0..threads {
                let (queue, encoded) = sync_channel(1);
                let share = all().skip(first).step_by(threads);
                let work = move || self.encode_some(share, readers, &queue);
                running.push(scope.spawn(move || panics.run("a write drive", work)));
                queues.push(encoded);
            }
            let taken = take_all(geometry, all(), &queues, out);
            // Encoders end when their queue is dropped.
            drop(queues);
            let died = || Err(GlassError::Internal { what: "a write drive died".to_owned() });
            let ended = running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| died()));
            // Checked first, because it explains why a column did not come.
            ended.fold(Ok(()), Result::and).and(taken)
        })
    }

    /// Encodes columns until the queue is dropped.
    fn encode_some(
        &self,
        columns: impl Iterator<Item = (InformationTrack, Column)>,
        readers: &Readers<'_>,
        queue: &SyncSender<Vec<u8>>,
    ) -> Result<()> {
        let mut encoder = SetEncoder::new(&self.row.geometry);
        for (track, column) in columns {
            let encoded = encoder.encode_column(track, column, readers, &NoFaults);
            let encoded = encoded.map_err(glass_error(self.row.redundancy[0]))?;
            if queue.send(encoded.to_vec()).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Returns the columns of this many tracks, in the order of a platter.
fn columns(geometry: &Geometry, tracks: u32) -> impl Iterator<Item = (InformationTrack, Column)> {
    let columns_of_track = |track| geometry.set_columns().map(move |column| (track, column));
    (0..tracks).map(InformationTrack::new).flat_map(columns_of_track)
}

fn take_all(
    geometry: &Geometry,
    all: impl Iterator<Item = (InformationTrack, Column)>,
    queues: &[Receiver<Vec<u8>>],
    mut out: impl FnMut(&[u8], usize) -> Result<()>,
) -> Result<()> {
    for ((_, column), queue) in all.zip(queues.iter().cycle()) {
        let encoded = queue.recv().map_err(|_| GlassError::Internal {
            what: "a column of redundancy was not encoded".to_owned(),
        })?;
        out(&encoded, usize::from(column.count) * geometry.sector_payload_bytes as usize)?;
    }
    Ok(())
}
