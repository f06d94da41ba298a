//! Errors of platters. An unreadable sector is no error: it is data in a report.

use std::io;

use fulgurite_codes::CodeError;
use fulgurite_units::{ArchiveId, ErrorKind, PlatterId};

use crate::InformationTrack;

/// A redundancy level, from the cheapest to read to the most expensive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeLevel {
    /// The redundancy sectors of the track itself.
    Track,
    /// The redundancy tracks of the large group, on the same platter.
    Group,
    /// The redundancy platters of the platter-set.
    Set,
}

impl std::fmt::Display for CodeLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Track => "within-track",
            Self::Group => "large-group",
            Self::Set => "cross-platter",
        })
    }
}

/// A track that could not be restored by any level up to the named one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Unreadable {
    /// The platter that holds (or held) the track.
    pub platter: PlatterId,
    /// The track that was wanted.
    pub track: InformationTrack,
    /// The last level tried.
    pub level: CodeLevel,
    /// Sectors lost in the codeword that failed; platters, for the cross-platter code.
    pub lost: u32,
    /// Sectors, or platters, that this code can restore.
    pub redundancy: u32,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { platter, track, level, lost, redundancy } = self;
        let unit = if *level == CodeLevel::Set { "platters" } else { "sectors" };
        write!(
            f,
            "track {track} of platter {platter} is unreadable: the {level} code lost {lost} \
             {unit} and can restore {redundancy}"
        )
    }
}

/// A platter could not be written, opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlatterError {
    /// The parameters of a geometry are invalid.
    #[error("geometry \"{profile}\" is invalid: {reason}")]
    Geometry {
        /// Name of its profile.
        profile: String,
        /// Description of the problem.
        reason: String,
    },
    /// There is no profile of this name.
    #[error("there is no geometry profile \"{profile}\"; use sliver, demo, desk or silica")]
    UnknownProfile {
        /// The requested name.
        profile: String,
    },
    /// The medium cannot determine whether sectors are readable.
    #[error("sectors of platter {platter} could not be decoded: {reason}")]
    Medium {
        /// The platter.
        platter: PlatterId,
        /// Description of the failure.
        reason: String,
    },
    /// A parameter of the voxel channel is out of range.
    #[error("channel: {field} is {value}; it may be {allowed}")]
    Channel {
        /// Name of the parameter.
        field: &'static str,
        /// Its value.
        value: String,
        /// Allowed values.
        allowed: String,
    },
    /// The source or sink failed.
    #[error("platter i/o failed at byte {offset}")]
    Io {
        /// Byte offset in the platter file.
        offset: u64,
        /// The cause.
        source: io::Error,
    },
    /// No header sector of a platter was found at the front or the back.
    #[error("this is not a platter: no header sector can be read at its front or back")]
    NotAPlatter,
    /// The platter was written in another version of the format.
    #[error("platter format version {found} is not supported (this program reads version {known})")]
    UnsupportedVersion {
        /// The version on the platter.
        found: u16,
        /// The version that can be read.
        known: u16,
    },
    /// The platter's header is invalid.
    #[error("the header of platter {platter} is invalid: {reason}")]
    Header {
        /// The platter, as its sectors name it.
        platter: PlatterId,
        /// Description of the problem.
        reason: String,
    },
    /// Some pages of the header are lost in all replicas.
    #[error("the header of platter {platter} is incomplete: {missing} of {pages} pages are lost")]
    HeaderLost {
        /// The platter, as its sectors name it.
        platter: PlatterId,
        /// Pages without a readable replica.
        missing: u32,
        /// Pages of the JSON part of the header.
        pages: u32,
    },
    /// The header does not fit the header track of this geometry.
    #[error("the header takes {pages} sectors and the header track has {sectors}")]
    HeaderTooLong {
        /// Sectors needed for one replica.
        pages: u32,
        /// Sectors per track.
        sectors: u32,
    },
    /// The platter belongs to another archive.
    #[error("platter {platter} belongs to archive {found}, not to {expected}")]
    WrongArchive {
        /// The platter found.
        platter: PlatterId,
        /// The requested archive.
        expected: ArchiveId,
        /// The archive that wrote it.
        found: ArchiveId,
    },
    /// This is another platter of the same archive.
    #[error("this is platter {found}, not {expected}")]
    WrongPlatter {
        /// The requested platter.
        expected: PlatterId,
        /// The platter found.
        found: PlatterId,
    },
    /// The file is shorter than the platter.
    #[error("platter {platter} is truncated: {found} of {expected} bytes")]
    Truncated {
        /// The platter.
        platter: PlatterId,
        /// File size according to the header.
        expected: u64,
        /// Actual file size.
        found: u64,
    },
    /// The file is longer than the platter.
    #[error("platter {platter} has {found} bytes instead of {expected}")]
    Overlong {
        /// The platter.
        platter: PlatterId,
        /// File size according to the header.
        expected: u64,
        /// Actual file size.
        found: u64,
    },
    /// The platter has no valid final record: its write did not finish, or all copies are damaged.
    #[error("platter {platter} is not sealed: no copy of its final record is valid")]
    Unsealed {
        /// The platter.
        platter: PlatterId,
    },
    /// Header and final record are not of the same write.
    #[error("the final record of platter {platter} does not match its header: {reason}")]
    SealMismatch {
        /// The platter.
        platter: PlatterId,
        /// Which fields differ.
        reason: String,
    },
    /// More user bytes were written than the header announced.
    #[error("platter {platter} was planned for {planned} bytes and got more")]
    Overrun {
        /// The platter.
        platter: PlatterId,
        /// User bytes announced.
        planned: u64,
    },
    /// The write ended before all user bytes that the header announced were given.
    #[error("platter {platter} was planned for {planned} bytes and got {written}")]
    Incomplete {
        /// The platter.
        platter: PlatterId,
        /// User bytes announced.
        planned: u64,
        /// User bytes given.
        written: u64,
    },
    /// A requested range is outside the platter.
    #[error("platter {platter} has {size} user bytes; {length} bytes at {offset} are outside")]
    Range {
        /// The platter.
        platter: PlatterId,
        /// First byte requested.
        offset: u64,
        /// Number of bytes requested.
        length: u64,
        /// User bytes of the platter.
        size: u64,
    },
    /// All available levels failed.
    #[error("{0}")]
    Unreadable(Unreadable),
    /// A file list is malformed.
    #[error("the file list is damaged at byte {offset}: {reason}")]
    List {
        /// Byte offset in the list.
        offset: u64,
        /// Description of the problem.
        reason: &'static str,
    },
    /// The given members are not those of the set.
    #[error(
        "position {wanted} of a set of {expected} platters cannot be recovered from {found} members"
    )]
    SetShape {
        /// Members of a full set.
        expected: usize,
        /// Members given.
        found: usize,
        /// The position to recover.
        wanted: usize,
    },
    /// A code rejected its arguments.
    #[error(transparent)]
    Code(#[from] CodeError),
}

impl PlatterError {
    /// Returns the kind of this error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { .. } | Self::Medium { .. } => ErrorKind::Unavailable,
            Self::NotAPlatter
            | Self::Header { .. }
            | Self::HeaderLost { .. }
            | Self::Truncated { .. }
            | Self::Overlong { .. }
            | Self::Unsealed { .. }
            | Self::SealMismatch { .. }
            | Self::Unreadable(_)
            | Self::List { .. } => ErrorKind::Corrupt,
            Self::WrongArchive { .. }
            | Self::WrongPlatter { .. }
            | Self::UnsupportedVersion { .. } => ErrorKind::Conflict,
            Self::Channel { .. }
            | Self::Geometry { .. }
            | Self::UnknownProfile { .. }
            | Self::HeaderTooLong { .. }
            | Self::Overrun { .. }
            | Self::Incomplete { .. }
            | Self::Range { .. }
            | Self::SetShape { .. }
            | Self::Code(_) => ErrorKind::Invalid,
        }
    }
}
