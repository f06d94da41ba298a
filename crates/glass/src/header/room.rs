//! Room for the header: whether a header track takes the header of every platter of a geometry.
//!
//! The header carries the description of the format, which small sectors in short tracks do not
//! hold. That is found when a geometry is chosen, for the longest header there can be, and not when
//! the first set of it is sealed. No reader asks: what is on a platter had room there.

use fulgurite_units::{ArchiveId, PlatterId, SetId, UnixTime};

use super::{PlatterHeader, PlatterRole, SetMember, pages};
use crate::geometry::Geometry;
use crate::limits::{HEADER_DOCUMENT_BYTES_MAX, SECTOR_PAYLOAD_BYTES_MAX, SOFTWARE_BYTES_MAX};
use crate::{FormatVersion, GlassError};

impl Geometry {
    /// Checks that the numbers make a platter within the limits of the format, and that its header
    /// fits the header track, whatever is on it.
    ///
    /// # Errors
    /// [`GlassError::Geometry`] with the first reason found.
    pub fn validate(&self) -> Result<(), GlassError> {
        self.validate_numbers()?;
        check_room(self)
    }
}

/// Refuses a geometry, whose numbers are valid, without room for its header.
fn check_room(geometry: &Geometry) -> Result<(), GlassError> {
    let refuse =
        |reason: String| Err(GlassError::Geometry { profile: geometry.profile.clone(), reason });
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
    let enough = match payload_enough(geometry)? {
        Some(enough) => format!("sector_payload_bytes is {payload} and has to be {enough} or more"),
        None => format!("sector_payload_bytes is {payload}"),
    };
    refuse(format!(
        "the header of a platter takes up to {bytes} bytes, which are {pages} sectors, and a track \
         has {sectors}: {enough}, or track_information_sectors and track_redundancy_sectors \
         together {pages} or more"
    ))
}

/// The least payload of a sector with which the header fits a track of as many sectors, if any.
fn payload_enough(geometry: &Geometry) -> Result<Option<u32>, GlassError> {
    let sectors = usize::from(geometry.track_sectors());
    let mut larger = geometry.clone();
    while larger.sector_payload_bytes < SECTOR_PAYLOAD_BYTES_MAX {
        larger.sector_payload_bytes += 128;
        // The header has the payload in it, and the user bytes, which grow with it.
        if pages(document_bytes_max(&larger)?, &larger) <= sectors {
            return Ok(Some(larger.sector_payload_bytes));
        }
    }
    Ok(None)
}

/// Bytes of the longest header document of a platter of this geometry.
fn document_bytes_max(geometry: &Geometry) -> Result<usize, GlassError> {
    // Ids are as long as each other, and no count of user bytes exceeds the platter's.
    let (platter, bytes) = (PlatterId::from_bytes([0xFF; 16]), geometry.platter_user_bytes());
    let member = SetMember { platter, data_bytes: bytes, list_bytes: bytes };
    let longest = PlatterHeader {
        format: FormatVersion::CURRENT,
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
