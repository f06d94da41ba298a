//! Reads tracks for shards: each track once, whatever shards are on it. A track that its platter
//! lost is rebuilt from the set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fulgurite_platter::{
    CodeLevel, Geometry, InformationTrack, Medium, Member, PlatterError, PlatterReader, SetDecoder,
    TrackBuffer,
};

use super::ShardRequest;
use crate::far::OpenPlatter;
use crate::limits::CHUNK_BYTES;
use crate::repairs::Repairs;
use crate::{GlassError, Result, cipher_crc};

/// An open platter.
pub(super) type Reader = PlatterReader<OpenPlatter>;

/// A source of the tracks of one platter.
pub(super) trait TrackSource {
    /// Reads a track into `buffer`, complete and checked.
    fn read(&mut self, track: InformationTrack, buffer: &mut TrackBuffer) -> Result<()>;
}

/// The platter itself.
pub(super) struct OwnPlatter<'a> {
    pub(super) reader: &'a Reader,
    pub(super) medium: &'a dyn Medium,
    pub(super) repairs: &'a Repairs,
}

impl TrackSource for OwnPlatter<'_> {
    fn read(&mut self, track: InformationTrack, buffer: &mut TrackBuffer) -> Result<()> {
        let report = self.reader.read_track(track, self.medium, buffer)?;
        self.repairs.count(report.repaired_by, u64::from(report.failed));
        Ok(())
    }
}

/// The platter where it can be read, and its set where it cannot.
pub(super) struct DegradedPlatter<'a> {
    pub(super) own: Option<OwnPlatter<'a>>,
    /// Tracks that are known to be lost on the platter.
    pub(super) lost: &'a BTreeSet<u32>,
    pub(super) members: &'a [Member<'a, OpenPlatter>],
    pub(super) position: usize,
    pub(super) decoder: SetDecoder,
    pub(super) medium: &'a dyn Medium,
    pub(super) repairs: &'a Repairs,
}

impl TrackSource for DegradedPlatter<'_> {
    fn read(&mut self, track: InformationTrack, buffer: &mut TrackBuffer) -> Result<()> {
        if let Some(own) = &mut self.own
            && !self.lost.contains(&track.get())
            && own.read(track, buffer).is_ok()
        {
            return Ok(());
        }
        self.decoder.recover_track(track, self.members, self.position, self.medium, buffer)?;
        self.repairs.count(Some(CodeLevel::Set), 0);
        Ok(())
    }
}

/// The current track, which neighboring shards share, and the errors of tracks that failed.
#[derive(Debug, Default)]
pub(super) struct TrackCache {
    track: Option<u32>,
    buffer: TrackBuffer,
    /// Buffer for user bytes on their way to a destination.
    run: Vec<u8>,
    failed: BTreeMap<u32, Arc<GlassError>>,
}

impl TrackCache {
    /// Reads one shard into its destination and returns its CRC. A shard that fails may leave bytes
    /// there; nothing refers to them until the shard is complete.
    pub(super) fn read_shard<P>(
        &mut self,
        geometry: &Geometry,
        tracks: &mut dyn TrackSource,
        request: &ShardRequest<P>,
    ) -> Result<u64, Arc<GlassError>> {
        let track_bytes = geometry.track_user_bytes() as u64;
        let (mut offset, end) = (request.shard.offset, request.shard.offset + request.shard.bytes);
        let mut crc = cipher_crc();
        let mut done = request.shard.body_offset;
        while offset < end {
            let track = geometry.address(offset).track;
            self.load(track, tracks)?;
            let start = u64::from(track.get()) * track_bytes;
            let until = end.min(start + track_bytes);
            let within = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
            // Not sector by sector: a system call for each would take as long as everything else.
            while offset < until {
                let end = until.min(offset + CHUNK_BYTES as u64);
                self.run.clear();
                for piece in self.buffer.user_bytes(within(offset), within(end) - within(offset)) {
                    self.run.extend_from_slice(piece);
                }
                crc.update(&self.run);
                request.room.write_at(done, &self.run)?;
                done += end - offset;
                offset = end;
            }
        }
        Ok(crc.finalize())
    }

    fn load(
        &mut self,
        track: InformationTrack,
        tracks: &mut dyn TrackSource,
    ) -> Result<(), Arc<GlassError>> {
        if self.track == Some(track.get()) {
            return Ok(());
        }
        if let Some(reason) = self.failed.get(&track.get()) {
            return Err(Arc::clone(reason));
        }
        self.track = None;
        if let Err(error) = tracks.read(track, &mut self.buffer) {
            let reason = Arc::new(error);
            self.failed.insert(track.get(), Arc::clone(&reason));
            return Err(reason);
        }
        self.track = Some(track.get());
        Ok(())
    }

    /// Returns the tracks that were read and could not be recovered. Other failed tracks may still
    /// be readable: a disk or a decoder failed.
    pub(super) fn lost(self) -> BTreeSet<u32> {
        let is_lost =
            |error: &GlassError| matches!(error, GlassError::Glass(PlatterError::Unreadable(_)));
        self.failed
            .into_iter()
            .filter(|(_, error)| is_lost(error))
            .map(|(track, _)| track)
            .collect()
    }
}
