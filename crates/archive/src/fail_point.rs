//! The names of all fail points of the program.

/// Every fail point, in the order of an object's life.
pub const FAIL_POINTS: [&str; 35] = [
    "put-digested",
    "put-written",
    "put-staged",
    "put-named",
    "put-brought",
    "put-committed",
    "part-committed",
    "complete-logged",
    "complete-committed",
    "shared-joined",
    "seal-planned",
    "write-half",
    "write-synced",
    "write-platter",
    "seal-written",
    "verify-platter",
    "seal-verified",
    "seal-stored",
    "release-batch",
    "seal-released",
    "release-freed",
    "far-carried",
    "far-recorded",
    "move-written",
    "move-committed",
    "move-removed",
    "restore-accepted",
    "read-platter",
    "restore-read",
    "restore-committed",
    "expire-committed",
    "delete-committed",
    "delete-shredded",
    "delete-freed",
    "forget-compacted",
];

#[cfg(test)]
mod tests {
    #[test]
    fn glass_fail_points_are_listed() {
        for point in fulgurite_glass::FAIL_POINTS {
            assert!(super::FAIL_POINTS.contains(&point), "{point}");
        }
    }
}
