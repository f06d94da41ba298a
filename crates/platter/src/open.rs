//! Finds a platter's header in a source that may be damaged, of another size, or no platter.
//!
//! ```text
//! front: sectors are self-describing, so the search walks from byte 0: a valid sector states
//!        its length; where none begins, the search goes on 64 bytes further
//! back:  the final record says where the back header track begins; without it there is no way
//!        to know, and a platter without a final record is not sealed anyway
//! ```
//!
//! Only whole, verified sectors count, and only until the JSON part of the header is complete.
//! Every version has magic, version, payload length and checksum at the same place, so a platter of
//! another version can be distinguished from a damaged one.

use crate::PlatterError;
use crate::PlatterSource;
use crate::header::{HeaderCollector, PlatterHeader};
use crate::limits::{HEADER_SEARCH_BYTES_MAX, SECTOR_PAYLOAD_BYTES_MAX};
use crate::medium::{Medium, SectorExtent, SectorReading};
use crate::seal::{SEAL_BYTES, Seal};
use crate::sector::{
    Erasure, FORMAT_VERSION, SECTOR_HEADER_BYTES, SECTOR_MAGIC, SECTOR_OVERHEAD, SectorHeader,
    SectorKind, has_valid_checksum, payload, u32_at,
};

/// Sector images begin at multiples of this many bytes, whatever the geometry.
const SECTOR_ALIGN: usize = 64;

/// Bytes searched at a time while no sector begins.
const WINDOW: usize = 64 << 10;

/// Returns the header of the platter, from any replica.
pub(crate) fn find_header<R: PlatterSource>(
    source: &R,
    medium: &dyn Medium,
) -> Result<PlatterHeader, PlatterError> {
    let mut search = Search { source, medium, found: None, version: None, image: Vec::new() };
    let size = source.bytes();
    search.walk(0, size.min(HEADER_SEARCH_BYTES_MAX))?;
    if !search.is_complete()
        && let Some(seal) = search.seal()?
    {
        let track = u64::from(seal.track_sectors)
            * (u64::from(seal.payload_bytes) + SECTOR_OVERHEAD as u64);
        let end = size - SEAL_BYTES as u64;
        search.walk(end.saturating_sub(track), end)?;
    }
    match (&search.found, search.version) {
        (Some(found), _) => found.finish(),
        (None, Some(found)) => {
            Err(PlatterError::UnsupportedVersion { found, known: FORMAT_VERSION })
        }
        (None, None) => Err(PlatterError::NotAPlatter),
    }
}

struct Search<'a, R> {
    source: &'a R,
    medium: &'a dyn Medium,
    found: Option<HeaderCollector>,
    /// Unsupported version that a sector claims.
    version: Option<u16>,
    image: Vec<u8>,
}

impl<R: PlatterSource> Search<'_, R> {
    fn is_complete(&self) -> bool {
        self.found.as_ref().is_some_and(HeaderCollector::is_complete)
    }

    /// Collects header sectors from `from` on, until the header is complete, a valid sector is not
    /// a header sector, or `end` is reached.
    fn walk(&mut self, from: u64, end: u64) -> Result<(), PlatterError> {
        let mut at = from;
        while !self.is_complete() && at + SECTOR_OVERHEAD as u64 <= end {
            match self.sector(at, end)? {
                Probe::Header(bytes) => at += bytes,
                Probe::Nothing => at = self.next_magic(at + SECTOR_ALIGN as u64, end)?,
                Probe::Other => return Ok(()),
            }
        }
        Ok(())
    }

    /// Examines the sector that may begin at `at`.
    fn sector(&mut self, at: u64, end: u64) -> Result<Probe, PlatterError> {
        let mut head = [0; SECTOR_HEADER_BYTES];
        self.read(at, &mut head)?;
        let header = SectorHeader::parse(&head);
        if !matches!(header, Ok(_) | Err(Erasure::Version(_))) {
            return Ok(Probe::Nothing);
        }
        let payload_bytes = u32_at(&head, 24);
        let bytes = u64::from(payload_bytes) + SECTOR_OVERHEAD as u64;
        let plausible = payload_bytes > 0
            && payload_bytes <= SECTOR_PAYLOAD_BYTES_MAX
            && payload_bytes.is_multiple_of(64)
            && at + bytes <= end;
        if !plausible {
            return Ok(Probe::Nothing);
        }
        let mut image = std::mem::take(&mut self.image);
        image.resize(payload_bytes as usize + SECTOR_OVERHEAD, 0);
        let read = self.read(at, &mut image);
        let step = match header {
            _ if read.is_err() || !has_valid_checksum(&image) => Probe::Nothing,
            Ok(header) if header.kind == SectorKind::Header => {
                self.collect(&header, &mut image)?;
                Probe::Header(bytes)
            }
            Err(Erasure::Version(found)) => {
                self.version.get_or_insert(found);
                Probe::Other
            }
            Ok(_) | Err(_) => Probe::Other,
        };
        self.image = image;
        read.map(|()| step)
    }

    fn collect(&mut self, header: &SectorHeader, image: &mut [u8]) -> Result<(), PlatterError> {
        let at = SectorExtent {
            platter: header.platter,
            track: header.track,
            first: header.layer,
            sector_bytes: image.len(),
        };
        let mut readings = Vec::with_capacity(1);
        self.medium.read(at, image, &mut readings)?;
        if readings.contains(&SectorReading::Lost) || !has_valid_checksum(image) {
            return Ok(());
        }
        let content = payload(image);
        if self.found.is_none() {
            self.found = HeaderCollector::new(header, content);
        }
        if let Some(found) = &mut self.found {
            found.add(header, content);
        }
        Ok(())
    }

    /// Returns the next place from `at` on where a sector may begin, or `end`.
    fn next_magic(&mut self, mut at: u64, end: u64) -> Result<u64, PlatterError> {
        let mut window = std::mem::take(&mut self.image);
        while at < end {
            let left = usize::try_from(end - at).unwrap_or(usize::MAX);
            window.resize(left.min(WINDOW), 0);
            self.read(at, &mut window)?;
            let hit = (0..window.len())
                .step_by(SECTOR_ALIGN)
                .find(|&place| window[place..].starts_with(&SECTOR_MAGIC));
            match hit {
                Some(place) => {
                    at += place as u64;
                    break;
                }
                None => at += window.len() as u64,
            }
        }
        self.image = window;
        Ok(at.min(end))
    }

    fn seal(&self) -> Result<Option<Seal>, PlatterError> {
        let size = self.source.bytes();
        if size < SEAL_BYTES as u64 {
            return Ok(None);
        }
        let mut tail = [0; SEAL_BYTES];
        self.read(size - SEAL_BYTES as u64, &mut tail)?;
        Ok(Seal::find(&tail))
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), PlatterError> {
        self.source.read_at(offset, buffer).map_err(|source| PlatterError::Io { offset, source })
    }
}

enum Probe {
    /// A valid header sector of this many bytes.
    Header(u64),
    /// No valid sector begins here.
    Nothing,
    /// A valid sector that is not a header sector: the header track is over.
    Other,
}
