//! Valid and invalid addresses. Errors name the place and a remedy, and show nothing that may be a
//! secret.

use std::fmt::Write as _;

use expect_test::expect;

use super::*;

#[test]
fn addresses_are_read_and_shown_as_they_are() {
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
fn said(texts: &[&str]) -> String {
    let mut said = String::new();
    for text in texts {
        let error = text.parse::<Address>().unwrap_err();
        assert!(!error.to_string().contains("SECRET"), "{error}");
        let AddressError { place, problem, remedy } = error;
        writeln!(said, "{:.40}", text.replace("SECRET", "...")).unwrap();
        // As much of the error as fits on a line.
        writeln!(said, "    {place}: {problem:.60}\n    {remedy:.80}").unwrap();
    }
    said
}

#[test]
fn wrong_places_are_refused_with_a_remedy() {
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
            the beginning: its scheme is none of those that there are
            begin with one of dir:// mem:// s3:// gs:// az:// postgres:// etcd:// node://
        dir://relative/path
            the host: there should be nothing
            name a directory from the root: dir:///path
        dir:///
            the path: it is no directory from the root
            name a directory from the root: dir:///path
        mem://
            the host: there should be a name
            write mem:// and a name
        mem://name/path
            the path: a table in memory has none
            write mem://name
        s3://
            the host: there should be a bucket
            write s3:// and a bucket
        s3://buck et
            the host: it has letters that none has
            write letters, digits, - . and _
        s3://bucket/a//b
            the path: "a//b" is no key: a segment is empty
            choose another prefix
        s3://bucket/a b
            the path: "a b" is no key: only A-Z a-z 0-9 - . _ = and / are allowed
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
    .assert_eq(&said(&wrong));
}

#[test]
fn wrong_options_and_users_are_refused_with_a_remedy() {
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
            the option region: it is there twice
            write it once
        s3://bucket?endpoint=http://me:...@host
            the option endpoint: it is no URL of a server
            write http://host:port or https://host, without a user
        s3://bucket?endpoint=host
            the option endpoint: it is no URL of a server
            write http://host:port or https://host, without a user
        s3://...@bucket
            the user: this kind of store has none there
            only postgres:// has one; name secrets by options, as in password_env=NAME
        s3://bucket?secret_access_key_env=.../..
            the option secret_access_key_env: it is not the name of an environment variable
            name the variable that has the secret, not the secret
        postgres://me:...@host/db
            the user: a password stands in it
            take it out, put it into an environment variable, and name that with password_en
        postgres://host/db?table=%ff
            the option table: it is not UTF-8
            write it as UTF-8, percent-encoded where need be
        postgres://host/db?table=a%00b
            the option table: it has control characters
            take them out
        etcd://user:...@host
            the user: a password stands in it
            take it out, put it into an environment variable, and name that with password_en
    "#]]
    .assert_eq(&said(&wrong));
}
