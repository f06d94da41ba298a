//! Names, user metadata and ETags of deleted objects are purged from every file of the data
//! directory.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fulgurite_archive::{BodyClaim, ObjectMeta, StorageClass, UploadOptions};

use crate::harness::{Client, config, key, noise, options};

/// A text that no file contains by chance.
const NAME: &str = "tasniem-4711";
const VALUE: &str = "quodlibet-0815";

/// Returns the files below `path` that contain one of `traces`, with the trace.
fn finds(path: &Path, traces: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(finds(&path, traces));
            continue;
        }
        // A file may be removed during the search.
        let Ok(content) = std::fs::read(&path) else { continue };
        for trace in traces {
            if content.windows(trace.len()).any(|window| window == trace.as_bytes()) {
                found.push(format!("{trace} in {}", path.display()));
            }
        }
    }
    found
}

fn meta() -> ObjectMeta {
    let mut meta = ObjectMeta::default();
    meta.user.insert("note".to_owned(), VALUE.to_owned());
    meta
}

/// Puts an object under the name with the metadata; returns its ETag.
async fn put_named(client: &Client, name: &str, class: StorageClass, seed: u64) -> String {
    let body = noise(seed, 3000);
    let options = fulgurite_archive::PutOptions { meta: meta(), ..options(class, body.len()) };
    let mut writer = client.archive.put(&client.bucket, &key(name), options).await.unwrap();
    writer.write(Bytes::from(body)).await.unwrap();
    writer.finish(None).await.unwrap().etag
}

/// Starts an upload under the name, with or without a part, and aborts it.
async fn abort_named(client: &Client, name: &str, has_part: bool) {
    let (archive, bucket, name) = (&client.archive, &client.bucket, key(name));
    let options = UploadOptions {
        class: StorageClass::Standard,
        meta: meta(),
        algorithm: None,
        full_object: false,
    };
    let upload = archive.create_upload(bucket, &name, options).await.unwrap().upload_id;
    if has_part {
        let claim = BodyClaim { bytes: Some(5), ..BodyClaim::default() };
        let mut part = archive.put_part(bucket, &name, upload, 1, claim).await.unwrap();
        part.write(Bytes::from_static(b"bytes")).await.unwrap();
        part.finish(None).await.unwrap();
    }
    archive.abort_upload(bucket, &name, upload).await.unwrap();
}

/// Waits until the archive reports that nothing is left to purge.
async fn forgotten(client: &Client) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while client.archive.status().await.unwrap().has_names_to_forget {
        assert!(Instant::now() < deadline, "names are not purged");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_names_are_purged_from_all_files_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.space.forget_within = fulgurite_units::Duration::from_secs(3600);
    let client = Client::open(config.clone()).await;
    client.put("stays", StorageClass::Standard, &noise(1, 5000)).await.unwrap();
    let mut traces = vec![NAME.to_owned(), VALUE.to_owned()];
    let classes = [StorageClass::Standard, StorageClass::Glacier, StorageClass::DeepArchive];
    for (number, class) in (2..).zip(classes) {
        traces.push(put_named(&client, &format!("{NAME}/{number}"), class, number).await);
    }
    // One goes to glass, where its name is sealed under its own key, and is restored as a copy.
    client.archive.seal().await.unwrap();
    client.restore(&format!("{NAME}/4")).await.unwrap();
    client.restored(&format!("{NAME}/4")).await.unwrap();
    // One is overwritten: its metadata and ETag go at once, and its name with the next object.
    put_named(&client, &format!("{NAME}/2"), StorageClass::Standard, 9).await;
    for number in 2..5 {
        let name = key(&format!("{NAME}/{number}"));
        assert!(client.archive.delete(&client.bucket, &name).await.unwrap());
    }
    abort_named(&client, &format!("{NAME}/upload"), true).await;
    abort_named(&client, &format!("{NAME}/empty"), false).await;
    assert!(client.archive.status().await.unwrap().has_names_to_forget);
    assert!(!finds(dir.path(), &traces).is_empty(), "the search finds the names before the purge");
    client.archive.stop().await.unwrap();
    drop(client);

    // A start purges what the previous run left at once; later deletions wait for their time.
    config.space.forget_within = fulgurite_units::Duration::from_millis(200);
    let client = Client::open(config.clone()).await;
    forgotten(&client).await;
    assert_eq!(finds(dir.path(), &traces), Vec::<String>::new());
    put_named(&client, NAME, StorageClass::Standard, 20).await;
    assert!(!finds(dir.path(), &traces[..2]).is_empty());
    assert!(client.archive.delete(&client.bucket, &key(NAME)).await.unwrap());
    forgotten(&client).await;
    assert_eq!(finds(dir.path(), &traces), Vec::<String>::new());
    assert_eq!(client.get("stays", None).await.unwrap(), noise(1, 5000));
    client.archive.stop().await.unwrap();
    drop(client);
    let client = Client::open(config).await;
    assert_eq!(
        finds(dir.path(), &traces),
        Vec::<String>::new(),
        "a restart does not bring a name back"
    );
    assert_eq!(client.get("stays", None).await.unwrap(), noise(1, 5000));
}
