//! `sync FROM TO`: makes a folder and a prefix of a bucket the same; one of the two is `s3://`.
//!
//! ```text
//! list both sides -> compare -> query objects of equal size -> restore? -> transfer -> delete?
//!                    `----------- plan.rs decides ----------'
//! ```
//!
//! A repeated run continues where the last one stopped: what exists and is the same is not
//! transferred again, and an incomplete file never has its final name. Nothing is deleted when
//! anything failed. Links and special files are left alone on both sides.

mod local;
mod plan;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use fulgurite_client::file_time::FileTime;
use fulgurite_client::names::S3Url;
use fulgurite_client::remote::RemoteArgs;
use fulgurite_client::s3::{Client, ListedObject};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{self, Output, note, pluralize};
use fulgurite_terminal::progress::count_bar;
use plan::{
    Compare, Comparison, Direction, Entry, Reason, compare_entries, differs_in_time, only_in_target,
};
use serde_json::json;

use super::get::is_folder_marker;
use super::restore::wait_for_keys;
use super::{
    Failures, GetJob, PlannedPut, PutJob, RestoreJob, RestoreTier, add_restore_states, for_each,
    get_all, list_all, parse_transfers, put_all, restore_all,
};
use crate::limits;

/// Flags of `sync`.
#[expect(clippy::struct_excessive_bools, reason = "flags that do not exclude each other")]
#[derive(Clone, Debug, clap::Args)]
pub struct SyncArgs {
    /// Folder, or s3://bucket/prefix
    #[arg(value_name = "FROM")]
    from: Location,
    /// s3://bucket/prefix, or folder: made the same as FROM
    #[arg(value_name = "TO")]
    to: Location,
    /// Delete what only TO has; on glass the key is destroyed
    #[arg(long)]
    delete: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Compare checksums, not times; reads every file of equal size
    #[arg(long, conflicts_with = "size_only")]
    checksum: bool,
    /// Treat files of equal size as the same
    #[arg(long)]
    size_only: bool,
    /// Request copies of objects that are on glass and needed
    #[arg(long)]
    restore: bool,
    /// With --restore: wait until the copies are ready, and fetch them
    #[arg(long, requires = "restore")]
    wait: bool,
    /// With --restore: days the copies stay
    #[arg(long, value_name = "N", default_value_t = 7,
          value_parser = clap::value_parser!(u32).range(1..))]
    days: u32,
    /// With --restore: restore tier
    #[arg(long, value_enum, default_value_t = RestoreTier::Standard)]
    tier: RestoreTier,
    /// Storage class of what is put
    #[arg(long, value_name = "CLASS", default_value = "DEEP_ARCHIVE")]
    storage_class: String,
    /// Make the bucket first if it does not exist
    #[arg(long)]
    make_bucket: bool,
    /// Objects transferred at one time
    #[arg(long, value_name = "N", default_value_t = limits::TRANSFERS_DEFAULT,
          value_parser = parse_transfers)]
    transfers: usize,
}

/// One side of a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// A local folder.
    Folder(PathBuf),
    /// A prefix of a bucket.
    Bucket(S3Url),
}

impl FromStr for Location {
    type Err = fulgurite_client::names::NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with("s3:") {
            return text.parse().map(Self::Bucket);
        }
        Ok(Self::Folder(text.into()))
    }
}

/// The parameters of a sync.
struct Sync<'a> {
    args: &'a SyncArgs,
    client: Client,
    direction: Direction,
    folder: &'a Path,
    url: &'a S3Url,
    /// The prefix of every key, which is not part of the paths.
    prefix: String,
    out: &'a Output,
}

/// Both sides by key.
struct Sides {
    files: BTreeMap<String, PlannedPut>,
    objects: BTreeMap<String, ListedObject>,
}

/// The keys to transfer, each with its reason, and how many are unchanged.
#[derive(Debug, Default)]
struct Changes {
    keys: Vec<(String, Reason)>,
    unchanged: u64,
}

/// The result of a sync.
#[derive(Clone, Copy, Debug, Default)]
struct SyncSummary {
    objects: u64,
    bytes: u64,
    deleted: u64,
    archived: u64,
    restoring: u64,
    failed: u64,
}

/// Runs `sync`.
pub(crate) async fn sync(args: &SyncArgs, remote: &RemoteArgs, out: &Output) -> anyhow::Result<()> {
    let (direction, folder, url) = match (&args.from, &args.to) {
        (Location::Folder(folder), Location::Bucket(url)) => (Direction::Up, folder, url),
        (Location::Bucket(url), Location::Folder(folder)) => (Direction::Down, folder, url),
        (Location::Folder(_), Location::Folder(_)) => {
            let message = "one side must be s3://bucket/prefix; between folders use rsync";
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        (Location::Bucket(_), Location::Bucket(_)) => {
            let message = "one side must be a folder; between buckets use fulgurite cp --recursive";
            return Err(ExitError::new(Exit::Usage, message).into());
        }
    };
    let client = remote.client()?;
    let sync = Sync { args, client, direction, folder, url, prefix: url.folder_prefix(), out };
    sync.run().await
}

impl Sync<'_> {
    async fn run(&self) -> anyhow::Result<()> {
        if self.args.make_bucket && self.direction == Direction::Up && !self.args.dry_run {
            self.client.create_bucket(&self.url.bucket).await?;
        }
        let started = Instant::now();
        let must_exist = self.direction == Direction::Up;
        let (files, skipped) = local::list(self.folder, self.url, &self.prefix, must_exist)?;
        let objects = list_all(&self.client, &self.url.bucket, &self.prefix).await?;
        let objects = objects.into_iter().filter(|object| object.key != self.prefix);
        let objects = objects.map(|object| (object.key.clone(), object)).collect();
        let sides = Sides { files, objects };
        let surplus = self.surplus(&sides)?;
        let (changes, mut failures) = self.changes(&sides).await?;
        let mut done = SyncSummary::default();
        if self.args.dry_run {
            self.show_plan(&sides, &changes, &surplus, &mut done)?;
        } else {
            match self.direction {
                Direction::Up => self.put(&sides, &changes, &mut failures, &mut done).await?,
                Direction::Down => self.get(&sides, &changes, &mut failures, &mut done).await?,
            }
            if failures.count() == 0 {
                self.delete(&sides, &surplus, &mut failures, &mut done).await?;
            } else if !surplus.is_empty() {
                note("nothing was deleted, because not everything could be transferred");
            }
        }
        done.failed = failures.count();
        self.show(&changes, done, skipped, started.elapsed().as_secs_f64())?;
        failures.into_result("synced", done.objects + changes.unchanged)?;
        self.archived(done)
    }

    /// Returns the keys that only the target has, if they are to be deleted.
    fn surplus(&self, sides: &Sides) -> anyhow::Result<Vec<String>> {
        if !self.args.delete {
            return Ok(Vec::new());
        }
        let (is_empty, surplus) = match self.direction {
            Direction::Up => (sides.files.is_empty(), only_in_target(&sides.files, &sides.objects)),
            Direction::Down => {
                (sides.objects.is_empty(), only_in_target(&sides.objects, &sides.files))
            }
        };
        if is_empty && !surplus.is_empty() {
            let message = format!(
                "the source is empty: --delete would delete all {} of the target; if that is \
                 meant, delete them yourself",
                pluralize(surplus.len() as u64, "entry")
            );
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        Ok(surplus.into_iter().map(str::to_owned).collect())
    }

    /// Compares both sides; objects of the same size are queried, several at one time.
    async fn changes(&self, sides: &Sides) -> anyhow::Result<(Changes, Failures)> {
        let compare = match (self.args.checksum, self.args.size_only) {
            (true, _) => Compare::Checksum,
            (_, true) => Compare::Size,
            _ => Compare::Time,
        };
        let file = |key: &str| {
            let file = sides.files.get(key)?;
            Some(Entry { bytes: file.bytes(), is_folder: file.is_folder() })
        };
        let object = |key: &str| {
            let object = sides.objects.get(key)?;
            Some(Entry { bytes: object.bytes, is_folder: is_folder_marker(object) })
        };
        let (mut changes, mut failures) = (Changes::default(), Failures::default());
        let (mut reasons, mut to_query) = (BTreeMap::new(), Vec::new());
        let keys: Vec<&String> = match self.direction {
            Direction::Up => sides.files.keys().collect(),
            Direction::Down => sides.objects.keys().collect(),
        };
        for key in keys {
            let (source, target) = match self.direction {
                Direction::Up => (file(key), object(key)),
                Direction::Down => (object(key), file(key).or_else(|| self.folder_at(key))),
            };
            let Some(source) = source else { continue };
            match compare_entries(compare, source, target) {
                Comparison::Same => changes.unchanged += 1,
                Comparison::Differs(reason) => drop(reasons.insert(key.clone(), reason)),
                Comparison::NeedsQuery => to_query.push(key),
            }
        }
        let bar = count_bar("compare", to_query.len() as u64, self.out.is_json());
        let work = |key| self.query(compare, key, &sides.files[key]);
        for_each(to_query, self.args.transfers, work, |(key, answer)| {
            bar.inc(1);
            match answer {
                Ok(None) => changes.unchanged += 1,
                Ok(Some(reason)) => drop(reasons.insert(key.clone(), reason)),
                Err(error) => failures.add(&bar, key, &error),
            }
            Ok(())
        })
        .await?;
        bar.finish_and_clear();
        changes.keys = reasons.into_iter().collect();
        Ok((changes, failures))
    }

    /// Returns the existing folder of a folder mark: the listing of files only has empty folders.
    fn folder_at(&self, key: &str) -> Option<Entry> {
        let relative =
            fulgurite_client::names::path_of(&self.prefix, key.strip_suffix('/')?).ok()?;
        let is_folder = std::fs::symlink_metadata(self.folder.join(relative)).ok()?.is_dir();
        is_folder.then_some(Entry { bytes: 0, is_folder: true })
    }

    /// Finds out whether a file and the object of its key differ, although they have the same size.
    async fn query<'k>(
        &self,
        compare: Compare,
        key: &'k String,
        file: &PlannedPut,
    ) -> (&'k String, anyhow::Result<Option<Reason>>) {
        (key, self.difference(compare, key, file).await)
    }

    async fn difference(
        &self,
        compare: Compare,
        key: &str,
        file: &PlannedPut,
    ) -> anyhow::Result<Option<Reason>> {
        let (head, verifier) = self.client.head_to_verify(&self.url.bucket, key).await?;
        if compare == Compare::Time {
            let put_at = FileTime::parse_date(&head.modified);
            let differs = differs_in_time(self.direction, file.file_time(), head.file_time, put_at);
            return Ok(differs.then_some(Reason::Time));
        }
        if !verifier.has_checksum() {
            return Ok(Some(Reason::NoChecksum));
        }
        let path = file.path().to_owned();
        let is_same = tokio::task::spawn_blocking(move || local::matches_checksum(&path, verifier));
        Ok((!is_same.await??).then_some(Reason::Content))
    }

    async fn put(
        &self,
        sides: &Sides,
        changes: &Changes,
        failures: &mut Failures,
        done: &mut SyncSummary,
    ) -> anyhow::Result<()> {
        let planned: Vec<PlannedPut> =
            changes.keys.iter().filter_map(|(key, _)| sides.files.get(key).cloned()).collect();
        let job = PutJob {
            client: &self.client,
            bucket: &self.url.bucket,
            class: &self.args.storage_class,
            transfers: self.args.transfers,
            out: self.out,
        };
        let (summary, failed) = put_all(&job, &planned).await?;
        (done.objects, done.bytes) = (summary.objects, summary.bytes);
        failures.join(failed);
        Ok(())
    }

    async fn get(
        &self,
        sides: &Sides,
        changes: &Changes,
        failures: &mut Failures,
        done: &mut SyncSummary,
    ) -> anyhow::Result<()> {
        let mut wanted: Vec<ListedObject> =
            changes.keys.iter().filter_map(|(key, _)| sides.objects.get(key).cloned()).collect();
        add_restore_states(&self.client, &self.url.bucket, &mut wanted).await?;
        if self.args.restore {
            self.restore(&mut wanted, failures, done).await?;
        }
        std::fs::create_dir_all(self.folder).map_err(|error| {
            anyhow::Error::from(error).context(self.folder.display().to_string())
        })?;
        let job = GetJob {
            client: &self.client,
            bucket: &self.url.bucket,
            strip: &self.prefix,
            folder: self.folder,
            transfers: self.args.transfers,
            out: self.out,
        };
        let (summary, failed) = get_all(&job, &wanted).await?;
        (done.objects, done.bytes) = (summary.objects, summary.bytes);
        done.archived = summary.archived;
        failures.join(failed);
        Ok(())
    }

    /// Requests copies of objects on glass, and waits for them if asked to.
    async fn restore(
        &self,
        wanted: &mut [ListedObject],
        failures: &mut Failures,
        done: &mut SyncSummary,
    ) -> anyhow::Result<()> {
        let needed = |object: &&ListedObject| object.needs_restore() && !is_folder_marker(object);
        let keys: Vec<String> =
            wanted.iter().filter(needed).map(|object| object.key.clone()).collect();
        let quiet = Output::silent();
        let job = RestoreJob {
            client: &self.client,
            bucket: &self.url.bucket,
            days: self.args.days,
            tier: self.args.tier,
            transfers: self.args.transfers,
            out: if self.out.is_json() { self.out } else { &quiet },
        };
        let (counts, failed) = restore_all(&job, &keys).await?;
        done.restoring = counts.accepted + counts.extended + counts.in_progress;
        failures.join(failed);
        if !self.args.wait || keys.is_empty() {
            return Ok(());
        }
        wait_for_keys(&self.client, &self.url.bucket, &keys, self.out.is_json()).await?;
        let listed = list_all(&self.client, &self.url.bucket, &self.prefix).await?;
        let mut now: Vec<ListedObject> =
            listed.into_iter().filter(|object| keys.contains(&object.key)).collect();
        add_restore_states(&self.client, &self.url.bucket, &mut now).await?;
        let mut now: BTreeMap<String, ListedObject> =
            now.into_iter().map(|object| (object.key.clone(), object)).collect();
        for object in wanted {
            if let Some(fresh) = now.remove(&object.key) {
                *object = fresh;
            }
        }
        Ok(())
    }

    async fn delete(
        &self,
        sides: &Sides,
        surplus: &[String],
        failures: &mut Failures,
        done: &mut SyncSummary,
    ) -> anyhow::Result<()> {
        let bar = count_bar("delete", surplus.len() as u64, self.out.is_json());
        for batch in surplus.chunks(fulgurite_client::limits::DELETE_KEYS_MAX) {
            let undeleted = match self.direction {
                Direction::Up => {
                    let undeleted = self.client.delete_many(&self.url.bucket, batch).await?;
                    let error = |code: &str, message: &str| anyhow::anyhow!("{code}: {message}");
                    undeleted.into_iter().map(|f| (f.key, error(&f.code, &f.message))).collect()
                }
                Direction::Down => self.remove_files(sides, batch),
            };
            let undeleted: BTreeMap<String, anyhow::Error> = undeleted;
            for key in batch.iter().filter(|key| !undeleted.contains_key(*key)) {
                done.deleted += 1;
                self.out.json("deleted", &json!({"key": key}))?;
            }
            for (key, error) in undeleted {
                failures.add(&bar, key, &error);
            }
            bar.inc(batch.len() as u64);
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Removes files that the bucket does not have; returns those that could not be removed.
    fn remove_files(&self, sides: &Sides, keys: &[String]) -> BTreeMap<String, anyhow::Error> {
        let has_marker = |folder: &Path| {
            let key = fulgurite_client::names::key_of(&self.prefix, folder);
            key.is_ok_and(|key| sides.objects.contains_key(&format!("{key}/")))
        };
        let remove = |key: &String| {
            let file = sides.files.get(key)?;
            let error = local::remove(self.folder, file, &has_marker).err()?;
            Some((key.clone(), error))
        };
        keys.iter().filter_map(remove).collect()
    }

    fn show_plan(
        &self,
        sides: &Sides,
        changes: &Changes,
        surplus: &[String],
        done: &mut SyncSummary,
    ) -> anyhow::Result<()> {
        let action = self.action();
        for (key, reason) in &changes.keys {
            let bytes = match self.direction {
                Direction::Up => sides.files.get(key).map_or(0, PlannedPut::bytes),
                Direction::Down => sides.objects.get(key).map_or(0, |object| object.bytes),
            };
            done.objects += 1;
            done.bytes += bytes;
            let reason = reason.name();
            self.out.json(
                "plan",
                &json!({
                    "action": action, "key": key, "bytes": bytes, "reason": reason,
                }),
            )?;
            let size = output::bytes(bytes);
            self.out.text(format_args!("{action:6}  {size:>10}  {reason:11}  {key}"))?;
        }
        for key in surplus {
            done.deleted += 1;
            self.out.json("plan", &json!({"action": "delete", "key": key}))?;
            self.out.text(format_args!("{:6}  {:>10}  {:11}  {key}", "delete", "", ""))?;
        }
        Ok(())
    }

    const fn action(&self) -> &'static str {
        match self.direction {
            Direction::Up => "put",
            Direction::Down => "get",
        }
    }

    fn show(
        &self,
        changes: &Changes,
        done: SyncSummary,
        skipped: u64,
        seconds: f64,
    ) -> anyhow::Result<()> {
        self.out.json(
            "summary",
            &json!({
                "action": self.action(), "objects": done.objects,
                "bytes": done.bytes, "deleted": done.deleted, "unchanged": changes.unchanged,
                "archived": done.archived, "restoring": done.restoring, "failed": done.failed,
                "skipped": skipped, "seconds": seconds, "dry_run": self.args.dry_run,
            }),
        )?;
        let (count, size) = (pluralize(done.objects, "object"), output::bytes(done.bytes));
        let (deleted, same) =
            (output::group_digits(done.deleted), output::group_digits(changes.unchanged));
        let verb = match (self.direction, self.args.dry_run) {
            (Direction::Up, _) => "put",
            (Direction::Down, true) => "get",
            (Direction::Down, false) => "fetched",
        };
        if self.args.dry_run {
            self.out.text(format_args!(
                "would {verb} {count}, {size}, and delete {deleted}; {same} unchanged"
            ))?;
        } else {
            let took = output::seconds(seconds);
            self.out.text(format_args!(
                "{verb} {count}, {size}, and deleted {deleted} in {took}; {same} unchanged"
            ))?;
        }
        if skipped > 0 && !self.out.is_json() {
            note(format_args!("skipped {}: links and special files", pluralize(skipped, "entry")));
        }
        Ok(())
    }

    /// Returns the error for objects on glass that were not fetched.
    fn archived(&self, done: SyncSummary) -> anyhow::Result<()> {
        if done.archived == 0 {
            return Ok(());
        }
        let objects = pluralize(done.archived, "object");
        let message = if self.args.restore {
            format!("{objects} on glass, copies are requested: run the same sync again later")
        } else {
            format!("{objects} on glass, not fetched: add --restore, and --wait to wait for them")
        };
        Err(ExitError::new(Exit::Archived, message).into())
    }
}
