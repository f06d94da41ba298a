//! The rack of the paper: 1,152 disks in 48 groups of 24, four classes, two servers.

/// Number of groups.
pub(crate) const GROUPS: u32 = 48;
/// Disks per group.
pub(crate) const DISKS_OF_GROUP: u32 = 24;
/// Disks per blob, any 15 of which are enough (15 + 3).
pub(crate) const STACKS_OF_BLOB: u32 = 18;
/// Disks per rack.
pub(crate) const DISKS: u32 = GROUPS * DISKS_OF_GROUP;
/// Number of classes: one group of each is active.
pub(crate) const CLASSES: usize = 4;
/// Groups per class.
pub(crate) const GROUPS_OF_CLASS: u32 = 12;

/// Returns the class of a group.
pub(crate) const fn class_of(group: u32) -> usize {
    (group / GROUPS_OF_CLASS) as usize
}

/// Returns the half of the rack that a group is in, and so its server.
pub(crate) const fn half_of(group: u32) -> usize {
    class_of(group) / 2
}
