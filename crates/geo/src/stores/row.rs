//! A row, and a writer's expectation of it.

use bytes::Bytes;

use crate::stores::Tag;

/// What a writer expects in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No row.
    Absent,
    /// The image of the row that has this tag.
    Is(Tag),
}

impl Expect {
    /// Whether it matches the current row.
    pub(crate) fn is_met(&self, current: Option<&Row>) -> bool {
        match (self, current) {
            (Self::Absent, None) => true,
            (Self::Is(tag), Some(row)) => row.tag == *tag,
            (Self::Absent, Some(_)) | (Self::Is(_), None) => false,
        }
    }
}

/// A row as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The bytes that were written.
    pub bytes: Bytes,
    /// The store's tag of this image.
    pub tag: Tag,
}
