//! `cp` and `mv`: server-side copies of objects to other names; no byte passes through the client.
//!
//! A folder keeps its name; with a trailing slash only its contents are meant, as with `put`. `mv`
//! deletes a source once its copy exists with as many bytes and the source is still the object that
//! was copied. S3 has no other rename: the archive gives the copy an encryption key of its own and
//! destroys the old one.

use std::collections::BTreeSet;
use std::time::Instant;

use fulgurite_client::names::S3Url;
use fulgurite_client::remote::RemoteArgs;
use fulgurite_client::s3::{Client, CopySource, ListedObject};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{self, Output, pluralize};
use fulgurite_terminal::progress::bytes_bar;
use indicatif::ProgressBar;
use serde_json::json;

use super::cat::explain_archived;
use super::{ADD_RECURSIVE, Failures, for_each, list_all, parse_transfers, require_object};
use crate::limits;

/// Flags of `cp` and `mv`.
#[derive(Clone, Debug, clap::Args)]
pub struct CopyArgs {
    /// Object, or folder with --recursive: s3://bucket/key
    #[arg(value_name = "FROM")]
    from: S3Url,
    /// Key, or folder when it ends in a slash: s3://bucket/key
    #[arg(value_name = "TO")]
    to: S3Url,
    /// Every object in the folder; at a bucket, all of it
    #[arg(long, short)]
    recursive: bool,
    /// Storage class of the copies; without it, that of each source
    #[arg(long, value_name = "CLASS")]
    storage_class: Option<String>,
    /// Objects copied at one time
    #[arg(long, value_name = "N", default_value_t = limits::TRANSFERS_DEFAULT,
          value_parser = parse_transfers)]
    transfers: usize,
}

/// Whether the sources are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Copy,
    Move,
}

impl Verb {
    const fn past_participle(self) -> &'static str {
        match self {
            Self::Copy => "copied",
            Self::Move => "moved",
        }
    }
}

/// An object and the key of its copy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlannedCopy {
    from: ListedObject,
    to: String,
}

/// Runs `cp`.
pub(crate) async fn copy(args: &CopyArgs, remote: &RemoteArgs, out: &Output) -> anyhow::Result<()> {
    run(Verb::Copy, args, remote, out).await
}

/// Runs `mv`.
pub(crate) async fn move_objects(
    args: &CopyArgs,
    remote: &RemoteArgs,
    out: &Output,
) -> anyhow::Result<()> {
    run(Verb::Move, args, remote, out).await
}

async fn run(verb: Verb, args: &CopyArgs, remote: &RemoteArgs, out: &Output) -> anyhow::Result<()> {
    let client = remote.client()?;
    let (from, to) = (&args.from, &args.to);
    let planned = if args.recursive {
        let mut objects = list_all(&client, &from.bucket, &from.folder_prefix()).await?;
        if objects.is_empty() && !from.key.is_empty() {
            // The folder may be a single object.
            objects
                .push(require_object(&client, from, ADD_RECURSIVE).await?.into_listed(&from.key));
            plan_one(objects.remove(0), to)
        } else {
            plan_folder(objects, from, to)
        }
    } else {
        if from.key.is_empty() {
            let message = format!("{from} is a bucket: add --recursive");
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        plan_one(require_object(&client, from, ADD_RECURSIVE).await?.into_listed(&from.key), to)
    };
    if from.bucket == to.bucket {
        check_apart(verb, &planned, args.storage_class.is_some())?;
    }
    let started = Instant::now();
    let bar = bytes_bar("copy", planned.iter().map(|p| p.from.bytes).sum(), out.is_json());
    let (mut objects, mut bytes, mut failures) = (0, 0, Failures::default());
    let work = |item| copy_with_progress(verb, &client, args, item, &bar);
    for_each(&planned, args.transfers, work, |(item, result)| {
        match result {
            Ok(etag) => {
                objects += 1;
                bytes += item.from.bytes;
                out.json(
                    "object",
                    &json!({
                        "from": item.from.key, "key": item.to,
                        "bytes": item.from.bytes, "etag": etag,
                    }),
                )?;
            }
            Err(error) => failures.add(&bar, &item.from.key, &error),
        }
        Ok(())
    })
    .await?;
    bar.finish_and_clear();
    let seconds = started.elapsed().as_secs_f64();
    out.json(
        "summary",
        &json!({
            "objects": objects, "bytes": bytes, "seconds": seconds,
            "failed": failures.count(),
        }),
    )?;
    let (count, took) = (pluralize(objects, "object"), output::seconds(seconds));
    out.text(format_args!(
        "{} {count}, {} in {took}",
        verb.past_participle(),
        output::bytes(bytes)
    ))?;
    failures.into_result(verb.past_participle(), objects)
}

async fn copy_with_progress<'p>(
    verb: Verb,
    client: &Client,
    args: &CopyArgs,
    item: &'p PlannedCopy,
    bar: &ProgressBar,
) -> (&'p PlannedCopy, anyhow::Result<String>) {
    let result = copy_one(verb, client, args, item).await;
    bar.inc(item.from.bytes);
    (item, result)
}

async fn copy_one(
    verb: Verb,
    client: &Client,
    args: &CopyArgs,
    item: &PlannedCopy,
) -> anyhow::Result<String> {
    let (bucket, from) = (&args.from.bucket, &item.from);
    let source = CopySource { bucket, key: &from.key, bytes: from.bytes, etag: &from.etag };
    let class = args.storage_class.as_deref().unwrap_or(&from.class);
    let url = S3Url { bucket: bucket.clone(), key: from.key.clone() };
    let etag = client
        .copy(source, &args.to.bucket, &item.to, class)
        .await
        .map_err(|error| explain_archived(error, &url))?;
    if verb == Verb::Copy {
        return Ok(etag);
    }
    let copy = client.head(&args.to.bucket, &item.to).await?;
    if copy.bytes != from.bytes {
        let message =
            format!("the copy has {} bytes, not {}: the source is kept", copy.bytes, from.bytes);
        return Err(ExitError::new(Exit::Corrupt, message).into());
    }
    // Between this check and the deletion the source may still be overwritten: S3 cannot exclude
    // that.
    if client.head(bucket, &from.key).await?.etag != from.etag {
        let message = "the source was overwritten while it was copied: it is kept";
        return Err(ExitError::new(Exit::Failure, message).into());
    }
    client.delete(bucket, &from.key).await?;
    Ok(etag)
}

/// Plans the copy of one object.
fn plan_one(from: ListedObject, to: &S3Url) -> Vec<PlannedCopy> {
    let name = from.key.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&from.key);
    let to = if to.key.is_empty() || to.key.ends_with('/') {
        format!("{}{name}", to.key)
    } else {
        to.key.clone()
    };
    vec![PlannedCopy { from, to }]
}

/// Plans the copies of a folder.
fn plan_folder(objects: Vec<ListedObject>, from: &S3Url, to: &S3Url) -> Vec<PlannedCopy> {
    let folder = from.folder_prefix();
    // `a/b` keeps `b/..`; `a/b/` and a whole bucket keep only what is below.
    let strip = match from.key.rfind('/') {
        _ if folder == from.key => folder.len(),
        Some(slash) => slash + 1,
        None => 0,
    };
    let prefix = to.folder_prefix();
    let planned = objects.into_iter().map(|from| {
        let to = format!("{prefix}{}", &from.key[strip..]);
        PlannedCopy { from, to }
    });
    planned.filter(|planned| !planned.to.is_empty()).collect()
}

/// Checks that within one bucket no copy overwrites a source: the source would be lost before its
/// turn, or deleted after it.
fn check_apart(verb: Verb, planned: &[PlannedCopy], has_class: bool) -> anyhow::Result<()> {
    let sources: BTreeSet<&str> = planned.iter().map(|item| item.from.key.as_str()).collect();
    for item in planned {
        // A copy onto itself in another class is how S3 changes a class.
        let is_class_change = verb == Verb::Copy && has_class && item.to == item.from.key;
        if !is_class_change && sources.contains(item.to.as_str()) {
            if item.to == item.from.key {
                let message = format!("\"{}\" is both source and target", item.to);
                return Err(ExitError::new(Exit::Usage, message).into());
            }
            let message = format!(
                "\"{}\" would be overwritten by the copy of \"{}\" before it is {} itself",
                item.to,
                item.from.key,
                verb.past_participle()
            );
            return Err(ExitError::new(Exit::Usage, message).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
