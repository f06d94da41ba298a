//! Human-readable numbers.

use super::*;

#[test]
fn units_are_separated_by_a_space() {
    let shown: Vec<String> = [0, 1, 1023, 1024, 1536, 70 << 20, 3 << 40].map(bytes).into();
    assert_eq!(shown, ["0 B", "1 B", "1023 B", "1 KiB", "1.5 KiB", "70 MiB", "3 TiB"]);
    assert_eq!(rate(3 << 20, 2.0), "1.5 MiB/s");
    let shown: Vec<String> = [0.0, 0.84, 1.0, 119.94, 270.0, 10_260.0].map(seconds).into();
    assert_eq!(shown, ["0 ms", "840 ms", "1.0 s", "119.9 s", "4.5 min", "2.85 h"]);
    assert_eq!(group_digits(1_234_567), "1,234,567");
}

#[test]
fn nouns_are_pluralized() {
    let shown = ["object", "copy", "body", "key", "entry"].map(|noun| pluralize(2, noun));
    assert_eq!(shown, ["2 objects", "2 copies", "2 bodies", "2 keys", "2 entries"]);
    assert_eq!(pluralize(1, "key"), "1 key");
    assert_eq!(pluralize(1_000, "body part"), "1,000 body parts");
}

#[test]
fn objects_have_their_type_first() {
    let object = serde_json::json!({"bytes": 3, "key": "a"});
    assert_eq!(typed("object", &object).unwrap(), r#"{"type":"object","bytes":3,"key":"a"}"#);
    assert!(typed("list", &[1, 2]).is_err(), "only objects have a type");
}
