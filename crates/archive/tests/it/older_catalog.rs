//! A catalog older than the archive is refused, so that the existence of acknowledged objects is
//! never silently denied; and the state after a crash is never mistaken for one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fulgurite_archive::{Archive, ArchiveError, RecoverOptions, StorageClass};

use crate::harness::{Client, config, copy, copy_live, files, key, noise};

const STANDARD: StorageClass = StorageClass::Standard;
const SALVAGE: RecoverOptions = RecoverOptions {
    salvage: true,
    earliest: false,
    without_tiers: std::collections::BTreeSet::new(),
};

fn mark(data: &Path) -> PathBuf {
    data.join("catalog.mark")
}

/// The copy `name` of a running archive: what a kill would leave at this moment.
struct CrashImage {
    _dir: tempfile::TempDir,
    data: PathBuf,
}

impl CrashImage {
    /// Makes a consistent copy: a kill takes all files at once.
    fn capture(data: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("data");
        copy_live(data, &to);
        Self { _dir: dir, data: to }
    }

    fn journal(&self) -> PathBuf {
        let is_journal = |file: &PathBuf| file.extension().is_some_and(|name| name == "jnl");
        files(&self.data.join("catalog")).into_iter().rfind(is_journal).unwrap()
    }

    fn segments(&self) -> Vec<PathBuf> {
        let is_segment = |file: &PathBuf| file.extension().is_some_and(|name| name == "seg");
        files(&self.data).into_iter().filter(is_segment).collect()
    }

    async fn is_refused(&self) -> bool {
        match Archive::open(config(&self.data)).await {
            Ok(archive) => {
                archive.stop().await.unwrap();
                false
            }
            Err(error) => error.to_string().contains("older than the archive"),
        }
    }

    /// Asserts that it does not open, states the remedy, and changes nothing.
    async fn refuses(&self, detail: &str) {
        let (journal, segments) = (fs::read(self.journal()).unwrap(), self.segments());
        let error = Archive::open(config(&self.data)).await.unwrap_err();
        assert!(matches!(error, ArchiveError::Unusable { .. }), "{detail}: {error}");
        for words in ["older than the archive", "Bring the newer", "recover --salvage"] {
            assert!(error.to_string().contains(words), "{detail}: {error}");
        }
        assert_eq!(self.segments(), segments, "{detail}");
        assert!(fs::read(self.journal()).unwrap() == journal, "{detail}");
    }

    async fn salvage(&self) {
        let config = config(&self.data);
        let work = move || fulgurite_archive::recover(config, SALVAGE, &|_| {});
        tokio::task::spawn_blocking(work).await.unwrap().unwrap();
    }

    /// Asserts that it opens, and has exactly these STANDARD objects.
    async fn holds(&self, bodies: &BTreeMap<&str, Vec<u8>>, detail: &str) {
        let client = Client::open(config(&self.data)).await;
        let query = fulgurite_archive::ListQuery { limit: 100, ..Default::default() };
        let listed = client.archive.list(&client.bucket, query).await.unwrap().objects;
        let names: Vec<&str> = listed.iter().map(|object| object.key.as_str()).collect();
        assert_eq!(names, bodies.keys().copied().collect::<Vec<_>>(), "{detail}");
        for (name, body) in bodies {
            assert!(client.get(name, None).await.unwrap() == *body, "{detail}: {name}");
        }
        client.archive.stop().await.unwrap();
    }
}

/// Returns run and batches of the later of the two marks (docs/formats/catalog-mark.md).
fn latest_mark(data: &Path) -> (u64, u64) {
    let bytes = fs::read(mark(data)).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let marks = [0, 512].into_iter().filter(|at| bytes.len() >= at + 64);
    marks.map(|at| (word(at + 32), word(at + 40))).max().unwrap()
}

/// Waits for the only batch that the archive writes by itself, in a run that starts with existing
/// segments: the mark follows it.
async fn quiet(data: &Path) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while latest_mark(data) < (2, 2) {
        let detail = latest_mark(data);
        assert!(std::time::Instant::now() < deadline, "the mark does not follow: {detail:?}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Returns copies of an archive in its second run, killed after each of four puts.
async fn killed_after_each_put() -> Vec<(CrashImage, BTreeMap<&'static str, Vec<u8>>)> {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    let mut bodies = BTreeMap::from([("a", noise(1, 3000))]);
    client.put("a", STANDARD, &bodies["a"]).await.unwrap();
    client.archive.stop().await.unwrap();
    drop(client);
    let client = Client::open(config(dir.path())).await;
    quiet(dir.path()).await;
    let mut killed = vec![(CrashImage::capture(dir.path()), bodies.clone())];
    for (seed, name) in (2..).zip(["b", "c", "d", "e"]) {
        bodies.insert(name, noise(seed, 3000));
        client.put(name, STANDARD, &bodies[name]).await.unwrap();
        killed.push((CrashImage::capture(dir.path()), bodies.clone()));
    }
    client.archive.stop().await.unwrap();
    killed
}

#[tokio::test]
async fn catalog_after_a_kill_is_never_refused() {
    for (killed, bodies) in killed_after_each_put().await {
        killed.holds(&bodies, "killed").await;
        // A start that was killed leaves none either.
        killed.holds(&bodies, "started again").await;
    }
}

#[tokio::test]
async fn older_catalog_is_refused_until_replaced_or_salvaged() {
    for has_mark in [true, false] {
        let mut killed = killed_after_each_put().await;
        let (last, bodies) = killed.pop().unwrap();
        let (first, _) = killed.swap_remove(0);
        let detail = format!("mark: {has_mark}");
        let catalog = last.data.join("catalog");
        fs::rename(&catalog, last.data.join("newer")).unwrap();
        copy(&first.data.join("catalog"), &catalog);
        if !has_mark {
            fs::remove_file(mark(&last.data)).unwrap();
        }
        last.refuses(&detail).await;
        last.refuses(&detail).await;
        let salvaged = CrashImage::capture(&last.data);
        salvaged.salvage().await;
        salvaged.holds(&bodies, &detail).await;
        fs::remove_dir_all(&catalog).unwrap();
        fs::rename(last.data.join("newer"), &catalog).unwrap();
        last.holds(&bodies, &detail).await;
    }
}

#[tokio::test]
async fn catalog_of_earlier_run_is_refused_by_segments_or_mark() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    client.archive.stop().await.unwrap();
    drop(client);
    let earlier = CrashImage::capture(dir.path());
    let client = Client::open(config(dir.path())).await;
    client.put("a", STANDARD, &noise(1, 3000)).await.unwrap();
    client.archive.stop().await.unwrap();
    drop(client);
    let catalog = dir.path().join("catalog");
    fs::remove_dir_all(&catalog).unwrap();
    copy(&earlier.data.join("catalog"), &catalog);
    let by_mark = CrashImage::capture(dir.path());
    fs::remove_dir_all(by_mark.data.join("online")).unwrap();
    by_mark.refuses("by the mark").await;
    let by_segments = CrashImage::capture(dir.path());
    fs::remove_file(mark(&by_segments.data)).unwrap();
    by_segments.refuses("by segments").await;
    // The same if an earlier program moved them to the orphans.
    fs::create_dir(by_segments.data.join("orphaned")).unwrap();
    let orphan = by_segments.data.join("orphaned/online-00000000-run-2.seg");
    fs::rename(by_segments.data.join("online/00000000.seg"), orphan).unwrap();
    by_segments.refuses("by an orphan").await;
}

#[tokio::test]
async fn journal_that_lost_batches_is_refused() {
    let mut killed = killed_after_each_put().await;
    let (whole, bodies) = killed.pop().unwrap();
    for damage in ["emptied", "zeroed", "cut", "older"] {
        for has_mark in [true, false] {
            let detail = format!("{damage}, mark: {has_mark}");
            let last = CrashImage::capture(&whole.data);
            let (path, content) = (last.journal(), fs::read(last.journal()).unwrap());
            let used = content.iter().rposition(|&byte| byte != 0).unwrap() + 1;
            match damage {
                "emptied" => fs::write(&path, []).unwrap(),
                "zeroed" => fs::write(&path, vec![0; content.len()]).unwrap(),
                "cut" => fs::write(&path, &content[..used / 2]).unwrap(),
                _ => drop(fs::copy(killed[1].0.journal(), &path).unwrap()),
            }
            if !has_mark {
                fs::remove_file(mark(&last.data)).unwrap();
            }
            let error = Archive::open(config(&last.data)).await.unwrap_err().to_string();
            assert!(error.contains("older than the archive"), "{detail}: {error}");
            let salvaged = CrashImage::capture(&last.data);
            salvaged.salvage().await;
            salvaged.holds(&bodies, &detail).await;
            // The journal alone is enough: the refused start wrote nothing based on the damaged
            // one.
            fs::write(&path, &content).unwrap();
            last.holds(&bodies, &detail).await;
        }
    }
}

/// The one loss that leaves no evidence if the mark is lost too: the last commit. If the archive
/// wrote a batch of its own before it, the record of the last body is evidence.
#[tokio::test]
async fn lost_last_batch_looks_like_a_crash_and_is_salvageable() {
    for _ in 0..20 {
        let mut killed = killed_after_each_put().await;
        let (last, bodies) = killed.pop().unwrap();
        let (before, without) = killed.pop().unwrap();
        fs::copy(before.journal(), last.journal()).unwrap();
        fs::remove_file(mark(&last.data)).unwrap();
        if last.is_refused().await {
            continue;
        }
        last.holds(&without, "served").await;
        last.salvage().await;
        last.holds(&bodies, "salvaged").await;
        return;
    }
    panic!("a batch was written in between each time");
}

#[tokio::test]
async fn mark_detects_lost_deletions() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    client.put("a", STANDARD, &noise(1, 3000)).await.unwrap();
    let before = CrashImage::capture(dir.path());
    assert!(client.archive.delete(&client.bucket, &key("a")).await.unwrap());
    let after = CrashImage::capture(dir.path());
    fs::copy(before.journal(), after.journal()).unwrap();
    after.refuses("the deletion is missing").await;
    client.archive.stop().await.unwrap();
}

/// A recovery with a key table that lost the last runs: its catalog is newer than every segment.
#[tokio::test]
async fn recovered_catalog_opens_with_an_outdated_key_table() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path();
    let client = Client::open(config(data)).await;
    client.put("a", STANDARD, &noise(1, 3000)).await.unwrap();
    client.archive.stop().await.unwrap();
    drop(client);
    let earlier = CrashImage::capture(data);
    for name in ["b", "c", "d"] {
        let client = Client::open(config(data)).await;
        client.put(name, STANDARD, &noise(2, 3000)).await.unwrap();
        client.archive.stop().await.unwrap();
    }
    let last = CrashImage::capture(data);
    fs::remove_dir_all(last.data.join("catalog")).unwrap();
    for name in ["keys/table", "keys/table.copy"] {
        fs::copy(earlier.data.join(name), last.data.join(name)).unwrap();
    }
    last.salvage().await;
    last.holds(&BTreeMap::from([("a", noise(1, 3000))]), "recovered").await;
}
