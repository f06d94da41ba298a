//! What a world of tomes is made of, what clients know in it, and what is counted.

/// Chances in a thousand, and what else a world is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nature {
    pub(super) tomes: u32,
    /// Whether tomes are told how many tokens there are.
    pub(super) tokens_known: bool,
    pub(super) lost: u64,
    pub(super) doubled: u64,
    /// Of a crash after a step with commands.
    pub(super) crash: u64,
    /// Of a tome cut off for some minutes, each minute.
    pub(super) cut: u64,
    /// Of a bad block, each minute.
    pub(super) bad: u64,
}

impl Nature {
    pub(super) const CALM: Self =
        Self { tomes: 10, tokens_known: true, lost: 0, doubled: 0, crash: 0, cut: 0, bad: 0 };
    pub(super) const ROUGH: Self =
        Self { lost: 80, doubled: 80, crash: 10, cut: 60, bad: 300, ..Self::CALM };
}

/// What a client knows of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing was answered yet.
    Asked,
    Local,
    Protected,
    /// It was to be removed, and nothing was answered yet.
    Removing,
}

/// What happened, so that a test can say that something did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) local: u32,
    pub(super) protected: u32,
    pub(super) read: u32,
    pub(super) crashes: u32,
    pub(super) healed: usize,
    pub(super) spins: u32,
    pub(super) restarts: u32,
    pub(super) bad: u32,
    /// Segments that were found to be beyond their parity.
    pub(super) broken: u32,
    /// Questions of members for blocks of others.
    pub(super) asked: u32,
    /// Blocks that a change is of and that were spoilt before it was folded.
    pub(super) old_bad: u32,
    /// Changes of which the group could not tell the bytes at first.
    pub(super) changes_lost: u32,
    pub(super) rebuilt: u32,
    pub(super) dropped: u32,
    pub(super) seats_lost: u32,
    /// Most disks that turned at a time.
    pub(super) peak: usize,
}
