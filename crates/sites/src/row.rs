//! A row, and what a writer thinks of it.

use bytes::Bytes;

use crate::Tag;

/// What a writer thinks is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No row.
    Absent,
    /// The image of the row that has this tag.
    Is(Tag),
}

impl Expect {
    /// Whether this is what is there.
    pub(crate) fn is_met(&self, there: Option<&Row>) -> bool {
        match (self, there) {
            (Self::Absent, None) => true,
            (Self::Is(tag), Some(row)) => row.tag == *tag,
            (Self::Absent, Some(_)) | (Self::Is(_), None) => false,
        }
    }
}

/// A row as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What was written.
    pub bytes: Bytes,
    /// What the store calls this image of it.
    pub tag: Tag,
}
