//! Room for the header: checks that the header track can hold the header of any platter of a
//! geometry.
//!
//! The header carries the description of the format, for which small sectors in short tracks have
//! no room. This is checked when a geometry is chosen, for the longest possible header, and not
//! when the first set is sealed. Readers do not check it: an existing platter had the room.

use fulgurite_units::{ArchiveId, PlatterId, SetId, UnixTime};

use super::{PlatterHeader, PlatterRole, SetMember, pages};
use crate::PlatterError;
use crate::geometry::Geometry;
use crate::limits::{HEADER_DOCUMENT_BYTES_MAX, SECTOR_PAYLOAD_BYTES_MAX, SOFTWARE_BYTES_MAX};

impl Geometry {
    /// Checks that the parameters give a platter within the limits of the format, and that its
    /// header always fits the header track.
    ///
    /// # Errors
    /// [`PlatterError::Geometry`] with the first reason found.
    pub fn validate(&self) -> Result<(), PlatterError> {
        self.validate_numbers()?;
        check_capacity(self)
    }
}

/// Rejects a geometry with valid parameters but without room for its header.
fn check_capacity(geometry: &Geometry) -> Result<(), PlatterError> {
    let refuse =
        |reason: String| Err(PlatterError::Geometry { profile: geometry.profile.clone(), reason });
    let bytes = document_bytes_max(geometry)?;
    if bytes > HEADER_DOCUMENT_BYTES_MAX as usize {
        return refuse(format!(
            "the header of a platter takes up to {bytes} bytes, and {HEADER_DOCUMENT_BYTES_MAX} \
             are the limit: the name of the profile, {} bytes, is too long",
            geometry.profile.len()
        ));
    }
    let (pages, sectors) = (pages(bytes, geometry), usize::from(geometry.track_sectors()));
    if pages <= sectors {
        return Ok(());
    }
    let payload = geometry.sector_payload_bytes;
    let enough = match smallest_payload(geometry)? {
        Some(enough) => format!("sector_payload_bytes is {payload} and has to be {enough} or more"),
        None => format!("sector_payload_bytes is {payload}"),
    };
    refuse(format!(
        "the header of a platter takes up to {bytes} bytes, which are {pages} sectors, and a track \
         has {sectors}: {enough}, or track_information_sectors and track_redundancy_sectors \
         together {pages} or more"
    ))
}

/// Returns the smallest sector payload with which the header fits a track of the same number of
/// sectors, if any.
fn smallest_payload(geometry: &Geometry) -> Result<Option<u32>, PlatterError> {
    let sectors = usize::from(geometry.track_sectors());
    let mut larger = geometry.clone();
    while larger.sector_payload_bytes < SECTOR_PAYLOAD_BYTES_MAX {
        larger.sector_payload_bytes += 128;
        // The header contains the payload size, and the user bytes, which grow with it.
        if pages(document_bytes_max(&larger)?, &larger) <= sectors {
            return Ok(Some(larger.sector_payload_bytes));
        }
    }
    Ok(None)
}

/// Returns the size of the longest header document of a platter of this geometry.
fn document_bytes_max(geometry: &Geometry) -> Result<usize, PlatterError> {
    // All IDs have the same length, and no count of user bytes exceeds the platter's.
    let (platter, bytes) = (PlatterId::from_bytes([0xFF; 16]), geometry.platter_user_bytes());
    let member = SetMember { platter, data_bytes: bytes, list_bytes: bytes };
    let longest = PlatterHeader {
        archive: ArchiveId::from_bytes([0xFF; 16]),
        platter,
        generation: u32::MAX,
        set: SetId::from_bytes([0xFF; 16]),
        role: PlatterRole::Information { index: u16::MAX },
        members: vec![Some(member); usize::from(geometry.set_platters())],
        geometry: geometry.clone(),
        data_bytes: bytes,
        list_bytes: bytes,
        list_entries: u32::MAX,
        created: UnixTime::from_millis(u64::MAX),
        software: "x".repeat(SOFTWARE_BYTES_MAX),
    };
    longest.document().map(|(_, document)| document.len())
}
