//! Faults of stacks. A fault is data rather than an error, because the other stacks of the blob
//! take over.

use std::io;

/// What is wrong with a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Its disk cannot be read now: it is away, failed or not spun up.
    OutOfReach {
        /// Why.
        reason: String,
    },
    /// No fault: its disk was left spun down, since others are enough.
    Asleep,
    /// The process or the system is out of file handles or memory; the stack is not at fault.
    Exhausted {
        /// The system's error message.
        detail: String,
    },
    /// There is no such file.
    Missing,
    /// The file cannot be read or written.
    Io {
        /// The system's error message.
        detail: String,
    },
    /// It does not begin like a stack.
    NoStack,
    /// Written by a newer program.
    Newer {
        /// Its version.
        version: u8,
    },
    /// It has no trailer: the write was never finished, or its end is gone.
    Unfinished,
    /// Its length does not match its header and trailer.
    Cut {
        /// Bytes that there are.
        have: u64,
        /// Bytes that there should be.
        need: u64,
    },
    /// It is another stack than the one that belongs here.
    Mismatch {
        /// What it is.
        detail: String,
    },
    /// Bytes differ from what was written.
    Damaged {
        /// Which bytes.
        detail: String,
    },
}

impl Fault {
    /// Whether the fault may go away without a repair.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::OutOfReach { .. } | Self::Asleep | Self::Exhausted { .. } => true,
            Self::Missing
            | Self::Io { .. }
            | Self::NoStack
            | Self::Newer { .. }
            | Self::Unfinished
            | Self::Cut { .. }
            | Self::Mismatch { .. }
            | Self::Damaged { .. } => false,
        }
    }

    /// Whether the cause is only a lack of file handles or memory.
    #[must_use]
    pub const fn is_exhausted(&self) -> bool {
        matches!(self, Self::Exhausted { .. })
    }

    /// Whether the file is intact but not the one that belongs here: it may be another rack's only
    /// copy, so it is never overwritten.
    #[must_use]
    pub const fn is_foreign(&self) -> bool {
        match self {
            Self::Mismatch { .. } | Self::Newer { .. } => true,
            Self::OutOfReach { .. }
            | Self::Asleep
            | Self::Exhausted { .. }
            | Self::Missing
            | Self::Io { .. }
            | Self::NoStack
            | Self::Unfinished
            | Self::Cut { .. }
            | Self::Damaged { .. } => false,
        }
    }

    /// Maps an I/O error of a file to a fault.
    #[must_use]
    pub fn from_io_error(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            return Self::Missing;
        }
        let detail = error.to_string();
        if fulgurite_disks::is_exhausted(error) {
            Self::Exhausted { detail }
        } else {
            Self::Io { detail }
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OutOfReach { reason } => write!(f, "out of reach ({reason})"),
            Self::Asleep => write!(f, "asleep"),
            Self::Missing => write!(f, "missing"),
            Self::Exhausted { detail } | Self::Io { detail } => write!(f, "{detail}"),
            Self::NoStack => write!(f, "not a stack"),
            Self::Newer { version } => {
                write!(f, "written by a newer program (version {version})")
            }
            Self::Unfinished => write!(f, "never finished, or without its end"),
            Self::Cut { have, need } => write!(f, "{have} bytes long instead of {need}"),
            Self::Mismatch { detail } => write!(f, "in its place is {detail}"),
            Self::Damaged { detail } => write!(f, "damaged: {detail}"),
        }
    }
}
