//! The common language of all operations: the commands they issue and the events they receive.
//!
//! An operation is a [`Controller`]. Its driver (live, the simulation or the twin) executes the
//! [`OpCommand`]s and reports the results as [`OpEvent`]. Bytes never pass through an operation:
//! the driver holds them.

use fulgurite_units::Controller;

use crate::{Ask, KnownVersions, Row, SiteIndex, Terms, Value, Verdict, Version, WriteId};

/// A command of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpCommand {
    /// Sends a request to a site's row. Answered by [`OpEvent::Answered`].
    Ask(Ask),
    /// Notifies a site of what is decided. Nothing waits for it.
    Notify {
        /// The site.
        site: SiteIndex,
        /// The decided versions.
        known: KnownVersions,
    },
    /// Acts on one fragment. Answered by [`OpEvent::Fragment`].
    Fragment(Fragment, FragmentOp),
    /// Fetches the bytes of a version, as many as were requested, from any fragments. Answered by
    /// [`OpEvent::FetchResult`].
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
pub enum FragmentOp {
    /// Writes it, if it is missing.
    Write,
    /// Checks whether it exists.
    Probe,
    /// Rebuilds it from others and writes it.
    Rebuild,
    /// Fences it: unless it exists, a marker takes its place so that it can never be written.
    Fence,
    /// Removes it, or the marker in its place.
    Erase,
}

/// Result of an action on a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpResult {
    /// It is written, exists, was rebuilt, fenced or removed.
    Done,
    /// It certainly does not exist: a probe did not find it, or a write was fenced.
    Absent,
    /// Its state is unknown at the moment.
    Unknown,
}

/// Result of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchResult {
    /// The bytes are complete and match what was put.
    Complete,
    /// Too few fragments could be read.
    TooFew {
        /// Fragments that are certainly absent or damaged.
        absent: u8,
        /// Fragments at sites that did not answer or are being rebuilt.
        unknown: u8,
    },
}

/// An event for an operation.
#[derive(Clone, Debug)]
pub enum OpEvent {
    /// Begin.
    Begin,
    /// A site's answer to [`OpCommand::Ask`]; none if it will not answer.
    Answered {
        /// The site.
        site: SiteIndex,
        /// Number of the request.
        call: u32,
        /// The answer.
        answer: Option<(Verdict, Row)>,
    },
    /// Result of [`OpCommand::Fragment`].
    Fragment(Fragment, FragmentOp, OpResult),
    /// Result of [`OpCommand::Fetch`].
    FetchResult(Version, FetchResult),
    /// The terms have changed.
    Changed(Box<Terms>),
    /// The deadline has passed.
    Timer,
}

/// An operation: a controller that comes to an end.
pub trait Operation: Controller<Event = OpEvent, Command = OpCommand> {
    /// Its result.
    type End: Clone + std::fmt::Debug;

    /// Returns the result, once the operation has ended.
    fn end(&self) -> Option<&Self::End>;

    /// Returns what is known of the object.
    fn known(&self) -> &KnownVersions;
}
