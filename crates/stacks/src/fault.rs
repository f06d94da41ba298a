//! What is wrong with a stack: data, and no error, for the other stacks of its blob take over.

use std::io;

/// What is wrong with a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Its disk cannot be read now: it is away, failed, or not awake.
    OutOfReach {
        /// Why.
        why: String,
    },
    /// Nothing: its disk sleeps on, since others are enough.
    Asleep,
    /// The process or the system has too much open, or no memory: no fault of the stack.
    Exhausted {
        /// What the system said.
        what: String,
    },
    /// There is no such file.
    Missing,
    /// The file cannot be read or written.
    Io {
        /// What the system said.
        what: String,
    },
    /// It does not begin as a stack does.
    NoStack,
    /// A newer program wrote it.
    Newer {
        /// The version it says.
        version: u8,
    },
    /// It has no trailer: whoever wrote it never finished, or its end is gone.
    Unfinished,
    /// It is not as long as it says.
    Cut {
        /// Bytes that there are.
        have: u64,
        /// Bytes that there should be.
        need: u64,
    },
    /// It is another stack than the one that belongs here.
    Stranger {
        /// What it is.
        what: String,
    },
    /// Bytes are not what was written.
    Damaged {
        /// Which.
        what: String,
    },
}

impl Fault {
    /// Whether it may be gone later without a repair.
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
            | Self::Stranger { .. }
            | Self::Damaged { .. } => false,
        }
    }

    /// Whether nothing is wrong but that too much is open.
    #[must_use]
    pub const fn is_exhausted(&self) -> bool {
        matches!(self, Self::Exhausted { .. })
    }

    /// Whether the file is whole and simply not the one that belongs here: it may be somebody's
    /// only copy, and nothing overwrites it.
    #[must_use]
    pub const fn is_somebodys(&self) -> bool {
        match self {
            Self::Stranger { .. } | Self::Newer { .. } => true,
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

    /// The fault that an error of a file is.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            return Self::Missing;
        }
        let what = error.to_string();
        if fulgurite_disks::is_exhausted(error) {
            Self::Exhausted { what }
        } else {
            Self::Io { what }
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OutOfReach { why } => write!(f, "out of reach ({why})"),
            Self::Asleep => write!(f, "asleep"),
            Self::Missing => write!(f, "missing"),
            Self::Exhausted { what } | Self::Io { what } => write!(f, "{what}"),
            Self::NoStack => write!(f, "no stack"),
            Self::Newer { version } => {
                write!(f, "version {version}, which this program does not know")
            }
            Self::Unfinished => write!(f, "never finished, or without its end"),
            Self::Cut { have, need } => write!(f, "{have} bytes long instead of {need}"),
            Self::Stranger { what } => write!(f, "in its place is {what}"),
            Self::Damaged { what } => write!(f, "damaged: {what}"),
        }
    }
}
