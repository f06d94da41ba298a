//! Errors of tomes, with the ids and offsets that a caller needs to act.
//!
//! Not here: blocks that cannot be read. Those are data, which redundancy is for.

use fulgurite_codes::CodeError;
use fulgurite_units::ErrorKind;
use thiserror::Error;

use crate::{Epoch, GroupId, Offset, RegionId, TomeId, Version};

/// A failed operation on a tome, group or set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum TomeError {
    #[error("\"{text}\" is no split into data and parity; write for instance 62+2")]
    CodeParams { text: String },
    #[error("{field} is {value}, but must be from {min} to {max}")]
    Range { field: &'static str, value: u64, min: u64, max: u64 },
    #[error("blocks of {bytes} bytes are not a multiple of 256 bytes")]
    BlockBytes { bytes: u64 },
    #[error("offset {offset} is not below the {blocks} blocks of a region")]
    OffsetOutOfRange { offset: Offset, blocks: u32 },
    #[error("{have} {what} are given where there are {need}")]
    Count { what: &'static str, have: usize, need: usize },
    #[error("{bad} blocks of a segment are bad, of which its parity brings {parity} back")]
    SegmentLost { bad: usize, parity: u32 },
    #[error("a rebuilt block has not the signature that was noted for it")]
    SignatureMismatch { offset: Offset },
    #[error("the region changed while its signatures were exchanged")]
    Moved,
    #[error("not every member of group {group} answers")]
    Silent { group: GroupId },
    #[error("two regions of group {group} would lie on tome {tome}")]
    SameTome { group: GroupId, tome: TomeId },
    #[error("region {region} is claimed by tomes that are not one, or by two groups")]
    ClaimedTwice { region: RegionId },
    #[error("tome {tome} is there twice")]
    DuplicateTome { tome: TomeId },
    #[error("group {group} is there twice")]
    DuplicateGroup { group: GroupId },
    #[error("there is no tome {tome}")]
    NoTome { tome: TomeId },
    #[error("there is no group {group}")]
    NoGroup { group: GroupId },
    #[error("tome {tome} is not taken out: group {group} has it")]
    InUse { tome: TomeId, group: GroupId },
    #[error("tome {tome} shows epoch {epoch} of a token that is in epoch {latest}")]
    StaleEpoch { tome: TomeId, epoch: Epoch, latest: Epoch },
    #[error("region {region} is in no group")]
    NoRegion { region: RegionId },
    #[error("region {region} has data where parity is meant, or parity where data is")]
    WrongRole { region: RegionId },
    #[error("there is no object \"{name}\"")]
    NoObject { name: String },
    #[error("object \"{name}\" is there already")]
    ObjectExists { name: String },
    #[error("the bytes of object \"{name}\" have not its digest")]
    DigestMismatch { name: String },
    #[error("object \"{name}\" has {bytes} bytes, and a tome takes from 1 to {max}")]
    ObjectBytes { name: String, bytes: u64, max: u64 },
    #[error("no room is left for {what}")]
    Full { what: &'static str },
    #[error("no room is left for {what} until more of what waits is done")]
    Backlog { what: &'static str },
    #[error("version {version} is another change of offset {offset} than was folded")]
    ConflictingChange { offset: Offset, version: Version },
    #[error("{have} tomes have room where a group needs {need}")]
    TooFewTomes { have: usize, need: usize },
    #[error("only {have} members of group {group} are left where {need} are needed")]
    GroupLost { group: GroupId, have: usize, need: usize },
    #[error("what was rebuilt of group {group} is not what its code word says")]
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
