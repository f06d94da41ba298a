//! `put PATH... s3://bucket/prefix`: uploads files and folders as objects, and standard input (`-`)
//! as well.
//!
//! A folder keeps its name (`put photos s3://b/` makes `photos/..`); with a trailing slash only its
//! contents are meant (`put photos/ s3://b/`). An empty folder becomes an empty object whose key
//! ends in `/`. Links and special files inside a folder are skipped and counted.

use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use fulgurite_client::file_time::FileTime;
use fulgurite_client::names::{self, S3Url, key_of};
use fulgurite_client::remote::RemoteArgs;
use fulgurite_client::s3::{Budget, Client, ObjectProperties, PutSource};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, note, pluralize};
use fulgurite_terminal::progress::{bytes_bar, stream_bar};
use indicatif::ProgressBar;
use serde_json::json;
use walkdir::WalkDir;

use super::{Failures, for_each, parse_transfers, show_rate};
use crate::limits;

/// Flags of `put`.
#[derive(Clone, Debug, clap::Args)]
pub struct PutArgs {
    /// Files and folders, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Destination: s3://bucket/prefix
    #[arg(value_name = "S3-URL")]
    url: S3Url,
    /// Storage class: STANDARD, GLACIER, DEEP_ARCHIVE, or any other the endpoint knows
    #[arg(long, value_name = "CLASS", default_value = "DEEP_ARCHIVE")]
    storage_class: String,
    /// Make the bucket first if it does not exist
    #[arg(long)]
    make_bucket: bool,
    /// Objects sent at one time
    #[arg(long, value_name = "N", default_value_t = limits::TRANSFERS_DEFAULT,
          value_parser = parse_transfers)]
    transfers: usize,
}

/// A file or empty folder, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPut {
    path: PathBuf,
    key: String,
    bytes: u64,
    is_folder: bool,
    file_time: Option<FileTime>,
}

/// The result of a put.
#[derive(Clone, Copy, Debug, Default)]
pub struct PutSummary {
    /// Objects stored.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Links and special files skipped.
    pub skipped: u64,
}

/// Runs `put`.
pub(crate) async fn put(args: &PutArgs, remote: &RemoteArgs, out: &Output) -> anyhow::Result<()> {
    let url = &args.url;
    let client = remote.client()?;
    if args.make_bucket {
        client.create_bucket(&url.bucket).await?;
    }
    if args.paths.iter().any(|path| path.as_os_str() == "-") {
        return put_input(&client, args, out).await;
    }
    let (planned, skipped) = plan(&args.paths, url)?;
    let job = PutJob {
        client: &client,
        bucket: &url.bucket,
        class: &args.storage_class,
        transfers: args.transfers,
        out,
    };
    let (mut summary, failures) = put_all(&job, &planned).await?;
    summary.skipped = skipped;
    show(&summary, failures.count(), out)?;
    if skipped > 0 {
        note(format_args!("skipped {}: links and special files", pluralize(skipped, "entry")));
    }
    failures.into_result("put", summary.objects)
}

fn show(summary: &PutSummary, failed: u64, out: &Output) -> anyhow::Result<()> {
    out.json(
        "summary",
        &json!({
            "objects": summary.objects, "bytes": summary.bytes,
            "seconds": summary.seconds, "skipped": summary.skipped, "failed": failed,
        }),
    )?;
    show_rate(summary.objects, summary.bytes, summary.seconds, out)
}

/// Puts standard input as the one object that the URL names.
async fn put_input(client: &Client, args: &PutArgs, out: &Output) -> anyhow::Result<()> {
    let url = &args.url;
    if args.paths.len() > 1 {
        let message = "standard input (-) is one object: pass no other path";
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    if url.key.is_empty() || url.key.ends_with('/') {
        let message = format!("standard input has no name: write s3://{}/KEY", url.bucket);
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    let bar = stream_bar("put", out.is_json());
    let started = Instant::now();
    let properties = ObjectProperties { class: &args.storage_class, file_time: None };
    let input = std::io::stdin();
    let put =
        client.put_stream(&url.bucket, &url.key, input, properties, &|bytes| bar.inc(bytes)).await;
    bar.finish_and_clear();
    let put = put?;
    out.json(
        "object",
        &json!({
            "key": url.key, "path": "-", "bytes": put.bytes, "etag": put.etag,
        }),
    )?;
    let seconds = started.elapsed().as_secs_f64();
    show(&PutSummary { objects: 1, bytes: put.bytes, seconds, skipped: 0 }, 0, out)
}

/// The parameters of a put, except the list.
#[derive(Clone, Copy, Debug)]
pub struct PutJob<'a> {
    /// Client.
    pub client: &'a Client,
    /// Bucket.
    pub bucket: &'a str,
    /// Storage class.
    pub class: &'a str,
    /// Objects sent at one time.
    pub transfers: usize,
    /// Where results are printed.
    pub out: &'a Output,
}

/// Puts everything planned.
pub(crate) async fn put_all(
    job: &PutJob<'_>,
    planned: &[PlannedPut],
) -> anyhow::Result<(PutSummary, Failures)> {
    let bar = bytes_bar("put", planned.iter().map(|p| p.bytes).sum(), job.out.is_json());
    let budget = Budget::default();
    let started = Instant::now();
    let mut summary = PutSummary::default();
    let mut failures = Failures::default();
    let work = |item| put_one(job, item, &budget, &bar);
    for_each(planned, job.transfers, work, |(item, result)| {
        match result {
            Ok(etag) => {
                summary.objects += 1;
                summary.bytes += item.bytes;
                job.out.json(
                    "object",
                    &json!({
                        "key": item.key, "path": item.path.to_string_lossy(),
                        "bytes": item.bytes, "etag": etag,
                    }),
                )?;
            }
            Err(error) => failures.add(&bar, item.path.display(), &error),
        }
        Ok(())
    })
    .await?;
    bar.finish_and_clear();
    summary.seconds = started.elapsed().as_secs_f64();
    Ok((summary, failures))
}

async fn put_one<'p>(
    job: &PutJob<'_>,
    item: &'p PlannedPut,
    budget: &Budget,
    bar: &ProgressBar,
) -> (&'p PlannedPut, anyhow::Result<String>) {
    let properties = ObjectProperties { class: job.class, file_time: item.file_time };
    let result = if item.is_folder {
        job.client.put_bytes(job.bucket, &item.key, Bytes::new(), properties).await
    } else {
        let source = PutSource { path: &item.path, bytes: item.bytes, properties };
        job.client.put_file(job.bucket, &item.key, source, budget, &|n| bar.inc(n)).await
    };
    (item, result.map_err(anyhow::Error::from))
}

/// Finds every file below `paths` and its key. Rejects all if one has no valid key.
pub(crate) fn plan(paths: &[PathBuf], url: &S3Url) -> anyhow::Result<(Vec<PlannedPut>, u64)> {
    let (mut planned, mut skipped, mut invalid_names) = (Vec::new(), 0, Vec::new());
    for path in paths {
        let metadata = std::fs::metadata(path).map_err(|error| {
            ExitError::new(
                exit_of_io(&error),
                format!("cannot read \"{}\": {error}", path.display()),
            )
        })?;
        if metadata.is_dir() {
            skipped += plan_folder(path, &url.folder_prefix(), &mut planned, &mut invalid_names)?;
        } else {
            let is_exact = paths.len() == 1 && !url.key.is_empty() && !url.key.ends_with('/');
            let name = path.file_name().map(Path::new).unwrap_or(path);
            let key =
                if is_exact { Ok(url.key.clone()) } else { key_of(&url.folder_prefix(), name) };
            match key {
                Ok(key) => {
                    let planned_put = PlannedPut::file(path.clone(), key, metadata.len());
                    planned.push(planned_put.with_file_time(FileTime::from_metadata(&metadata)));
                }
                Err(error) => invalid_names.push(error),
            }
        }
    }
    if let Some(first) = invalid_names.first() {
        let more = invalid_names.len() - 1;
        let message = if more == 0 {
            format!("nothing was put: {first}")
        } else {
            format!("nothing was put: {first} (and {} more)", pluralize(more as u64, "name"))
        };
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    Ok((planned, skipped))
}

/// Adds the files of one folder; returns how many entries were skipped.
fn plan_folder(
    folder: &Path,
    prefix: &str,
    planned: &mut Vec<PlannedPut>,
    invalid_names: &mut Vec<names::NameError>,
) -> anyhow::Result<u64> {
    let prefix = match folder_name(folder)? {
        Some(name) => match key_of(prefix, Path::new(&name)) {
            Ok(key) => format!("{key}/"),
            Err(error) => {
                invalid_names.push(error);
                return Ok(0);
            }
        },
        None => prefix.to_owned(),
    };
    let mut skipped = 0;
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let entry = entry?;
        let relative = entry.path().strip_prefix(folder).unwrap_or_else(|_| entry.path());
        let is_folder = entry.depth() == 0 || entry.file_type().is_dir();
        if is_folder && !is_empty_folder(entry.path())? {
            continue;
        }
        if !is_folder && !entry.file_type().is_file() {
            skipped += 1;
            continue;
        }
        let key = key_of(&prefix, relative).map(|key| match is_folder {
            true if key.is_empty() || key.ends_with('/') => key,
            true => format!("{key}/"),
            false => key,
        });
        let metadata = entry.metadata()?;
        match key {
            Ok(key) if key.is_empty() => skipped += 1,
            Ok(key) => {
                let path = entry.into_path();
                planned.push(match is_folder {
                    true => PlannedPut { path, key, bytes: 0, is_folder, file_time: None },
                    false => PlannedPut::file(path, key, metadata.len())
                        .with_file_time(FileTime::from_metadata(&metadata)),
                });
            }
            Err(error) => invalid_names.push(error),
        }
    }
    Ok(skipped)
}

/// Returns the name under which a folder is stored; `None` if only its contents are meant.
fn folder_name(folder: &Path) -> anyhow::Result<Option<std::ffi::OsString>> {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = folder.as_os_str().as_bytes();
    if bytes.ends_with(b"/") || bytes == b"." || bytes.ends_with(b"/.") {
        return Ok(None);
    }
    match folder.file_name() {
        Some(name) => Ok(Some(name.to_owned())),
        None => Ok(folder.canonicalize()?.file_name().map(std::ffi::OsStr::to_owned)),
    }
}

fn is_empty_folder(path: &Path) -> anyhow::Result<bool> {
    Ok(std::fs::read_dir(path)?.next().is_none())
}

fn exit_of_io(error: &std::io::Error) -> Exit {
    if error.kind() == std::io::ErrorKind::NotFound { Exit::NotFound } else { Exit::Failure }
}

impl PlannedPut {
    /// Plans a file of `bytes` bytes as `key`.
    pub const fn file(path: PathBuf, key: String, bytes: u64) -> Self {
        Self { path, key, bytes, is_folder: false, file_time: None }
    }

    /// Sets when the file was last changed.
    pub fn with_file_time(self, file_time: Option<FileTime>) -> Self {
        Self { file_time, ..self }
    }

    /// Whether it is an empty folder.
    pub const fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// When the file was last changed.
    pub const fn file_time(&self) -> Option<FileTime> {
        self.file_time
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

#[cfg(test)]
mod tests;
