//! Which of the libraries that a planner is given.

use std::fmt;

/// The place of a library in the list that the planner is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LibraryIndex(usize);

impl LibraryIndex {
    /// The library at this place of the list.
    #[must_use]
    pub const fn new(index: usize) -> Self {
        Self(index)
    }

    /// The place in the list.
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
