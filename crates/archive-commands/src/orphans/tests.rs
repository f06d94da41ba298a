//! What an operator sees of a segment before it is removed for good.

use super::*;

#[test]
fn orphaned_segment_shows_its_possible_origin() {
    let origin = |run, records, bodies, bodies_with_keys| {
        let shown = show(&OrphanedSegment {
            file: "staging-00000007-run-9.seg".to_owned(),
            log: "staging".to_owned(),
            number: 7,
            run,
            disk_bytes: 1 << 28,
            records,
            bodies,
            bodies_with_keys,
            error: None,
        });
        shown.split_once(" with a key").unwrap().1.to_owned()
    };
    assert_eq!(origin(Some(9), 0, 0, 0), " (of an upload that was cut short)");
    assert_eq!(origin(Some(9), 4, 2, 0), " (deleted, or never acknowledged)");
    assert_eq!(origin(Some(9), 4, 2, 1), "");
    assert_eq!(origin(None, 0, 0, 0), "", "the origin is unknown");
}
