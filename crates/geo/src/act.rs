//! The common language of all operations: the commands they issue and the events they receive.
//!
//! An operation is a [`Controller`]. Its driver (live, the simulation or the twin) executes the
//! [`Act`]s and reports the results as [`Heard`]. Bytes never pass through an operation: the driver
//! holds them.

use fulgurite_units::Controller;

use crate::{Ask, Known, Row, SiteIndex, Terms, Value, Verdict, Version, WriteId};

/// A command of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Sends a request to a site's row. Answered by [`Heard::Answered`].
    Ask(Ask),
    /// Notifies a site of what is decided. Nothing waits for it.
    Tell {
        /// The site.
        site: SiteIndex,
        /// The decided versions.
        known: Known,
    },
    /// Acts on one fragment. Answered by [`Heard::Fragment`].
    Fragment(Fragment, Deed),
    /// Fetches the bytes of a version, as many as were requested, from any fragments. Answered by
    /// [`Heard::Fetched`].
    Fetch {
        /// The version.
        version: Version,
        /// Its value.
        value: Value,
    },
}

/// A fragment of a write: its part of every chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fragment {
    /// The write it belongs to.
    pub write: WriteId,
    /// Its index among the fragments of the write.
    pub index: u8,
    /// The site that stores it.
    pub site: SiteIndex,
}

/// An action on a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Writes it, if it is missing.
    Write,
    /// Checks whether it exists.
    Probe,
    /// Rebuilds it from others and writes it.
    Rebuild,
    /// Fences it: unless it exists, a marker takes its place so that it can never be written.
    Forbid,
    /// Removes it, or the marker in its place.
    Erase,
}

/// Result of an action on a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It is written, exists, was rebuilt, fenced or removed.
    Done,
    /// It certainly does not exist: a probe did not find it, or a write was fenced.
    Absent,
    /// Its state is unknown at the moment.
    Unknown,
}

/// Result of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The bytes are complete and match what was put.
    Whole,
    /// Too few fragments could be read.
    Short {
        /// Fragments that are certainly absent or damaged.
        absent: u8,
        /// Fragments at sites that did not answer or are being rebuilt.
        unknown: u8,
    },
}

/// An event for an operation.
#[derive(Clone, Debug)]
pub enum Heard {
    /// Begin.
    Begin,
    /// A site's answer to [`Act::Ask`]; none if it will not answer.
    Answered {
        /// The site.
        site: SiteIndex,
        /// Number of the request.
        call: u32,
        /// The answer.
        answer: Option<(Verdict, Row)>,
    },
    /// Result of [`Act::Fragment`].
    Fragment(Fragment, Deed, How),
    /// Result of [`Act::Fetch`].
    Fetched(Version, Fetched),
    /// The terms have changed.
    Changed(Box<Terms>),
    /// The deadline has passed.
    Timer,
}

/// An operation: a controller that comes to an end.
pub trait Operation: Controller<Event = Heard, Command = Act> {
    /// Its result.
    type End: Clone + std::fmt::Debug;

    /// Returns the result, once the operation has ended.
    fn end(&self) -> Option<&Self::End>;

    /// Returns what is known of the object.
    fn known(&self) -> &Known;
}
