//! Things are counted as people count them.

use super::counted;

#[test]
fn nouns_have_their_plurals() {
    let shown = ["object", "copy", "body", "key", "entry"].map(|noun| counted(2, noun));
    assert_eq!(shown, ["2 objects", "2 copies", "2 bodies", "2 keys", "2 entries"]);
    assert_eq!(counted(1, "key"), "1 key");
    assert_eq!(counted(1_000, "body part"), "1,000 body parts");
}
