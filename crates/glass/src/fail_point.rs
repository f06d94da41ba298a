//! Names of the fail points of the glass tier.

/// The fail points of the glass tier, in the order of a set's life.
pub const FAIL_POINTS: [&str; 14] = [
    "seal-planned",
    "write-half",
    "write-synced",
    "write-platter",
    "seal-written",
    "verify-platter",
    "seal-verified",
    "seal-stored",
    "release-batch",
    "release-freed",
    "seal-released",
    "far-carried",
    "far-recorded",
    "read-platter",
];
