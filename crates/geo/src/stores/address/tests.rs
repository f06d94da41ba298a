//! Valid and invalid addresses. Errors name the place and a remedy, and show nothing that may be a
//! secret.

use std::fmt::Write as _;

use expect_test::expect;

use super::*;

#[test]
fn addresses_round_trip() {
    for text in [
        "dir:///a/b%20c",
        "mem://name",
        "s3://bucket",
        "s3://bucket/a/prefix?endpoint=http://127.0.0.1:9000&region=eu-west-1",
        "gs://bucket/prefix",
        "az://container?account=name&account_key_env=A_KEY",
        "postgres://some%40one@host:5433/db?sslmode=disable&table=public.rows",
        "etcd://one:2379,two/prefix?tls=off",
        "etcd://[::1]:2379",
        "node://10.0.0.7:7443/oslo.records?ca=/etc/ca.pem&cert=/etc/own.pem&key=/etc/own.key",
    ] {
        let address: Address = text.parse().unwrap();
        assert_eq!(address.to_string().parse(), Ok(address.clone()));
        // Brackets are percent-encoded.
        assert_eq!(address.to_string().replace("%5B::1%5D", "[::1]"), text);
        assert_eq!(format!("{address:?}"), format!("Address({address})"));
    }
    let address: Address = "postgres://me@host/db?table=rows".parse().unwrap();
    assert_eq!(
        (address.user.as_deref(), &*address.host, &*address.path),
        (Some("me"), "host", "db")
    );
    assert_eq!(address.option("table"), Some("rows"));
}

/// Returns the errors for invalid addresses, and checks that they show no secret.
fn error_report(texts: &[&str]) -> String {
    let mut report = String::new();
    for text in texts {
        let error = text.parse::<Address>().unwrap_err();
        assert!(!error.to_string().contains("SECRET"), "{error}");
        let AddressError { place, problem, remedy } = error;
        writeln!(report, "{:.40}", text.replace("SECRET", "...")).unwrap();
        // As much of the error as fits on a line.
        writeln!(report, "    {place}: {problem:.60}\n    {remedy:.80}").unwrap();
    }
    report
}

#[test]
fn invalid_addresses_are_rejected_with_a_remedy() {
    let long = format!("s3://bucket/{}", ["a"; 200].join("/"));
    let wrong = [
        "",
        "bucket/prefix",
        "ftp://host/SECRET",
        "dir://relative/path",
        "dir:///",
        "mem://",
        "mem://name/path",
        "s3://",
        "s3://buck et",
        "s3://bucket/a//b",
        "s3://bucket/a b",
        "postgres://host",
        "postgres://host/a/b",
        &long,
    ];
    expect![[r#"

            the beginning: it has no scheme
            begin with one of dir:// mem:// s3:// gs:// az:// postgres:// etcd:// node://
        bucket/prefix
            the beginning: it has no scheme
            begin with one of dir:// mem:// s3:// gs:// az:// postgres:// etcd:// node://
        ftp://host/...
            the beginning: its scheme is unknown
            begin with one of dir:// mem:// s3:// gs:// az:// postgres:// etcd:// node://
        dir://relative/path
            the host: expected nothing
            use an absolute path: dir:///path
        dir:///
            the path: it is not an absolute path
            use an absolute path: dir:///path
        mem://
            the host: expected a name
            write mem:// and a name
        mem://name/path
            the path: a table in memory has no path
            write mem://name
        s3://
            the host: expected a bucket
            write s3:// and a bucket
        s3://buck et
            the host: it has invalid characters
            use letters, digits, - . and _
        s3://bucket/a//b
            the path: invalid key "a//b": a segment is empty
            choose another prefix
        s3://bucket/a b
            the path: invalid key "a b": only A-Z a-z 0-9 - . _ = and / are allowe
            choose another prefix
        postgres://host
            the path: it is not the name of a database
            write postgres://user@host/database
        postgres://host/a/b
            the path: it is not the name of a database
            write postgres://user@host/database
        s3://bucket/a/a/a/a/a/a/a/a/a/a/a/a/a/a/
            the path: it has more than 256 bytes
            choose a shorter prefix
    "#]]
    .assert_eq(&error_report(&wrong));
}

#[test]
fn invalid_options_and_users_are_rejected() {
    let wrong = [
        "dir:///a?create=yes",
        "s3://bucket?SECRET=x",
        "s3://bucket?region=",
        "s3://bucket?region=a&region=b",
        "s3://bucket?endpoint=http://me:SECRET@host",
        "s3://bucket?endpoint=host",
        "s3://SECRET@bucket",
        "s3://bucket?secret_access_key_env=SECRET/SECRET",
        "postgres://me:SECRET@host/db",
        "postgres://host/db?table=%ff",
        "postgres://host/db?table=a%00b",
        "etcd://user:SECRET@host",
    ];
    expect![[r#"
        dir:///a?create=yes
            the options: an option that this kind of store does not have
            dir:// takes none
        s3://bucket?...=x
            the options: an option that this kind of store does not have
            s3:// takes endpoint, region, ca, access_key_id_env, secret_access_key_env, sess
        s3://bucket?region=
            the option region: it is empty
            give it a value or leave it out
        s3://bucket?region=a&region=b
            the option region: it is set twice
            set it once
        s3://bucket?endpoint=http://me:...@host
            the option endpoint: it is not the URL of a server
            write http://host:port or https://host, without a user
        s3://bucket?endpoint=host
            the option endpoint: it is not the URL of a server
            write http://host:port or https://host, without a user
        s3://...@bucket
            the user: this kind of store has no user
            only postgres:// has a user; name secrets by options, as in password_env=NAME
        s3://bucket?secret_access_key_env=.../..
            the option secret_access_key_env: it is not the name of an environment variable
            name the variable that has the secret, not the secret
        postgres://me:...@host/db
            the user: it contains a password
            remove it, set it in an environment variable, and name that with password_env=NA
        postgres://host/db?table=%ff
            the option table: it is not UTF-8
            write it as percent-encoded UTF-8
        postgres://host/db?table=a%00b
            the option table: it has control characters
            remove them
        etcd://user:...@host
            the user: it contains a password
            remove it, set it in an environment variable, and name that with password_env=NA
    "#]]
    .assert_eq(&error_report(&wrong));
}
