//! Addresses, right and wrong. What is wrong is said with its place and a remedy, and without what
//! may be a secret.

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
    ] {
        let address: Address = text.parse().unwrap();
        assert_eq!(address.to_string().parse(), Ok(address.clone()));
        // Brackets are written in another way.
        assert_eq!(address.to_string().replace("%5B::1%5D", "[::1]"), text);
        assert_eq!(format!("{address:?}"), format!("Address({address})"));
    }
    let address: Address = "postgres://me@host/db?table=rows".parse().unwrap();
    assert_eq!((address.user.as_deref(), &*address.host, &*address.path), (Some("me"), "host", "db"));
    assert_eq!(address.option("table"), Some("rows"));
}

#[test]
fn wrong_addresses_are_refused_with_a_place_and_a_remedy() {
    let mut said = String::new();
    let long = format!("s3://bucket/{}", ["a"; 200].join("/"));
    for text in [
        "",
        "bucket/prefix",
        "ftp://host/SECRET",
        "dir://relative/path",
        "dir:///",
        "dir:///a?create=yes",
        "mem://",
        "mem://name/path",
        "s3://",
        "s3://buck et",
        "s3://bucket/a//b",
        "s3://bucket/a b",
        &long,
        "s3://bucket?SECRET=x",
        "s3://bucket?region=",
        "s3://bucket?region=a&region=b",
        "s3://SECRET@bucket",
        "s3://bucket?secret_access_key_env=SECRET/SECRET",
        "postgres://me:SECRET@host/db",
        "postgres://host",
        "postgres://host/a/b",
        "postgres://host/db?table=%ff",
        "postgres://host/db?table=a%00b",
        "etcd://user:SECRET@host",
    ] {
        let error = text.parse::<Address>().unwrap_err().to_string();
        assert!(!error.contains("SECRET"), "{error}");
        writeln!(said, "{:.40}\n    {error}", text.replace("SECRET", "...")).unwrap();
    }
    expect![[r#""#]].assert_eq(&said);
}
