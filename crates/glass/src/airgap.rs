//! The air gap, as types: a written platter can be read, and nothing can write to it again.
//!
//! ```text
//! Blank --WriteDrive::write--> PlatterWriter --finish--> Written      (one way)
//! ```
//!
//! A [`Blank`] is consumed when writing begins and nothing makes one from a [`Written`]:
//!
//! ```compile_fail,E0308
//! # use fulgurite_glass::{PlatterHeader, WriteDrive, Written};
//! fn write_again(written: Written, header: PlatterHeader) {
//!     // A written platter is not a blank one.
//!     let _ = WriteDrive::new().write(written, header, Vec::new());
//! }
//! ```
//!
//! ```compile_fail,E0382
//! # use fulgurite_glass::{Blank, PlatterHeader, WriteDrive};
//! fn write_twice(blank: Blank, header: PlatterHeader) {
//!     let drive = WriteDrive::new();
//!     let _ = drive.write(blank, header.clone(), Vec::new());
//!     // The blank went into the first write.
//!     let _ = drive.write(blank, header, Vec::new());
//! }
//! ```
//!
//! The types stand for the pieces of glass. They do not stand for files: a caller that opens a
//! sealed file for writing goes around them, which is why sealed files are read-only.

use fulgurite_units::PlatterId;

use crate::seal::Seal;

/// A platter fresh from the supply, on which nothing was ever written.
#[derive(Debug)]
pub struct Blank {
    platter: PlatterId,
}

impl Blank {
    /// A blank from the supply, under the id it will have.
    #[must_use]
    pub const fn new(platter: PlatterId) -> Self {
        Self { platter }
    }

    /// Its id.
    #[must_use]
    pub const fn platter(&self) -> PlatterId {
        self.platter
    }
}

/// A finished platter. It cannot become blank again, and nothing that writes takes it.
#[derive(Debug)]
pub struct Written {
    platter: PlatterId,
    seal: Seal,
}

impl Written {
    pub(crate) fn new(blank: Blank, seal: Seal) -> Self {
        debug_assert_eq!(blank.platter, seal.platter);
        Self { platter: blank.platter, seal }
    }

    /// Its id.
    #[must_use]
    pub const fn platter(&self) -> PlatterId {
        self.platter
    }

    /// Its final record: tracks, bytes and digest.
    #[must_use]
    pub const fn seal(&self) -> &Seal {
        &self.seal
    }
}
