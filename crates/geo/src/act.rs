//! The one language of all operations: what they want done at sites, and what comes back.
//!
//! An operation is a [`Controller`]; whoever runs it, live, in the simulation or in the twin, does
//! the [`Act`]s and answers with what was [`Heard`]. Bytes never pass through it: whoever runs it
//! has them.

use fulgurite_units::Controller;

use crate::{Ask, Known, Row, SiteIndex, Terms, Value, Verdict, Version, WriteId};

/// What an operation wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// A site's row asked. Answered by [`Heard::Answered`].
    Ask(Ask),
    /// A site told what is decided. Nobody waits for it.
    Tell {
        /// Which site.
        site: SiteIndex,
        /// What.
        known: Known,
    },
    /// Something done with one fragment. Answered by [`Heard::Fragment`].
    Fragment(Fragment, Deed),
    /// The bytes of a version fetched, as many as were asked for, from any fragments. Answered by
    /// [`Heard::Fetched`].
    Fetch {
        /// Which version.
        version: Version,
        /// Its value.
        value: Value,
    },
}

/// A fragment of a write, in all chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fragment {
    /// Of which write.
    pub write: WriteId,
    /// Which of its fragments.
    pub index: u8,
    /// Where it belongs.
    pub site: SiteIndex,
}

/// What is done with a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It is written, if it is not there.
    Write,
    /// It is looked for.
    Probe,
    /// It is made again of others and written.
    Rebuild,
    /// Its place is taken by a mark, so that it can never be written, unless it is there.
    Forbid,
    /// It is removed, or the mark in its place.
    Erase,
}

/// How that went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It is written, there, made again, forbidden or removed.
    Done,
    /// It is certain that it is not: of a probe, that it is not there; of a write, that it was
    /// forbidden.
    Absent,
    /// Nobody can tell at the moment.
    Unknown,
}

/// What came of fetching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The bytes are there, and are what was put.
    Whole,
    /// Too few fragments were had.
    Short {
        /// Fragments of which it is certain that they are not there, or are damaged.
        absent: u8,
        /// Fragments of sites that did not answer, or are being made again.
        unknown: u8,
    },
}

/// What an operation hears.
#[derive(Clone, Debug)]
pub enum Heard {
    /// Begin.
    Begin,
    /// What a site answered to [`Act::Ask`]; none when it will not.
    Answered {
        /// Which site.
        site: SiteIndex,
        /// Which question.
        call: u32,
        /// What it said.
        answer: Option<(Verdict, Row)>,
    },
    /// What came of [`Act::Fragment`].
    Fragment(Fragment, Deed, How),
    /// What came of [`Act::Fetch`].
    Fetched(Version, Fetched),
    /// Other terms hold.
    Changed(Box<Terms>),
    /// The deadline has passed.
    Timer,
}

/// An operation: a controller that comes to an end.
pub trait Operation: Controller<Event = Heard, Command = Act> {
    /// How it ends.
    type End: Clone + std::fmt::Debug;

    /// How it ended, if it has.
    fn end(&self) -> Option<&Self::End>;

    /// What is known of the object.
    fn known(&self) -> &Known;
}
