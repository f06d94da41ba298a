//! What a sync has to do: decided from two listings and the answers about single objects, without a
//! file or a server in sight.
//!
//! ```text
//! only in the source            transfer (new)
//! in both, other size           transfer (size)
//! in both, same size            ask: by time, by checksum, or not at all
//! only in the target            delete, if that is wanted
//! ```
//!
//! By time: an object that says when its file was last changed is the file of that time and of no
//! other. One that does not say is unchanged if the target is not older than the source.

use std::collections::BTreeMap;

use fulgurite_client::file_time::FileTime;

/// Which side is made like the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The bucket becomes like the folder.
    Up,
    /// The folder becomes like the bucket.
    Down,
}

/// How files of the same size are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    /// By when the file was last changed.
    Time,
    /// By the checksum that the server keeps.
    Checksum,
    /// Not at all.
    Size,
}

/// Why something is transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It is not there.
    New,
    /// It has another size.
    Size,
    /// It was changed at another time.
    Time,
    /// It has another checksum.
    Content,
    /// The server has no checksum of it that can be compared.
    NoChecksum,
}

impl Reason {
    /// The word that people and programs read.
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
    /// A folder, or the mark of an empty one.
    pub(super) is_folder: bool,
}

/// What a first look at two listings says of a key of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing to do.
    Same,
    /// It must be transferred.
    Differs(Reason),
    /// Only the object itself can tell.
    Ask,
}

/// A first look.
pub(super) fn look(compare: Compare, source: Entry, target: Option<Entry>) -> Look {
    let Some(target) = target else { return Look::Differs(Reason::New) };
    if source.is_folder && target.is_folder {
        return Look::Same;
    }
    if source.bytes != target.bytes || source.is_folder != target.is_folder {
        return Look::Differs(Reason::Size);
    }
    // Two files without a byte are the same file.
    if source.bytes == 0 || compare == Compare::Size {
        return Look::Same;
    }
    Look::Ask
}

/// Whether a file and an object of the same size differ, by their times.
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

/// Keys of the target that the source does not have.
pub(super) fn only_in_target<'t, T>(
    source: &BTreeMap<String, impl Sized>,
    target: &'t BTreeMap<String, T>,
) -> Vec<&'t str> {
    target.keys().filter(|key| !source.contains_key(*key)).map(String::as_str).collect()
}

#[cfg(test)]
mod tests;
