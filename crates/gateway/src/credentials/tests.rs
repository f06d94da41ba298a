//! Keys are checked, tokens follow from them, and nothing prints the secret.

use super::Credentials;

#[test]
fn the_secret_is_never_shown() {
    let credentials = Credentials::new("EXAMPLE", "do-not-print-me").unwrap();
    assert!(!format!("{credentials:?}").contains("do-not-print-me"));
}

#[test]
fn bad_keys_are_refused() {
    for (access, secret) in
        [("ab", "longenough"), ("a/b", "longenough"), ("abc", "short"), ("abc", "with a space")]
    {
        assert!(Credentials::new(access, secret).is_err(), "{access} {secret}");
    }
}

#[test]
fn the_admin_token_opens_only_its_own_door() {
    let ours = Credentials::new("EXAMPLE", "secret-one").unwrap();
    let other = Credentials::new("EXAMPLE", "secret-two").unwrap();
    assert!(ours.is_admin_token(&ours.admin_token()));
    assert!(!ours.is_admin_token(&other.admin_token()));
    assert!(!ours.is_admin_token(""));
    assert!(ours.secret_of("EXAMPLE").is_some());
    assert!(ours.secret_of("EXAMPLF").is_none());
    assert!(ours.secret_of("EXAMPL").is_none());
}
