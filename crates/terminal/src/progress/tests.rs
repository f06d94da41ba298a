//! Formatting of the time left.

use super::whole_seconds;

#[test]
fn time_left_is_in_whole_seconds() {
    let shown = [0, 59, 60, 200, 3599, 3600, 7_500].map(whole_seconds);
    let expected =
        ["0 s", "59 s", "1 min 0 s", "3 min 20 s", "59 min 59 s", "1 h 0 min", "2 h 5 min"];
    assert_eq!(shown, expected);
}
