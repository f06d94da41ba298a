//! What restores request from the library, according to its log: due times and amounts.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use fulgurite_archive::{RestoreRequest, Retrieval, StorageClass};
use fulgurite_glass_core::control::log::{Entry, LogReader, Logged};
use fulgurite_glass_core::control::{Action, Event, Output, RequestId};
use fulgurite_units::{ByteCount, Duration, PlatterId};

use crate::harness::{Client, config, key, noise};

/// A twentieth of real mechanical time: a platter is fetched in seconds.
const SLOW: f64 = 0.05;

async fn open(dir: &Path, time_scale: f64) -> Client {
    let mut config = config(&dir.join("data"));
    config.glass.library.time_scale = time_scale;
    config.glass.library.log = Some(dir.join("library.log"));
    config.restore_log = Some(dir.join("restore.log"));
    Client::open(config).await
}

fn source(path: &Path) -> BufReader<File> {
    BufReader::new(File::open(path).unwrap())
}

/// Returns the log so far; nothing until its first line is complete.
fn entries(dir: &Path) -> Vec<Entry> {
    let file = File::open(dir.join("library.log")).unwrap();
    let Ok(mut log) = LogReader::new(BufReader::new(file)) else { return Vec::new() };
    std::iter::from_fn(|| log.next_entry().unwrap()).collect()
}

/// Returns the read in a log entry, with its platter and the time it may take.
fn read_of(entry: &Entry) -> Option<(RequestId, PlatterId, Duration)> {
    match entry.record {
        Logged::Event(Event::Read { request, platter, deadline, .. }) => {
            Some((request, platter, deadline.since(entry.at)))
        }
        Logged::Event(_) | Logged::Output(_) => None,
    }
}

fn finished(entry: &Entry) -> Option<RequestId> {
    match entry.record {
        Logged::Output(Output::Finished { request, .. }) => Some(request),
        Logged::Event(_) | Logged::Output(_) => None,
    }
}

async fn ask(client: &Client, name: &str, retrieval: Retrieval) {
    let request = RestoreRequest { days: 1, retrieval };
    client.archive.restore(&client.bucket, &key(name), request).await.unwrap();
}

async fn platter(client: &Client, name: &str) -> PlatterId {
    client.archive.locate(&client.bucket, &key(name)).await.unwrap()[0].platter.unwrap()
}

#[tokio::test]
async fn restore_is_requested_at_once_with_its_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let client = open(dir.path(), 0.0).await;
    let retrievals = [Retrieval::Bulk, Retrieval::Standard, Retrieval::Expedited];
    let mut files = Vec::new();
    for (number, retrieval) in (0..).zip(retrievals) {
        // Less than a track, and so a single shard.
        let (name, body) = (format!("file {number}"), noise(number, 30_000));
        client.put(&name, StorageClass::Glacier, &body).await.unwrap();
        files.push((name, body, retrieval));
    }
    client.archive.seal().await.unwrap();
    client.archive.stop().await.unwrap();
    drop(client);

    let client = open(dir.path(), SLOW).await;
    let mut platters = Vec::new();
    for (name, _, retrieval) in &files {
        platters.push(platter(&client, name).await);
        ask(&client, name, *retrieval).await;
        // The next one is requested after the library has received this one.
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while entries(dir.path()).iter().filter_map(read_of).count() < platters.len() {
            assert!(std::time::Instant::now() < limit, "the library gets no request");
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
    for (name, body, _) in &files {
        client.restored(name).await.unwrap();
        assert!(client.get(name, None).await.unwrap() == *body, "{name} differs");
    }
    client.archive.stop().await.unwrap();
    let log = entries(dir.path());
    let reads: Vec<_> = log.iter().filter_map(read_of).collect();
    assert_eq!(reads.iter().map(|read| read.1).collect::<Vec<_>>(), platters);
    for ((_, _, left), hours) in reads.iter().zip([12.0, 5.0, 1.0 / 12.0]) {
        let since = hours * 3600.0 - left.as_secs_f64();
        assert!((0.0..60.0).contains(&since), "{left} for {hours} h");
    }
    let first_end = log.iter().position(|entry| finished(entry).is_some()).unwrap();
    let last_read = log.iter().rposition(|entry| read_of(entry).is_some()).unwrap();
    assert!(last_read < first_end, "no restore waits for an earlier one");
}

#[tokio::test]
async fn degraded_read_requests_all_set_platters_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let client = open(dir.path(), 0.0).await;
    let mut files = Vec::new();
    for number in 0..2 {
        let (name, body) = (format!("file {number}"), noise(number, 30_000));
        client.put(&name, StorageClass::DeepArchive, &body).await.unwrap();
        files.push((name, body));
    }
    client.archive.seal().await.unwrap();
    client.archive.stop().await.unwrap();
    let lost = platter(&client, "file 0").await;
    drop(client);
    std::fs::write(dir.path().join(format!("data/platters/{lost}.glass")), "broken").unwrap();

    let client = open(dir.path(), SLOW).await;
    client.restore("file 0").await.unwrap();
    client.restored("file 0").await.unwrap();
    assert!(client.get("file 0", None).await.unwrap() == files[0].1);
    client.archive.stop().await.unwrap();
    let (mut under_way, mut most, mut requested) = (BTreeSet::new(), 0, BTreeSet::new());
    for entry in entries(dir.path()) {
        if let Some((request, platter, left)) = read_of(&entry) {
            under_way.insert(request);
            requested.insert(platter);
            assert!(
                left < Duration::from_secs(5 * 3600),
                "reads have the deadline of their restore: {left}"
            );
        }
        if let Some(request) = finished(&entry) {
            under_way.remove(&request);
        }
        most = most.max(under_way.len());
    }
    // A short set, of 1 + 3: the platter itself, then the other three together.
    assert_eq!((requested.len(), most), (4, 3));
}

#[tokio::test]
async fn shards_of_a_body_are_requested_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(&dir.path().join("data"));
    // Platters of 16 tracks, and shards of two.
    config.glass.geometry.groups = 8;
    config.glass.shard_size = ByteCount::new(80 << 10);
    config.glass.library.log = Some(dir.path().join("library.log"));
    let client = Client::open(config.clone()).await;
    let body = noise(1, 400_000);
    client.put("wide", StorageClass::DeepArchive, &body).await.unwrap();
    client.archive.seal().await.unwrap();
    client.archive.stop().await.unwrap();
    drop(client);

    config.glass.library.time_scale = SLOW;
    let client = Client::open(config).await;
    client.restore("wide").await.unwrap();
    client.restored("wide").await.unwrap();
    assert!(client.get("wide", None).await.unwrap() == body);
    client.archive.stop().await.unwrap();
    let log = entries(dir.path());
    let first_end = log.iter().position(|entry| finished(entry).is_some()).unwrap();
    let requested: BTreeSet<_> =
        log[..first_end].iter().filter_map(read_of).map(|read| read.1).collect();
    assert_eq!(requested.len(), 4, "one drive for each shard");
}

#[tokio::test]
async fn urgent_restore_is_fetched_next_and_the_log_replays() {
    let dir = tempfile::tempdir().unwrap();
    let client = open(dir.path(), 0.0).await;
    let (count, mut platters) = (60, Vec::new());
    let name = |number: u64| format!("file {number}");
    for number in 0..count {
        let body = noise(number, 100_000);
        client.put(&name(number), StorageClass::Glacier, &body).await.unwrap();
    }
    client.archive.seal().await.unwrap();
    for number in 0..count {
        platters.push(platter(&client, &name(number)).await);
    }
    client.archive.stop().await.unwrap();
    drop(client);
    // One is lost, and is reconstructed from the others of its set.
    let lost = platters[3];
    std::fs::write(dir.path().join(format!("data/platters/{lost}.glass")), "broken").unwrap();

    // A hundredth of real time: a platter is fetched in half a second.
    let client = open(dir.path(), 0.01).await;
    for number in 1..count {
        ask(&client, &name(number), Retrieval::Bulk).await;
    }
    ask(&client, &name(0), Retrieval::Expedited).await;
    for number in 0..count {
        client.restored(&name(number)).await.unwrap();
    }
    assert!(client.get("file 3", None).await.unwrap() == noise(3, 100_000));
    client.archive.stop().await.unwrap();

    let log = entries(dir.path());
    let is_urgent = |entry: &Entry| {
        read_of(entry).filter(|(.., left)| *left <= Duration::from_secs(300)).map(|read| read.0)
    };
    let (at, urgent) =
        log.iter().enumerate().find_map(|(at, entry)| Some((at, is_urgent(entry)?))).unwrap();
    let end = log.iter().position(|entry| finished(entry) == Some(urgent)).unwrap();
    let mounts = |entries: &[Entry]| {
        let is_mount = |entry: &&Entry| {
            matches!(&entry.record, Logged::Output(Output::Do(command))
                if matches!(command.action, Action::Mount { .. }))
        };
        entries.iter().filter(is_mount).count()
    };
    let (before, between, after) = (mounts(&log[..at]), mounts(&log[at..end]), mounts(&log[end..]));
    // What four drives and four shuttles have in progress, twice.
    assert!(between <= 16, "{before} reads before, {between} between, {after} after");
    assert!(after > 16, "{after} reads after it: most restores were still waiting");

    let library =
        fulgurite_glass_core::control::log::replay(source(&dir.path().join("library.log")))
            .unwrap();
    assert_eq!(library.divergence, None);
    let restores = fulgurite_restore::log::replay(source(&dir.path().join("restore.log"))).unwrap();
    assert_eq!(restores.divergence, None);
    assert_eq!(restores.end, Some(fulgurite_restore::log::End::Stopped));
    assert!(restores.events > 3 * count && restores.commands >= 2 * count, "{restores:?}");
}
