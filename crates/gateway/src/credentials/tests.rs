//! Keys are validated, and nothing prints the secret.

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
fn only_the_whole_access_key_finds_its_secret() {
    let ours = Credentials::new("EXAMPLE", "secret-one").unwrap();
    assert!(ours.secret_of("EXAMPLE").is_some());
    assert!(ours.secret_of("EXAMPLF").is_none());
    assert!(ours.secret_of("EXAMPL").is_none());
}
