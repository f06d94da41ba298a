//! Index of a library in a planner's input.

use std::fmt;

/// Index of a library in the list passed to a planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LibraryIndex(usize);

impl LibraryIndex {
    /// Creates the index of the library at this position of the list.
    #[must_use]
    pub const fn new(index: usize) -> Self {
        Self(index)
    }

    /// Position in the list.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }
}

impl fmt::Display for LibraryIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
