//! `get s3://bucket/key PATH`: downloads objects to files.
//!
//! One object is written to the file PATH, into PATH if that is a folder (or ends in `/`), or to
//! standard output (`-`). A folder is written below PATH and keeps its name; with a trailing slash
//! only its contents are meant: the mirror of `put`. A file gets its name only when its bytes are
//! complete and correct. Nothing is ever written outside of PATH, whatever the keys are.

use std::path::{Path, PathBuf};
use std::time::Instant;

use fulgurite_client::names::{S3Url, path_of};
use fulgurite_client::remote::RemoteArgs;
use fulgurite_client::s3::{Client, ListedObject, S3ErrorKind};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, note, pluralize};
use fulgurite_terminal::progress::bytes_bar;
use indicatif::ProgressBar;
use serde_json::json;

use super::cat::{explain_archived, print_object};
use super::{
    Failures, add_restore_states, for_each, list_all, not_found, parse_transfers, show_rate,
};
use crate::limits;

/// Flags of `get`.
#[derive(Clone, Debug, clap::Args)]
pub struct GetArgs {
    /// Object or folder: s3://bucket/key
    #[arg(value_name = "S3-URL")]
    url: S3Url,
    /// File or folder to write to; - for standard output
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Objects fetched at one time
    #[arg(long, value_name = "N", default_value_t = limits::TRANSFERS_DEFAULT,
          value_parser = parse_transfers)]
    transfers: usize,
}

/// The result of a get.
#[derive(Clone, Copy, Debug, Default)]
pub struct GetSummary {
    /// Objects fetched.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Objects that wait for a restore.
    pub archived: u64,
}

/// The parameters of a get, except the list.
#[derive(Clone, Copy, Debug)]
pub struct GetJob<'a> {
    /// Client.
    pub client: &'a Client,
    /// Bucket.
    pub bucket: &'a str,
    /// The prefix of every key, which is not part of the paths.
    pub strip: &'a str,
    /// Folder to write into.
    pub folder: &'a Path,
    /// Objects fetched at one time.
    pub transfers: usize,
    /// Where results are printed.
    pub out: &'a Output,
}

/// Runs `get`.
pub(crate) async fn get(args: &GetArgs, remote: &RemoteArgs, out: &Output) -> anyhow::Result<()> {
    let client = remote.client()?;
    if args.path.as_os_str() == "-" {
        return print_object(&client, &args.url, out).await;
    }
    let objects = find(&client, &args.url).await?;
    let is_one = matches!(&objects[..], [one] if one.key == args.url.key);
    if is_one && !is_folder(&args.path) {
        return get_as(&client, args, &objects[0], out).await;
    }
    std::fs::create_dir_all(&args.path)
        .map_err(|error| anyhow::Error::from(error).context(args.path.display().to_string()))?;
    let strip = match args.url.key.trim_end_matches('/').rfind('/') {
        _ if args.url.key.ends_with('/') => args.url.key.as_str(),
        Some(slash) => &args.url.key[..=slash],
        None => "",
    };
    let job = GetJob {
        client: &client,
        bucket: &args.url.bucket,
        strip,
        folder: &args.path,
        transfers: args.transfers,
        out,
    };
    let (summary, failures) = get_all(&job, &objects).await?;
    show(&summary, failures.count(), out)?;
    failures.into_result("fetched", summary.objects)?;
    if summary.archived > 0 {
        let recursive = if objects.len() > 1 { "--recursive " } else { "" };
        let message = format!(
            "{} of {} archived; first run: fulgurite restore {recursive}--wait {}",
            summary.archived,
            pluralize(objects.len() as u64, "object"),
            args.url
        );
        return Err(ExitError::new(Exit::Archived, message).into());
    }
    Ok(())
}

fn show(summary: &GetSummary, failed: u64, out: &Output) -> anyhow::Result<()> {
    out.json(
        "summary",
        &json!({
            "objects": summary.objects, "bytes": summary.bytes,
            "seconds": summary.seconds, "archived": summary.archived, "failed": failed,
        }),
    )?;
    show_rate(summary.objects, summary.bytes, summary.seconds, out)
}

/// Whether `path` is a folder, or is meant as one.
fn is_folder(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    path.is_dir() || path.as_os_str().as_bytes().ends_with(b"/")
}

/// Fetches one object to the named file.
async fn get_as(
    client: &Client,
    args: &GetArgs,
    object: &ListedObject,
    out: &Output,
) -> anyhow::Result<()> {
    let (path, url) = (&args.path, &args.url);
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        let shown = path.display();
        let message =
            format!("\"{shown}\" is not a regular file; run: fulgurite cat {url} > {shown}");
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    let bar = bytes_bar("get", object.bytes, out.is_json());
    let started = Instant::now();
    let result = client.get_file(&url.bucket, &url.key, path, &|bytes| bar.inc(bytes)).await;
    bar.finish_and_clear();
    let head = result.map_err(|error| explain_archived(error, url))?;
    out.json(
        "object",
        &json!({
            "key": url.key, "path": path.to_string_lossy(), "bytes": head.bytes,
        }),
    )?;
    let seconds = started.elapsed().as_secs_f64();
    show(&GetSummary { objects: 1, bytes: head.bytes, seconds, archived: 0 }, 0, out)
}

/// Returns the object with this key, or else everything in this folder.
async fn find(client: &Client, url: &S3Url) -> anyhow::Result<Vec<ListedObject>> {
    if !url.key.is_empty() && !url.key.ends_with('/') {
        match client.head(&url.bucket, &url.key).await {
            Ok(head) => return Ok(vec![head.into_listed(&url.key)]),
            Err(error) if error.kind() == S3ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut objects = list_all(client, &url.bucket, &url.folder_prefix()).await?;
    add_restore_states(client, &url.bucket, &mut objects).await?;
    if objects.is_empty() && !url.key.is_empty() {
        return Err(not_found(url));
    }
    Ok(objects)
}

/// Fetches every object that is readable now.
pub(crate) async fn get_all(
    job: &GetJob<'_>,
    objects: &[ListedObject],
) -> anyhow::Result<(GetSummary, Failures)> {
    let readable = |object: &&ListedObject| !object.needs_restore() || is_folder_marker(object);
    let bytes = objects.iter().filter(readable).map(|object| object.bytes).sum();
    let bar = bytes_bar("get", bytes, job.out.is_json());
    let started = Instant::now();
    let mut summary = GetSummary::default();
    let mut failures = Failures::default();
    let waiting = objects.iter().filter(|object| !readable(object));
    for (index, object) in waiting.enumerate() {
        summary.archived += 1;
        let in_progress = object.restore.is_some();
        job.out.json(
            "archived",
            &json!({
                "key": object.key, "class": object.class,
                "restore_in_progress": in_progress,
            }),
        )?;
        if index < limits::FAILURES_SHOWN_MAX && !job.out.is_json() {
            let state = if in_progress { "is being restored" } else { "is archived" };
            bar.suspend(|| note(format_args!("{} {state} ({})", object.key, object.class)));
        }
    }
    let work = |object| get_one(job, object, &bar);
    for_each(objects.iter().filter(readable), job.transfers, work, |(object, result)| {
        match result {
            Ok(path) => {
                summary.objects += 1;
                summary.bytes += object.bytes;
                job.out.json(
                    "object",
                    &json!({
                        "key": object.key, "path": path.to_string_lossy(),
                        "bytes": object.bytes,
                    }),
                )?;
            }
            Err(error) => failures.add(&bar, &object.key, &error),
        }
        Ok(())
    })
    .await?;
    bar.finish_and_clear();
    summary.seconds = started.elapsed().as_secs_f64();
    Ok((summary, failures))
}

async fn get_one<'o>(
    job: &GetJob<'_>,
    object: &'o ListedObject,
    bar: &ProgressBar,
) -> (&'o ListedObject, anyhow::Result<PathBuf>) {
    (object, fetch(job, object, bar).await)
}

pub(super) async fn fetch(
    job: &GetJob<'_>,
    object: &ListedObject,
    bar: &ProgressBar,
) -> anyhow::Result<PathBuf> {
    let relative = path_of(job.strip, &object.key)
        .map_err(|error| ExitError::new(Exit::Failure, error.to_string()))?;
    let path = job.folder.join(&relative);
    if is_folder_marker(object) {
        make_folders(job.folder, &relative)?;
        return Ok(path);
    }
    if let Some(parent) = relative.parent() {
        make_folders(job.folder, parent)?;
    }
    job.client.get_file(job.bucket, &object.key, &path, &|bytes| bar.inc(bytes)).await?;
    Ok(path)
}

/// Whether an object stands for a folder: it is empty, and its key ends in `/`.
pub(super) fn is_folder_marker(object: &ListedObject) -> bool {
    object.bytes == 0 && object.key.ends_with('/')
}

/// Creates `relative` below `folder`, and refuses to follow an existing link.
fn make_folders(folder: &Path, relative: &Path) -> anyhow::Result<()> {
    let mut path = folder.to_owned();
    for component in relative.components() {
        path.push(component);
        match std::fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let is_folder = std::fs::symlink_metadata(&path)?.is_dir();
                if !is_folder {
                    let message = format!("\"{}\" is in the way: not a folder", path.display());
                    return Err(ExitError::new(Exit::Failure, message).into());
                }
            }
            Err(error) => {
                return Err(anyhow::Error::from(error).context(path.display().to_string()));
            }
        }
    }
    Ok(())
}
