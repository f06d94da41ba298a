//! Commands about objects: put, get, cat, cp, mv, sync, ls, rm, mb, rb, restore, status.
//!
//! Each is a plan (a list of files or keys, complete before the first byte moves) and a bounded
//! number of transfers at one time. A failed object does not stop the others; it is named, and the
//! exit code says so.

mod cat;
mod copy;
mod get;
pub mod limits;
mod ls;
mod put;
mod restore;
mod rm;
mod status;
mod sync;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;

use fulgurite_client::names::S3Url;
use fulgurite_client::s3::{
    Client, ListScope, ListedObject, ObjectHead, S3Error, S3ErrorKind, is_archived_class,
};
use fulgurite_terminal::exit::{Coded, Exit, exit_of};
use fulgurite_terminal::output::{self, Output, counted, note};
use futures::StreamExt as _;
use indicatif::ProgressBar;

pub use cat::{CatArgs, cat};
pub use copy::{CopyArgs, copy, move_objects};
pub use get::{GetArgs, GetJob, GetSummary, get, get_all};
pub use ls::{LsArgs, ls};
pub use put::{PlannedPut, PutArgs, PutJob, PutSummary, put, put_all};
pub use restore::{
    RestoreArgs, RestoreCounts, RestoreJob, RestoreTier, restore, restore_all, wait_for_restore,
};
pub use rm::{BucketArgs, RmArgs, make_bucket, remove_bucket, rm};
pub use status::{StatusArgs, status};
pub use sync::{SyncArgs, sync};

/// Every object whose key begins with `prefix`, in key order.
pub async fn list_all(
    client: &Client,
    bucket: &str,
    prefix: &str,
) -> Result<Vec<ListedObject>, S3Error> {
    let scope = ListScope { bucket, prefix, by_folder: false };
    let mut objects = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let page = client.list(scope, token.as_deref()).await?;
        objects.extend(page.objects);
        if page.next.is_none() {
            return Ok(objects);
        }
        token = page.next;
    }
}

/// The object that `url` names and everything in the folder it names, in key order.
pub async fn list_covered(client: &Client, url: &S3Url) -> Result<Vec<ListedObject>, S3Error> {
    let mut objects = list_all(client, &url.bucket, &url.key).await?;
    objects.retain(|object| url.covers(&object.key));
    Ok(objects)
}

/// What whoever named a folder may have meant.
pub const ADD_RECURSIVE: &str = "add --recursive to mean them all";

/// What a URL that means nothing ends with.
pub fn missing(url: &S3Url) -> anyhow::Error {
    let bucket = &url.bucket;
    let message = format!("{url} does not exist; fulgurite ls s3://{bucket} shows what does");
    Coded::new(Exit::NotFound, message).into()
}

/// Looks whether `url` is an object, and says what to do if it is a folder instead.
pub async fn must_exist(
    client: &Client,
    url: &S3Url,
    remedy: &'static str,
) -> anyhow::Result<ObjectHead> {
    let error = match client.head(&url.bucket, &url.key).await {
        Ok(head) => return Ok(head),
        Err(error) if error.kind() == S3ErrorKind::NotFound => error,
        Err(error) => return Err(error.into()),
    };
    let folder = url.folder_prefix();
    let scope = ListScope { bucket: &url.bucket, prefix: &folder, by_folder: false };
    // A bucket that is not there is told as what it is.
    let page = client.list(scope, None).await?;
    if page.objects.is_empty() {
        tracing::debug!(%error, "there is neither an object nor a folder");
        return Err(missing(url));
    }
    let more = if page.next.is_some() { "more than " } else { "" };
    let objects = counted(page.objects.len() as u64, "object");
    let message = format!("{url} is a folder of {more}{objects}: {remedy}");
    Err(Coded::new(Exit::Usage, message).into())
}

/// Fills in the restore states that a server does not show in its listings: one HEAD tells whether
/// it does, and only then every archived object is asked for.
pub async fn add_restore_states(
    client: &Client,
    bucket: &str,
    objects: &mut [ListedObject],
) -> anyhow::Result<()> {
    let is_archived = |object: &&ListedObject| is_archived_class(&object.class);
    if objects.iter().any(|object| object.restore.is_some()) {
        return Ok(());
    }
    let Some(first) = objects.iter().find(is_archived) else { return Ok(()) };
    match client.head(bucket, &first.key).await {
        Ok(head) if head.restore.is_some() => {}
        // Listed a moment ago and gone, or without a copy like all the others.
        Ok(_) | Err(_) => return Ok(()),
    }
    let archived = objects.iter().filter(is_archived);
    let keys: Vec<String> = archived.map(|object| object.key.clone()).collect();
    let heads = |key: String| async move {
        let head = client.head(bucket, &key).await;
        (key, head)
    };
    let mut states = BTreeMap::new();
    for_each(keys, limits::TRANSFERS_DEFAULT, heads, |(key, head)| {
        states.insert(key, head?.restore);
        Ok(())
    })
    .await?;
    for object in objects {
        object.restore = states.remove(&object.key).flatten();
    }
    Ok(())
}

/// The failures of a run: each is named once, and the last word is the exit code.
#[derive(Debug, Default)]
pub struct Failures {
    count: u64,
    exit: Option<Exit>,
}

impl Failures {
    /// Names one failure on standard error, as long as people can take it.
    pub fn add(&mut self, bar: &ProgressBar, what: impl Display, error: &anyhow::Error) {
        self.count += 1;
        let exit = exit_of(error, |cause| Some(cause.downcast_ref::<S3Error>()?.kind().exit()));
        self.exit = Some(match self.exit {
            None => exit,
            Some(before) if before == exit => exit,
            Some(_) => Exit::Failure,
        });
        if self.count <= limits::FAILURES_SHOWN_MAX as u64 {
            bar.suspend(|| note(format_args!("{what}: {error:#}")));
        }
    }

    /// Takes those of another step of the same run.
    pub fn join(&mut self, other: Self) {
        self.count += other.count;
        self.exit = match (self.exit, other.exit) {
            (None, exit) | (exit, None) => exit,
            (Some(one), Some(two)) if one == two => Some(one),
            (Some(_), Some(_)) => Some(Exit::Failure),
        };
    }

    /// How many.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The error that ends the run, if any object failed; `done` objects did not.
    pub fn into_result(self, verb: &str, done: u64) -> anyhow::Result<()> {
        let Some(exit) = self.exit else { return Ok(()) };
        let exit = if done > 0 { Exit::Partial } else { exit };
        let count = self.count;
        let message = format!("{count} of {} objects could not be {verb}", done + count);
        Err(Coded::new(exit, message).into())
    }
}

/// Runs `work` on all `items`, at most `at_once` at one time, and hands each result to `done`.
pub async fn for_each<I, T, F>(
    items: impl IntoIterator<Item = I>,
    at_once: usize,
    work: impl Fn(I) -> F,
    mut done: impl FnMut(T) -> anyhow::Result<()>,
) -> anyhow::Result<()>
where
    F: Future<Output = T>,
{
    let mut results = futures::stream::iter(items).map(work).buffer_unordered(at_once);
    while let Some(result) = results.next().await {
        done(result)?;
    }
    Ok(())
}

/// Reads `--transfers`.
fn parse_transfers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=limits::TRANSFERS_MAX).contains(&count) => Ok(count),
        _ => Err(format!("write a number from 1 to {}", limits::TRANSFERS_MAX)),
    }
}

/// Says what was moved, how long it took and how fast that was.
fn show_rate(objects: u64, bytes: u64, seconds: f64, out: &Output) -> anyhow::Result<()> {
    out.text(format_args!(
        "{}, {} in {} ({})",
        counted(objects, "object"),
        output::bytes(bytes),
        output::seconds(seconds),
        output::rate(bytes, seconds)
    ))
}
