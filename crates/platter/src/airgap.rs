//! The air gap, expressed in types: a written platter can be read, and nothing can write to it
//! again.
//!
//! ```text
//! Blank --WriteDrive::write--> PlatterWriter --finish--> WrittenPlatter    (one way)
//! ```
//!
//! Writing consumes a [`Blank`]:
//!
//! ```
//! # use fulgurite_platter::{Blank, PlatterHeader, WriteDrive, WrittenPlatter};
//! fn write_once(blank: Blank, header: PlatterHeader) {
//!     let _ = WriteDrive::new().write(blank, header, Vec::new());
//! }
//! # fn has_the_names_used_below(_: WrittenPlatter) {}
//! ```
//!
//! Nothing turns a [`WrittenPlatter`] into a blank one:
//!
//! ```compile_fail,E0308
//! # use fulgurite_platter::{PlatterHeader, WriteDrive, WrittenPlatter};
//! fn write_again(written: WrittenPlatter, header: PlatterHeader) {
//!     // A written platter is not a blank one.
//!     let _ = WriteDrive::new().write(written, header, Vec::new());
//! }
//! ```
//!
//! Nor is one written twice:
//!
//! ```compile_fail,E0382
//! # use fulgurite_platter::{Blank, PlatterHeader, WriteDrive};
//! fn write_twice(blank: Blank, header: PlatterHeader) {
//!     let drive = WriteDrive::new();
//!     let _ = drive.write(blank, header.clone(), Vec::new());
//!     // The blank went into the first write.
//!     let _ = drive.write(blank, header, Vec::new());
//! }
//! ```
//!
//! The types stand for the pieces of glass, not for files: a caller that opens a sealed file for
//! writing bypasses them, which is why sealed files are read-only.

use fulgurite_units::PlatterId;

use crate::seal::Seal;

/// A new platter on which nothing was ever written.
#[derive(Debug)]
pub struct Blank {
    platter: PlatterId,
}

impl Blank {
    /// Creates a blank with the ID of the platter that it will become.
    #[must_use]
    pub const fn new(platter: PlatterId) -> Self {
        Self { platter }
    }

    /// ID of the platter.
    #[must_use]
    pub const fn platter(&self) -> PlatterId {
        self.platter
    }
}

/// A finished platter. It cannot become blank again, and no function that writes accepts it.
#[derive(Debug)]
pub struct WrittenPlatter {
    platter: PlatterId,
    seal: Seal,
}

impl WrittenPlatter {
    pub(crate) fn new(blank: Blank, seal: Seal) -> Self {
        debug_assert_eq!(blank.platter, seal.platter);
        Self { platter: blank.platter, seal }
    }

    /// ID of the platter.
    #[must_use]
    pub const fn platter(&self) -> PlatterId {
        self.platter
    }

    /// Final record of the platter: tracks, bytes and digest.
    #[must_use]
    pub const fn seal(&self) -> &Seal {
        &self.seal
    }
}
