//! Plans a sync, from two listings and queries of single objects, without access to files or a
//! server.
//!
//! ```text
//! only in the source            transfer (new)
//! in both, other size           transfer (size)
//! in both, same size            query: by time, by checksum, or not at all
//! only in the target            delete, if requested
//! ```
//!
//! By time: an object that records when its file was last changed equals the file of that time and
//! no other. One that does not is unchanged if the target is not older than the source.

use std::collections::BTreeMap;

use fulgurite_client::file_time::FileTime;

/// Which side is made the same as the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The bucket is made the same as the folder.
    Up,
    /// The folder is made the same as the bucket.
    Down,
}

/// How files of the same size are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    /// By modification time.
    Time,
    /// By the checksum that the server stores.
    Checksum,
    /// Not at all.
    Size,
}

/// Why something is transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The target does not have it.
    New,
    /// Its size differs.
    Size,
    /// Its modification time differs.
    Time,
    /// Its checksum differs.
    Content,
    /// The server has no comparable checksum of it.
    NoChecksum,
}

impl Reason {
    /// Its name in text and JSON output.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Size => "size",
            Self::Time => "time",
            Self::Content => "content",
            Self::NoChecksum => "no-checksum",
        }
    }
}

/// One side's view of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Bytes.
    pub(super) bytes: u64,
    /// Whether it is a folder, or the mark of an empty one.
    pub(super) is_folder: bool,
}

/// The result of comparing two listings for a key of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// Nothing to do.
    Same,
    /// It must be transferred.
    Differs(Reason),
    /// Only a query of the object can decide.
    NeedsQuery,
}

/// Compares the two listings for a key.
pub(super) fn compare_entries(
    compare: Compare,
    source: Entry,
    target: Option<Entry>,
) -> Comparison {
    let Some(target) = target else { return Comparison::Differs(Reason::New) };
    if source.is_folder && target.is_folder {
        return Comparison::Same;
    }
    if source.bytes != target.bytes || source.is_folder != target.is_folder {
        return Comparison::Differs(Reason::Size);
    }
    // Two empty files are the same.
    if source.bytes == 0 || compare == Compare::Size {
        return Comparison::Same;
    }
    Comparison::NeedsQuery
}

/// Whether a file and an object of the same size differ by their times.
pub(super) fn differs_in_time(
    direction: Direction,
    local: Option<FileTime>,
    recorded: Option<FileTime>,
    put_at: Option<FileTime>,
) -> bool {
    let Some(local) = local else { return true };
    if let Some(recorded) = recorded {
        return !local.is_same(recorded);
    }
    let Some(put_at) = put_at else { return true };
    match direction {
        Direction::Up => local > put_at,
        Direction::Down => local < put_at,
    }
}

/// Returns the keys of the target that the source does not have.
pub(super) fn only_in_target<'t, T>(
    source: &BTreeMap<String, impl Sized>,
    target: &'t BTreeMap<String, T>,
) -> Vec<&'t str> {
    target.keys().filter(|key| !source.contains_key(*key)).map(String::as_str).collect()
}

#[cfg(test)]
mod tests;
