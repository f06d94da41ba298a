//! What progress reports, and how sets are estimated.

use super::*;

#[test]
fn estimate_matches_how_sets_are_filled() {
    let geometry = Geometry::profile("demo").unwrap();
    let (platter, set) = (geometry.platter_user_bytes(), geometry.set_user_bytes());
    let full = platter_bytes(&geometry, platter);
    let redundancy = u64::from(geometry.set_redundancy_platters);
    let estimate = |bytes| sets_bytes(&geometry, bytes);
    assert_eq!(estimate(0), 0);
    assert_eq!(estimate(1), (1 + redundancy) * platter_bytes(&geometry, 1));
    assert_eq!(estimate(platter), (1 + redundancy) * full);
    assert_eq!(estimate(platter + 1), (1 + redundancy) * full + platter_bytes(&geometry, 1));
    let whole = (u64::from(geometry.set_information_platters) + redundancy) * full;
    assert_eq!(estimate(set), whole);
    assert_eq!(estimate(2 * set + platter), 2 * whole + estimate(platter));
}
