//! Checks, from signatures alone, whether a platter's redundancy matches its information, while the
//! platter is read once. Nothing is decoded.
//!
//! ```text
//! sectors of a track --> their signatures --> the track's code over signatures --> the same?
//!                              |
//!                              '-- of all tracks of a group --> the group's code --> the same?
//! ```
//!
//! The signature of a redundancy shard is the same linear combination of signatures as the shard is
//! of shards, so a code over payloads can be checked by the code over 8 bytes each. Checksums
//! verify that sectors are as they were written; this verifies that the redundancy can restore lost
//! sectors. The signature of a failed sector is decoded from its track, as its payload would be.
//! Tracks that lost more than their redundancy, and groups with such a track, are not checked.

use fulgurite_codes::small::SmallCode;
use fulgurite_codes::{LARGE_SHARD_ALIGN, LargeStreamEncoder, SIGNATURE_BYTES, Signature};
use fulgurite_units::TrackIndex;

use crate::PlatterError;
use crate::geometry::{Geometry, TrackMap, TrackRole};

/// Half a block of the large code: offset of the second coordinates of its symbols.
const HALF_BLOCK: usize = LARGE_SHARD_ALIGN / 2;

/// Check of one platter's redundancy, track by track in the order of the file.
pub(crate) struct Audit {
    geometry: Geometry,
    map: TrackMap,
    track_code: SmallCode,
    /// The group's code over signatures, column by column.
    group: Vec<LargeStreamEncoder>,
    /// Number of information tracks of the current group that were added to its sum; `None` if one
    /// was missing.
    summed: Option<u16>,
    is_finished: bool,
    /// Physical tracks whose redundancy does not match.
    mismatched: Vec<TrackIndex>,
}

impl Audit {
    /// Creates a check for a platter with these tracks.
    pub(crate) fn new(map: &TrackMap) -> Result<Self, PlatterError> {
        let geometry = map.geometry();
        let group = geometry
            .group_columns()
            .map(|column| {
                Ok(geometry.group_code(column.count)?.stream_encoder(LARGE_SHARD_ALIGN)?)
            })
            .collect::<Result<_, PlatterError>>()?;
        Ok(Self {
            geometry: geometry.clone(),
            map: map.clone(),
            track_code: geometry.track_code()?,
            group,
            summed: Some(0),
            is_finished: false,
            mismatched: Vec::new(),
        })
    }

    /// Checks a track by the signatures of its sectors by layer, `None` for failed ones.
    pub(crate) fn track(
        &mut self,
        physical_track: TrackIndex,
        role: TrackRole,
        signatures: &[Option<Signature>],
    ) -> Result<(), PlatterError> {
        if matches!(role, TrackRole::Header(_)) {
            return Ok(());
        }
        let (codeword, is_consistent) = self.complete(signatures)?;
        if !is_consistent {
            self.mismatched.push(physical_track);
        }
        match role {
            TrackRole::Header(_) => {}
            TrackRole::Information(track) => {
                let in_group = u32::from(self.geometry.group_information_tracks);
                if track.get().is_multiple_of(in_group) {
                    // Ends the sum of the previous group, which may have been abandoned.
                    self.finish_group();
                    (self.summed, self.is_finished) = (Some(0), false);
                }
                match (codeword, self.summed) {
                    (Some(codeword), Some(count)) => {
                        self.add(&codeword)?;
                        self.summed = Some(count + 1);
                    }
                    _ => self.summed = None,
                }
            }
            TrackRole::Redundancy { group, index } => {
                let is_known = self.summed == Some(self.map.group_tracks(group));
                if let (Some(codeword), true) = (codeword, is_known)
                    && !self.is_group_consistent(index, &codeword)
                    && self.mismatched.last() != Some(&physical_track)
                {
                    self.mismatched.push(physical_track);
                }
            }
        }
        Ok(())
    }

    /// Returns the tracks whose redundancy does not match.
    pub(crate) fn finish(self) -> Vec<TrackIndex> {
        self.mismatched
    }

    /// Returns all signatures of a track, if enough are given, and whether the given ones are
    /// consistent.
    fn complete(
        &self,
        signatures: &[Option<Signature>],
    ) -> Result<(Option<Vec<Signature>>, bool), PlatterError> {
        let known: Vec<usize> =
            (0..signatures.len()).filter(|&layer| signatures[layer].is_some()).collect();
        if known.len() < self.track_code.information() {
            return Ok((None, true));
        }
        // The minimum number of signatures determines all the others.
        let (basis, rest) = known.split_at(self.track_code.information());
        let wanted: Vec<usize> =
            (0..signatures.len()).filter(|layer| basis.binary_search(layer).is_err()).collect();
        let sources: Vec<[u8; SIGNATURE_BYTES]> =
            basis.iter().filter_map(|&layer| signatures[layer]).map(|s| s.0).collect();
        let mut decoded = vec![[0; SIGNATURE_BYTES]; wanted.len()];
        self.track_code.plan(basis, &wanted)?.run(&sources, &mut decoded)?;
        let mut codeword: Vec<Signature> =
            signatures.iter().map(|signature| signature.unwrap_or_default()).collect();
        let mut is_consistent = true;
        for (&layer, &decoded) in wanted.iter().zip(&decoded) {
            is_consistent &=
                rest.binary_search(&layer).is_err() || codeword[layer] == Signature(decoded);
            codeword[layer] = Signature(decoded);
        }
        Ok((Some(codeword), is_consistent))
    }

    /// Adds an information track to the group's sum.
    fn add(&mut self, codeword: &[Signature]) -> Result<(), PlatterError> {
        for (column, encoder) in self.geometry.group_columns().zip(&mut self.group) {
            for layer in column.layers() {
                encoder.push(Some(&to_shard(codeword[layer])))?;
            }
        }
        Ok(())
    }

    fn finish_group(&mut self) {
        if !std::mem::replace(&mut self.is_finished, true) {
            self.group.iter_mut().for_each(LargeStreamEncoder::finish);
        }
    }

    /// Whether a redundancy track matches the information tracks added before it.
    fn is_group_consistent(&mut self, index: u16, codeword: &[Signature]) -> bool {
        self.finish_group();
        self.geometry.group_columns().zip(&self.group).all(|(column, encoder)| {
            let first = usize::from(index) * usize::from(column.count);
            (first..).zip(column.layers()).all(|(shard, layer)| {
                encoder.redundancy(shard).flatten().eq(to_shard(codeword[layer]).iter())
            })
        })
    }
}

/// Converts a signature to a shard of the large code: its four elements of GF(2^16), then zeros.
fn to_shard(signature: Signature) -> [u8; LARGE_SHARD_ALIGN] {
    let mut shard = [0; LARGE_SHARD_ALIGN];
    for (symbol, element) in signature.0.chunks_exact(2).enumerate() {
        (shard[symbol], shard[HALF_BLOCK + symbol]) = (element[0], element[1]);
    }
    shard
}
