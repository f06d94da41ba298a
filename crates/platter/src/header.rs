//! The header of a platter: everything a reader must know, as JSON and as plain text.
//!
//! ```text
//! header document    JSON (one object, UTF-8) + blank line + text of docs/formats/platter.md
//! cut into pages     page i = bytes i * (P - 16) .. of the document
//! header track       sector of layer l holds page l mod pages, so each page is there many times
//!
//! payload of a header sector
//!  0      4       8            12               16                                    P
//! +------+-------+------------+----------------+-------------------------------------+
//! | page | pages | JSON bytes | document bytes | bytes of the page, then zeros       |
//! +------+-------+------------+----------------+-------------------------------------+
//! ```
//!
//! The header track is not protected by a code, because a reader needs the header to know the code.
//! It is protected by its replicas, at the front and at the back of the platter.

mod capacity;

use fulgurite_codes::large_definition;
use fulgurite_codes::small::points;
use fulgurite_units::{ArchiveId, PlatterId, SetId, UnixTime};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::PlatterError;
use crate::geometry::{Geometry, TrackMap};
use crate::limits::HEADER_DOCUMENT_BYTES_MAX;
use crate::sector::{FORMAT_VERSION, u32_at};

/// The plain-text description of the format that every platter carries.
pub const FORMAT_TEXT: &str = include_str!("../../../docs/formats/platter.md");

const ABOUT: &str = "Fulgurite platter. All about its format is in the text after this JSON.";

/// Bytes in a header sector's payload before the document's bytes.
const PAGE_HEADER_BYTES: usize = 16;

/// What a platter holds, where, and how to read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlatterHeader {
    /// Archive that wrote the platter.
    pub archive: ArchiveId,
    /// ID of the platter.
    pub platter: PlatterId,
    /// Number of this attempt to write it, from 0; the platter of a failed attempt is scrap.
    pub generation: u32,
    /// Platter-set that it belongs to.
    pub set: SetId,
    /// Its role in the set.
    pub role: PlatterRole,
    /// All platters of the set by position: information first, then redundancy. `None` for those
    /// that were not written because the set was closed early; they count as zeros.
    pub members: Vec<Option<SetMember>>,
    /// Parameters of the platter and the set.
    pub geometry: Geometry,
    /// Bytes of bodies, from user byte 0. On a redundancy platter: bytes of redundancy.
    pub data_bytes: u64,
    /// Bytes of the file list, which follows the bodies. Zero on a redundancy platter.
    pub list_bytes: u64,
    /// Entries of the file list.
    pub list_entries: u32,
    /// Time at which the set was planned.
    pub created: UnixTime,
    /// Name and version of the program that wrote the platter.
    pub software: String,
}

/// Role of a platter in its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum PlatterRole {
    /// Holds user bytes.
    Information {
        /// Index among the information platters.
        index: u16,
    },
    /// Holds redundancy of the information platters.
    Redundancy {
        /// Index among the redundancy platters.
        index: u16,
    },
}

/// What each platter of a set records about the others, enough to rebuild a lost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetMember {
    /// ID of the platter at this position.
    pub platter: PlatterId,
    /// Its bytes of bodies (or redundancy).
    pub data_bytes: u64,
    /// Bytes of its file list, which follows.
    pub list_bytes: u64,
}

/// Returns the definitions of the codes.
fn codes() -> serde_json::Value {
    json!({
        "track_and_set": {
            "field": "GF(2^8) modulo 0x11D",
            "basis": points::BASIS.map(|element| format!("{element:02X}")),
            "redundancy": "r(i) is the sum of x(j) / (x(j) + y(i)) d(j); d(j) at x(j), the \
                           element of number 255 - j, r(i) at y(i), the element of number i",
        },
        "large_group": {
            "field": "GF(2^16): a + b u over GF(2^8) modulo 0x11D, u^2 = u + 0x22",
            "basis": large_definition::BASIS.map(|[one, u]| format!("{one:02X}+{u:02X}u")),
            "redundancy": "r(i) is the sum of g(j) / (x(j) + y(i)) d(j); d(j) at x(j), the \
                           element of number m + j, r(i) at y(i), the element of number i; \
                           g(j) the element of number (m + j) / m; m is the redundancy count \
                           rounded up to a power of two",
        },
        "sector_checksum": "BLAKE3, 256 bits",
    })
}

/// The JSON object as stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    about: String,
    format_version: u16,
    platter: PlatterHeader,
    codes: serde_json::Value,
}

impl PlatterHeader {
    /// Returns the bytes of bodies and file list.
    #[must_use]
    pub const fn user_bytes(&self) -> u64 {
        self.data_bytes.saturating_add(self.list_bytes)
    }

    /// Returns the platter's position among the members of its set.
    #[must_use]
    pub fn position(&self) -> usize {
        match self.role {
            PlatterRole::Information { index } => usize::from(index),
            PlatterRole::Redundancy { index } => {
                usize::from(self.geometry.set_information_platters) + usize::from(index)
            }
        }
    }

    /// Returns the platter's tracks. The header must be valid.
    ///
    /// # Panics
    /// When the user bytes do not fit the geometry.
    #[must_use]
    pub fn map(&self) -> TrackMap {
        self.geometry.map(self.geometry.tracks_for(self.user_bytes()))
    }

    /// Checks that the header describes a possible platter. Whether it fits its track is checked
    /// when it is written; a header that was read did fit.
    ///
    /// # Errors
    /// [`PlatterError::Header`] or [`PlatterError::Geometry`].
    pub fn validate(&self) -> Result<(), PlatterError> {
        self.geometry.validate_numbers()?;
        let refuse = |reason: String| Err(PlatterError::Header { platter: self.platter, reason });
        let capacity = self.geometry.platter_user_bytes();
        if self.user_bytes() > capacity {
            return refuse(format!("{} user bytes exceed {capacity}", self.user_bytes()));
        }
        let in_range = match self.role {
            PlatterRole::Information { index } => index < self.geometry.set_information_platters,
            PlatterRole::Redundancy { index } => index < self.geometry.set_redundancy_platters,
        };
        if !in_range {
            return refuse(format!("{:?} is not part of a set", self.role));
        }
        if self.members.len() != usize::from(self.geometry.set_platters()) {
            return refuse(format!("a set of {} members", self.members.len()));
        }
        let own = SetMember {
            platter: self.platter,
            data_bytes: self.data_bytes,
            list_bytes: self.list_bytes,
        };
        if self.members[self.position()] != Some(own) {
            return refuse(format!("the set does not list this platter at {}", self.position()));
        }
        for member in self.members.iter().flatten() {
            let bytes = member.data_bytes.saturating_add(member.list_bytes);
            if bytes > capacity {
                return refuse(format!("member {} of {bytes} bytes", member.platter));
            }
        }
        Ok(())
    }

    /// Builds the header document. Returns the length of the JSON, and the JSON followed by the
    /// text.
    fn document(&self) -> Result<(usize, Vec<u8>), PlatterError> {
        let document = Document {
            about: ABOUT.to_owned(),
            format_version: FORMAT_VERSION,
            platter: self.clone(),
            codes: codes(),
        };
        let json = serde_json::to_string(&document).map_err(|error| PlatterError::Header {
            platter: self.platter,
            reason: error.to_string(),
        })?;
        Ok((json.len(), format!("{json}\n\n{FORMAT_TEXT}").into_bytes()))
    }

    /// Builds the header document, divided for sectors of this geometry.
    pub(crate) fn to_pages(&self) -> Result<HeaderPages, PlatterError> {
        let (json_bytes, text) = self.document()?;
        let pages = pages(text.len(), &self.geometry);
        let sectors = usize::from(self.geometry.track_sectors());
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        if pages > sectors || narrow(text.len()) > HEADER_DOCUMENT_BYTES_MAX {
            return Err(PlatterError::HeaderTooLong {
                pages: narrow(pages),
                sectors: narrow(sectors),
            });
        }
        let page_bytes = page_bytes(&self.geometry);
        Ok(HeaderPages { json_bytes: narrow(json_bytes), text, page_bytes })
    }

    fn parse(json: &[u8], platter: PlatterId) -> Result<Self, PlatterError> {
        let invalid = |reason: String| PlatterError::Header { platter, reason };
        let document: Document =
            serde_json::from_slice(json).map_err(|error| invalid(error.to_string()))?;
        if document.format_version != FORMAT_VERSION {
            return Err(invalid(format!("format version {}", document.format_version)));
        }
        if document.codes != codes() {
            return Err(invalid("the codes are not those this program knows".to_owned()));
        }
        let header = document.platter;
        // Impossible numbers are an invalid request in a configuration, but corruption on a
        // platter.
        header.validate().map_err(|error| {
            let is_named = matches!(error, PlatterError::Header { .. });
            if is_named { error } else { invalid(error.to_string()) }
        })?;
        Ok(header)
    }
}

/// Returns the document bytes per header sector.
const fn page_bytes(geometry: &Geometry) -> usize {
    geometry.sector_payload_bytes as usize - PAGE_HEADER_BYTES
}

/// Returns the number of header sectors for a document.
const fn pages(document_bytes: usize, geometry: &Geometry) -> usize {
    document_bytes.div_ceil(page_bytes(geometry))
}

/// A header document, ready to be written to header sectors.
pub(crate) struct HeaderPages {
    text: Vec<u8>,
    json_bytes: u32,
    page_bytes: usize,
}

impl HeaderPages {
    /// Fills the payload of the header sector at `layer`.
    pub(crate) fn fill(&self, layer: usize, payload: &mut [u8]) {
        let pages = self.text.len().div_ceil(self.page_bytes);
        let page = layer % pages;
        let from = page * self.page_bytes;
        let bytes = &self.text[from..self.text.len().min(from + self.page_bytes)];
        let fields = [page, pages, self.json_bytes as usize, self.text.len()];
        for (at, field) in fields.into_iter().enumerate() {
            let field = u32::try_from(field).unwrap_or(u32::MAX);
            payload[at * 4..][..4].copy_from_slice(&field.to_le_bytes());
        }
        let (filled, rest) = payload[PAGE_HEADER_BYTES..].split_at_mut(bytes.len());
        filled.copy_from_slice(bytes);
        rest.fill(0);
    }
}

/// Collects header pages until the JSON is complete.
pub(crate) struct HeaderCollector {
    archive: ArchiveId,
    platter: PlatterId,
    generation: u32,
    payload_bytes: u32,
    json_bytes: u32,
    pages: Vec<Option<Vec<u8>>>,
}

impl HeaderCollector {
    /// Creates a collector for the platter of the first valid header sector found. Returns `None`
    /// when the payload does not hold a page.
    pub(crate) fn new(header: &crate::sector::SectorHeader, payload: &[u8]) -> Option<Self> {
        let json_bytes = u32_at(payload, 8);
        let document_bytes = u32_at(payload, 12);
        if json_bytes == 0
            || json_bytes > document_bytes
            || document_bytes > HEADER_DOCUMENT_BYTES_MAX
        {
            return None;
        }
        let page_bytes = payload.len() - PAGE_HEADER_BYTES;
        let pages = (json_bytes as usize).div_ceil(page_bytes);
        Some(Self {
            archive: header.archive,
            platter: header.platter,
            generation: header.generation,
            payload_bytes: header.payload_bytes,
            json_bytes,
            pages: vec![None; pages],
        })
    }

    /// Adds a valid header sector, if it belongs to the same platter and to the JSON.
    pub(crate) fn add(&mut self, header: &crate::sector::SectorHeader, payload: &[u8]) {
        let same = header.archive == self.archive
            && header.platter == self.platter
            && header.generation == self.generation
            && header.payload_bytes == self.payload_bytes
            && u32_at(payload, 8) == self.json_bytes;
        let page = u32_at(payload, 0) as usize;
        if same && let Some(slot) = self.pages.get_mut(page) {
            slot.get_or_insert_with(|| payload[PAGE_HEADER_BYTES..].to_vec());
        }
    }

    /// Whether every page of the JSON was found.
    pub(crate) fn is_complete(&self) -> bool {
        self.pages.iter().all(Option::is_some)
    }

    /// Parses the header, once complete.
    pub(crate) fn finish(&self) -> Result<PlatterHeader, PlatterError> {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let missing = self.pages.iter().filter(|page| page.is_none()).count();
        if missing > 0 {
            return Err(PlatterError::HeaderLost {
                platter: self.platter,
                missing: count(missing),
                pages: count(self.pages.len()),
            });
        }
        let mut json: Vec<u8> = self.pages.iter().flatten().flatten().copied().collect();
        json.truncate(self.json_bytes as usize);
        let header = PlatterHeader::parse(&json, self.platter)?;
        let same = header.archive == self.archive
            && header.platter == self.platter
            && header.generation == self.generation
            && header.geometry.sector_payload_bytes == self.payload_bytes;
        if !same {
            let reason = "it disagrees with the sectors that carry it".to_owned();
            return Err(PlatterError::Header { platter: self.platter, reason });
        }
        Ok(header)
    }
}
