//! Control characters become references, and nothing else changes.

use super::{escape_controls, push_element};

#[test]
fn control_characters_become_references() {
    for (plain, escaped) in [
        ("a\rb", Some("a&#13;b")),
        ("a\r\nb", Some("a&#13;\nb")),
        ("\u{1}\u{1f}", Some("&#1;&#31;")),
        ("\u{fffe}\u{ffff}", Some("&#65534;&#65535;")),
        ("a\nb\tc", None),
        ("", None),
        ("\u{7f}\u{85}\u{2028}", None),
        ("\u{feff}\u{fb01}", None),
        ("<Key>&amp;</Key>", None),
    ] {
        assert_eq!(escape_controls(plain.as_bytes()).as_deref(), escaped, "{plain:?}");
        let far = format!("{}{plain}", "x".repeat(1000));
        let expected = escaped.map(|escaped| format!("{}{escaped}", "x".repeat(1000)));
        assert_eq!(escape_controls(far.as_bytes()), expected, "{plain:?} behind 1000 bytes");
    }
    assert_eq!(escape_controls(b"\xff\r"), None, "no text is no document");
}

#[test]
fn element_content_is_escaped() {
    let mut text = String::new();
    push_element(&mut text, "Key", "a<b>&\"'");
    assert_eq!(text, "<Key>a&lt;b&gt;&amp;&quot;'</Key>");
}
