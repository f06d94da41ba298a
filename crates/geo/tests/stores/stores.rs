//! Runs each backend through the same tests: the conformance suite, transactions over bad
//! connections, and the doctor, over two connections.

use bytes::Bytes;
use std::sync::Arc;

use fulgurite_geo::stores::doctor::{
    CheckName, DoctorError, Outcome, Report, examine, examine_blobs,
};
use fulgurite_geo::stores::{
    Address, Blob, BucketTable, Expect, Key, OpenError, Opener, Table, TableError,
};
use fulgurite_units::ErrorKind;

use crate::chance::entropy;
use crate::servers::{self, ACCESS_KEY, POSTGRES_PASSWORD, Place, SECRET_KEY};
use crate::{conformance, unconditional_s3};

/// Two openers, as of two processes.
struct Site {
    address: Address,
    openers: [Opener; 2],
}

impl Site {
    fn new(address: &str) -> Self {
        // HTTP clients need a TLS provider to be set, whether they use TLS or not.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let environment = [
            ("AN_ID", ACCESS_KEY),
            ("A_SECRET", SECRET_KEY),
            ("PGPASSWORD", POSTGRES_PASSWORD),
            ("A_PASSWORD", POSTGRES_PASSWORD),
            ("A_WRONG_PASSWORD", "another"),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let opener = |seed| Opener::new(entropy(seed), environment.clone());
        Self { address: address.parse().unwrap(), openers: [opener(1), opener(2)] }
    }

    async fn tables(&self) -> [Arc<dyn Table>; 2] {
        let mut tables = Vec::new();
        for opener in &self.openers {
            tables.push(opener.table(&self.address, true).await.unwrap());
        }
        tables.try_into().unwrap_or_else(|_| panic!("two openers"))
    }

    async fn blobs(&self) -> [Arc<dyn Blob>; 2] {
        let mut blobs = Vec::new();
        for opener in &self.openers {
            blobs.push(opener.blobs(&self.address, true).await.unwrap());
        }
        blobs.try_into().unwrap_or_else(|_| panic!("two openers"))
    }
}

fn new_key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// Runs all checks of a table.
async fn check_table(name: &str, [table, second]: [Arc<dyn Table>; 2]) -> Report {
    conformance::suite(&table, &second).await;
    let report = examine(name, &*table, &*second, &new_key("doctor"), &entropy(3)).await.unwrap();
    report.accept().unwrap();
    // It leaves nothing behind, so it can run again.
    let again = examine(name, &*table, &*second, &new_key("doctor"), &entropy(4)).await.unwrap();
    assert_eq!(outcomes(&again), outcomes(&report), "{again:#?}");
    // And it does not touch existing rows.
    let image = Bytes::from_static(b"not the doctor's");
    let key = new_key("doctor/some/row");
    table.cas(&key, Expect::Absent, image.clone()).await.unwrap();
    let refused =
        examine(name, &*table, &*second, &new_key("doctor"), &entropy(5)).await.unwrap_err();
    assert!(matches!(&refused, DoctorError::Occupied { key: found } if *found == key), "{refused}");
    assert_eq!(table.read(&key).await.unwrap().unwrap().bytes, image);
    table.erase(&key).await.unwrap();
    report
}

async fn check_blobs(name: &str, [blobs, second]: [Arc<dyn Blob>; 2]) {
    let report =
        examine_blobs(name, &*blobs, &*second, &new_key("doctor"), &entropy(6)).await.unwrap();
    report.accept().unwrap();
    assert_eq!(report.checks.len(), 6);
    conformance::blobs(&*blobs, &*second).await;
}

fn outcomes(report: &Report) -> Vec<(CheckName, Outcome)> {
    report.checks.iter().map(|check| (check.name, check.outcome)).collect()
}

/// Returns the capabilities that a table does not claim.
fn unsupported(report: &Report) -> Vec<String> {
    let unsupported = report.checks.iter().filter(|check| check.outcome == Outcome::Unsupported);
    unsupported.map(|check| check.name.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_passes_table_and_blob_checks() {
    let site = Site::new("mem://here");
    let opener = &site.openers[0];
    let table = opener.table(&site.address, true).await.unwrap();
    let second = opener.table(&site.address, true).await.unwrap();
    let report = check_table("memory", [table, second]).await;
    assert_eq!(unsupported(&report), Vec::<String>::new());
    let blobs = opener.blobs(&site.address, true).await.unwrap();
    check_blobs("memory", [blobs, opener.blobs(&site.address, true).await.unwrap()]).await;
    // Another name is another site.
    let other = opener.table(&"mem://there".parse().unwrap(), true).await.unwrap();
    other.cas(&new_key("a"), Expect::Absent, Bytes::new()).await.unwrap();
    assert_eq!(
        opener.table(&site.address, true).await.unwrap().read(&new_key("a")).await,
        Ok(None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_bucket_passes_table_checks() {
    let store = Arc::new(object_store::memory::InMemory::new());
    let table = || -> Arc<dyn Table> {
        let store = Arc::<object_store::memory::InMemory>::clone(&store);
        Arc::new(BucketTable::new(store, object_store::path::Path::from("some/prefix")))
    };
    let report = check_table("bucket in memory", [table(), table()]).await;
    assert_eq!(unsupported(&report), ["conditional-delete"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn directory_passes_table_and_blob_checks() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(&format!("dir://{}/a%20site", folder.path().display()));
    let missing = site.openers[0].table(&site.address, false).await.err().unwrap();
    assert!(matches!(missing, OpenError::Missing { what: "table", .. }), "{missing}");
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(site.openers[0].blobs(&site.address, false).await.is_err());
    let report = check_table("directory", site.tables().await).await;
    assert_eq!(unsupported(&report), Vec::<String>::new());
    check_blobs("directory", site.blobs().await).await;
    // An existing table is opened without permission to create it.
    site.openers[0].table(&site.address, false).await.unwrap();
    let blobs = site.openers[0].blobs(&site.address, false).await.unwrap();
    // A directory that is not mounted says nothing about blobs.
    let (here, away) = (folder.path().join("a site/blobs"), folder.path().join("a site/elsewhere"));
    std::fs::rename(&here, away).unwrap();
    std::fs::create_dir(&here).unwrap();
    let error = blobs.get(&new_key("a"), None).await.unwrap_err();
    assert!(matches!(error, fulgurite_geo::stores::BlobError::Unavailable(_)), "{error}");
    let error = blobs.head(&new_key("a")).await.unwrap_err();
    assert!(matches!(error, fulgurite_geo::stores::BlobError::Unavailable(_)), "{error}");
    assert!(blobs.delete(&new_key("a")).await.is_err());
    // It accepts no blobs either, and a missing folder is not created.
    let error = blobs.create(&new_key("a"), Bytes::from_static(b"lost")).await.unwrap_err();
    assert!(matches!(error, fulgurite_geo::stores::BlobError::Unavailable(_)), "{error}");
    std::fs::remove_dir(&here).unwrap();
    assert!(blobs.create(&new_key("a"), Bytes::from_static(b"lost")).await.is_err());
    assert!(!here.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn versitygw_passes_table_and_blob_checks() {
    let Some(mut server) = servers::versitygw(&Place::here()) else { return };
    let address = |bucket: &str, secret: &str| {
        format!(
            "s3://{bucket}/a/prefix?endpoint=http://127.0.0.1:{}&region=us-east-1\
             &access_key_id_env=AN_ID&secret_access_key_env={secret}",
            server.port
        )
    };
    let site = Site::new(&address("bucket", "A_SECRET"));
    let report = check_table("versitygw", site.tables().await).await;
    assert!(unsupported(&report).contains(&"conditional-delete".to_owned()));
    check_blobs("versitygw", site.blobs().await).await;

    // A missing bucket says nothing about its contents.
    let gone = Site::new(&address("another", "A_SECRET"));
    let table = &gone.tables().await[0];
    let error = table.read(&new_key("a")).await.unwrap_err();
    assert!(matches!(error, TableError::Unavailable(_)), "{error:?}");
    let blobs = &gone.blobs().await[0];
    for error in [blobs.get(&new_key("a"), None).await.err(), blobs.head(&new_key("a")).await.err()]
    {
        let is_away = matches!(error, Some(fulgurite_geo::stores::BlobError::Unavailable(_)));
        assert!(is_away, "{error:?}");
    }
    // Nor does one that rejects our credentials.
    let unauthorized = Site::new(&address("bucket", "A_WRONG_PASSWORD"));
    let error = unauthorized.tables().await[0].read(&new_key("a")).await.unwrap_err();
    assert!(matches!(error, TableError::Denied(_)), "{error:?}");
    assert!(!format!("{error:?}").contains(SECRET_KEY));

    // A server that is not running did not get the request.
    let [table, _] = site.tables().await;
    server.crash();
    let error = table.cas(&new_key("a"), Expect::Absent, Bytes::new()).await.unwrap_err();
    assert!(matches!(error, TableError::Unavailable(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_rejects_s3s_fs() {
    let folder = tempfile::tempdir().unwrap();
    let port = unconditional_s3::s3s_fs(folder.path()).await;
    let site = Site::new(&format!(
        "s3://bucket/rows?endpoint=http://127.0.0.1:{port}&region=us-east-1\
         &access_key_id_env=AN_ID&secret_access_key_env=A_SECRET"
    ));
    let [table, second] = site.tables().await;
    let report =
        examine("s3s-fs", &*table, &*second, &new_key("doctor"), &entropy(7)).await.unwrap();
    let refused = report.accept().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let failed: Vec<CheckName> = report.failed().map(|check| check.name).collect();
    // It accepts both conditions, but checks them before it writes, not atomically.
    assert!(failed.contains(&CheckName::UpdateRace), "{report:#?}");
    assert!(failed.contains(&CheckName::Counter), "{report:#?}");
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    assert!(text.contains(r#""name":"update-race","outcome":"failed""#), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_passes_table_checks() {
    let Some(mut server) = servers::postgres(&Place::here()) else { return };
    let ca = server.folder.path().join("ca.pem");
    let address = |host: &str, options: &str| {
        format!("postgres://postgres@{host}:{}/postgres?{options}", server.port)
    };
    let site = Site::new(&address("127.0.0.1", "table=rows&connections=6"));
    // It listens before it answers.
    let mut opened = site.openers[0].table(&site.address, false).await;
    for _ in 0..200 {
        match &opened {
            Err(OpenError::Table { source: TableError::Unavailable(cause), .. })
                if cause.to_string().contains("starting up") =>
            {
                tokio::time::sleep(std::time::Duration::from_millis(25)).await;
                opened = site.openers[0].table(&site.address, false).await;
            }
            _ => break,
        }
    }
    let missing = opened.err().unwrap();
    assert!(fulgurite_units::error_chain(&missing).contains("rows"), "{missing:?}");
    let report = check_table("postgres", site.tables().await).await;
    assert_eq!(unsupported(&report), Vec::<String>::new());

    // With TLS and a named CA; no other certificate is trusted.
    let options = format!("table=public.rows&password_env=A_PASSWORD&ca={}", ca.display());
    let secured = Site::new(&address("localhost", &options));
    conformance::suite(&secured.tables().await[0], &site.tables().await[1]).await;
    let misnamed = Site::new(&address("127.0.0.1", &options));
    assert!(misnamed.openers[0].table(&misnamed.address, false).await.is_err());
    let unauthorized = Site::new(&address("127.0.0.1", "table=rows&password_env=A_WRONG_PASSWORD"));
    let error = unauthorized.openers[0].table(&unauthorized.address, false).await.err().unwrap();
    assert!(matches!(&error, OpenError::Table { source: TableError::Denied(_), .. }), "{error:?}");

    let [table, _] = site.tables().await;
    let tag = table.cas(&new_key("kept"), Expect::Absent, "before".into()).await.unwrap();
    server.quit();
    check_recovery(&*table, tag, || server.restart()).await;
}

/// Checks a table whose server has ended: a call over an old connection fails as unknown or not
/// done. Once the server is back, so is the row, and the table goes on.
async fn check_recovery(
    table: &dyn Table,
    tag: fulgurite_geo::stores::Tag,
    restart: impl FnOnce(),
) {
    let key = new_key("kept");
    let error = table.cas(&key, Expect::Is(tag.clone()), "after".into()).await.unwrap_err();
    let is_honest = matches!(error, TableError::Unknown(_) | TableError::Unavailable(_));
    assert!(is_honest, "{error:?}");
    let error = table.read(&key).await.unwrap_err();
    assert!(matches!(error, TableError::Unavailable(_)), "{error:?}");
    restart();
    let mut row = table.read(&key).await;
    for _ in 0..400 {
        if row.is_ok() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        row = table.read(&key).await;
    }
    assert_eq!(row.unwrap().unwrap().bytes, "before");
    table.cas(&key, Expect::Is(tag), "after".into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_passes_table_checks() {
    let Some(mut server) = servers::etcd(&Place::here()) else { return };
    let port = server.port;
    // The first member does not exist: the second is used.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed_port = listener.local_addr().unwrap().port();
    drop(listener);
    let site = Site::new(&format!("etcd://127.0.0.1:{closed_port},127.0.0.1:{port}/a/prefix"));
    let tables = site.tables().await;
    for table in &tables {
        let error = table.read(&new_key("a")).await.unwrap_err();
        assert!(matches!(error, TableError::Unavailable(_)), "{error:?}");
        assert_eq!(table.read(&new_key("a")).await, Ok(None));
    }
    let report = check_table("etcd", tables).await;
    assert_eq!(unsupported(&report), Vec::<String>::new());

    // With users enabled, a client without a password is refused.
    let table = &site.tables().await[0];
    let _ = table.read(&new_key("a")).await;
    let post = |call: &str, body: &str| {
        let (url, body) = (format!("http://127.0.0.1:{port}/v3/{call}"), body.to_owned());
        async move { reqwest::Client::new().post(url).body(body).send().await.unwrap() }
    };
    let user = format!(r#"{{"name":"root","password":"{POSTGRES_PASSWORD}"}}"#);
    assert!(post("auth/user/add", &user).await.status().is_success());
    assert!(
        post("auth/user/grant", r#"{"user":"root","role":"root"}"#).await.status().is_success()
    );
    assert!(post("auth/enable", "{}").await.status().is_success());
    let error = table.read(&new_key("a")).await.unwrap_err();
    assert!(matches!(error, TableError::Denied(_)), "{error:?}");
    let known =
        Site::new(&format!("etcd://127.0.0.1:{port}/a/prefix?user=root&password_env=A_PASSWORD"));
    let [table, second] = known.tables().await;
    conformance::suite(&table, &second).await;
    let wrong = Site::new(&format!(
        "etcd://127.0.0.1:{port}/a/prefix?user=root&password_env=A_WRONG_PASSWORD"
    ));
    let error = wrong.tables().await[0].read(&new_key("a")).await.unwrap_err();
    assert!(matches!(error, TableError::Denied(_)), "{error:?}");

    let tag = table.cas(&new_key("kept"), Expect::Absent, "before".into()).await.unwrap();
    server.crash();
    check_recovery(&*table, tag, || server.restart()).await;
}
