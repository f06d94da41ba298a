//! How large a grid the exact search takes, and how far it goes.

/// Shelves of a panel: one bit each of a rack's mask.
pub(crate) const SHELVES_MAX: u16 = 16;

/// Racks that a blast zone may span: the search remembers one rack less, 16 bits of a `u64` each.
pub(crate) const ZONE_RACKS_MAX: u16 = 5;

/// Storage racks of one library that the search for the smallest number tries.
pub(crate) const RACKS_MAX: u16 = 64;

const _: () = assert!((ZONE_RACKS_MAX - 1) * SHELVES_MAX <= 64);
