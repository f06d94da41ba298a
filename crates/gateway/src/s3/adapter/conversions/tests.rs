//! Keys that may be created, and keys that may only be read.

use super::{has_path_traversal, new_object_name, object_name};

#[test]
fn keys_with_path_traversal_are_not_created() {
    for key in ["a/../b", "a/./b", "./x", "a/..", "a/b/../../c", "..a", "a..", "...", "a//b", "/"] {
        assert!(!has_path_traversal(key), "{key}");
    }
    for key in ["..", "../bad", "a/../../b", "./..", "/..", "a//../../b", "a/../..", "../a/b"] {
        assert!(has_path_traversal(key), "{key}");
        assert!(object_name("vault", key).is_ok(), "{key} is read and removed");
        let refused = new_object_name("vault", key).unwrap_err();
        assert_eq!(refused.status_code().map(|status| status.as_u16()), Some(400), "{key}");
    }
}
