//! Parameters of a simulated world, what its clients know, and what is counted.

/// Fault rates per thousand, and other parameters of a world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nature {
    pub(super) tomes: u32,
    /// Whether tomes know the number of tokens.
    pub(super) tokens_known: bool,
    pub(super) lost: u64,
    pub(super) doubled: u64,
    /// Crashes after a step with commands.
    pub(super) crash: u64,
    /// Partitions of a tome for some minutes, per minute.
    pub(super) cut: u64,
    /// Bad blocks, per minute.
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
    /// The put is not answered yet.
    Asked,
    Local,
    Protected,
    /// The delete is not answered yet.
    Removing,
}

/// Events by kind, so that a test can assert that they occurred.
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
    /// Segments that turned out to have more bad blocks than parity.
    pub(super) lost_segments: u32,
    /// Requests to members for their blocks.
    pub(super) asked: u32,
    /// Old blocks that were damaged before their change was applied.
    pub(super) old_bad: u32,
    /// Changes whose bytes the group could not supply at first.
    pub(super) changes_lost: u32,
    pub(super) rebuilt: u32,
    pub(super) dropped: u32,
    pub(super) slots_lost: u32,
    /// Most disks that were spinning at a time.
    pub(super) peak: usize,
}
