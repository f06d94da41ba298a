//! Errors of tomes, with the ids and offsets that a caller needs to act.
//!
//! Not here: blocks that cannot be read. Those are data, handled by redundancy.

use fulgurite_codes::CodeError;
use fulgurite_units::ErrorKind;
use thiserror::Error;

use crate::{Epoch, GroupId, Offset, RegionId, TomeId, Version};

/// A failed operation on a tome, group or set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the fields")]
pub enum TomeError {
    #[error("\"{text}\" is not a code; write data+parity, for instance 62+2")]
    CodeParams { text: String },
    #[error("{field} is {value}, but must be from {min} to {max}")]
    Range { field: &'static str, value: u64, min: u64, max: u64 },
    #[error("blocks of {bytes} bytes are not a multiple of 256 bytes")]
    BlockBytes { bytes: u64 },
    #[error("offset {offset} is not below the {blocks} blocks of a region")]
    OffsetOutOfRange { offset: Offset, blocks: u32 },
    #[error("got {have} {what}, expected {need}")]
    Count { what: &'static str, have: usize, need: usize },
    #[error("{bad} blocks of a segment are bad, and its parity can rebuild only {parity}")]
    SegmentLost { bad: usize, parity: u32 },
    #[error("the rebuilt block at offset {offset} does not match its recorded signature")]
    SignatureMismatch { offset: Offset },
    #[error("the region changed while its signatures were exchanged; check again")]
    Moved,
    #[error("some members of group {group} do not answer")]
    Silent { group: GroupId },
    #[error("two regions of group {group} would lie on tome {tome}")]
    SameTome { group: GroupId, tome: TomeId },
    #[error("region {region} is claimed by two tomes or two groups")]
    ClaimedTwice { region: RegionId },
    #[error("tome {tome} already exists")]
    DuplicateTome { tome: TomeId },
    #[error("group {group} already exists")]
    DuplicateGroup { group: GroupId },
    #[error("tome {tome} does not exist")]
    NoTome { tome: TomeId },
    #[error("group {group} does not exist")]
    NoGroup { group: GroupId },
    #[error("tome {tome} cannot be removed: it is a member of group {group}")]
    InUse { tome: TomeId, group: GroupId },
    #[error("tome {tome} presents epoch {epoch} of a token whose epoch is {latest}")]
    StaleEpoch { tome: TomeId, epoch: Epoch, latest: Epoch },
    #[error("region {region} is in no group")]
    NoRegion { region: RegionId },
    #[error(
        "region {region} has the wrong role: data instead of parity, or parity instead of data"
    )]
    WrongRole { region: RegionId },
    #[error("object \"{name}\" does not exist")]
    NoObject { name: String },
    #[error("object \"{name}\" already exists")]
    ObjectExists { name: String },
    #[error("the bytes of object \"{name}\" do not match its digest")]
    DigestMismatch { name: String },
    #[error("object \"{name}\" has {bytes} bytes, but must have from 1 to {max}")]
    ObjectBytes { name: String, bytes: u64, max: u64 },
    #[error("no room for more {what}")]
    Full { what: &'static str },
    #[error("no room for more {what} until pending work is done")]
    Backlog { what: &'static str },
    #[error("version {version} at offset {offset} differs from the change already applied")]
    ConflictingChange { offset: Offset, version: Version },
    #[error("only {have} tomes have room, but a group needs {need}")]
    TooFewTomes { have: usize, need: usize },
    #[error("only {have} members of group {group} are left, but {need} are needed")]
    GroupLost { group: GroupId, have: usize, need: usize },
    #[error("the rebuilt region does not match the codeword of group {group}")]
    RebuildMismatch { group: GroupId },
    #[error(transparent)]
    Code(#[from] CodeError),
}

/// The result of an operation on tomes.
pub type Result<T, E = TomeError> = std::result::Result<T, E>;

impl TomeError {
    /// What the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::CodeParams { .. }
            | Self::Range { .. }
            | Self::BlockBytes { .. }
            | Self::OffsetOutOfRange { .. }
            | Self::SameTome { .. }
            | Self::WrongRole { .. }
            | Self::ObjectBytes { .. }
            | Self::Count { .. } => ErrorKind::Invalid,
            Self::SegmentLost { .. }
            | Self::SignatureMismatch { .. }
            | Self::RebuildMismatch { .. }
            | Self::DigestMismatch { .. }
            | Self::GroupLost { .. } => ErrorKind::Corrupt,
            Self::Moved
            | Self::Silent { .. }
            | Self::TooFewTomes { .. }
            | Self::Full { .. }
            | Self::Backlog { .. } => ErrorKind::Unavailable,
            Self::ClaimedTwice { .. }
            | Self::DuplicateTome { .. }
            | Self::DuplicateGroup { .. }
            | Self::InUse { .. }
            | Self::ObjectExists { .. }
            | Self::StaleEpoch { .. }
            | Self::ConflictingChange { .. } => ErrorKind::Conflict,
            Self::NoTome { .. }
            | Self::NoGroup { .. }
            | Self::NoRegion { .. }
            | Self::NoObject { .. } => ErrorKind::NotFound,
            Self::Code(error) => code_kind(error),
        }
    }
}

const fn code_kind(error: &CodeError) -> ErrorKind {
    use fulgurite_codes::ErrorKind as Code;
    match error.kind() {
        Code::Corrupt => ErrorKind::Corrupt,
        Code::Invalid => ErrorKind::Invalid,
        _ => ErrorKind::Internal,
    }
}
