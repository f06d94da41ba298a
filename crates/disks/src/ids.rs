//! Ids of disks and groups. A disk is identified by its place, since a disk may be replaced but its
//! place stays.

use fulgurite_units::index;

index!(
    /// The place of a disk: one bay of a rack or of a shelf.
    PlaceId,
    u32
);
index!(
    /// A group of disks that spin up and down together (Pelican, OSDI 2014, section 2.2).
    GroupId,
    u32
);
