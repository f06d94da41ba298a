//! Names of spaces.

use std::fmt;

/// One named, ordered set of keys. All spaces are named when the store is opened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space(&'static str);

impl Space {
    /// Creates a space named `name`: 1 to 32 of the characters `a-z0-9_`.
    ///
    /// # Panics
    /// If the name breaks that rule; in a constant, at compile time.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        let bytes = name.as_bytes();
        assert!(!bytes.is_empty() && bytes.len() <= 32, "space name of 1 to 32 bytes");
        let mut i = 0;
        while i < bytes.len() {
            let valid = matches!(bytes[i], b'a'..=b'z' | b'0'..=b'9' | b'_');
            assert!(valid, "space name of a-z, 0-9 and _");
            i += 1;
        }
        Self(name)
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
