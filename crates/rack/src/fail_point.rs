//! Names of the fail points of the rack tier.

/// All fail points, in the order of a blob's life.
pub const FAIL_POINTS: [&str; 16] = [
    "rack-index-made",
    "rack-disk-named",
    "rack-disk-made",
    "rack-begun",
    "rack-half",
    "rack-synced",
    "rack-read-back",
    "rack-committed",
    "rack-rebuild-half",
    "rack-rebuild-named",
    "rack-rebuilt",
    "rack-given-up",
    "rack-scrubbed",
    "rack-swept-half",
    "rack-swept",
    "rack-found",
];
