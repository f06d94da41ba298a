//! Limits of the exact search: the size of grids, and how far it goes.

/// Maximum number of shelves of a panel: one bit each of a rack's mask.
pub(crate) const SHELVES_MAX: u16 = 16;

/// Maximum number of racks that a blast zone may span: the search remembers one rack less, 16 bits
/// of a `u64` each.
pub(crate) const ZONE_RACKS_MAX: u16 = 5;

/// Maximum number of storage racks of one library in the search for the smallest number.
pub(crate) const RACKS_MAX: u16 = 64;

const _: () = assert!((ZONE_RACKS_MAX - 1) * SHELVES_MAX <= 64);
