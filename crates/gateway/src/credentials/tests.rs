//! Keys are validated, and nothing prints the secret.

use super::Credentials;

#[test]
fn debug_output_hides_the_secret() {
    let credentials = Credentials::new("EXAMPLE", "do-not-print-me").unwrap();
    assert!(!format!("{credentials:?}").contains("do-not-print-me"));
}

#[test]
fn invalid_keys_are_rejected() {
    for (access, secret) in
        [("ab", "longenough"), ("a/b", "longenough"), ("abc", "short"), ("abc", "with a space")]
    {
        assert!(Credentials::new(access, secret).is_err(), "{access} {secret}");
    }
}

#[test]
fn secret_requires_the_exact_access_key() {
    let ours = Credentials::new("EXAMPLE", "secret-one").unwrap();
    assert!(ours.secret_of("EXAMPLE").is_some());
    assert!(ours.secret_of("EXAMPLF").is_none());
    assert!(ours.secret_of("EXAMPL").is_none());
}
