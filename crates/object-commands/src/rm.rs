//! `rm`, `mb` and `rb`: delete objects, make buckets, delete buckets.

use fulgurite_client::names::S3Url;
use fulgurite_client::remote::RemoteArgs;
use fulgurite_client::s3::Client;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, hint, note, pluralize};
use fulgurite_terminal::progress::count_bar;
use serde_json::json;

use super::{ADD_RECURSIVE, Failures, list_covered, not_found, require_object};

/// Flags of `rm`.
#[derive(Clone, Debug, clap::Args)]
pub struct RmArgs {
    /// Object, or folder with --recursive: s3://bucket/key
    #[arg(value_name = "S3-URL")]
    url: S3Url,
    /// Every object in the folder; at a bucket, all of it
    #[arg(long, short)]
    recursive: bool,
}

/// Flags of `mb` and `rb`.
#[derive(Clone, Debug, clap::Args)]
pub struct BucketArgs {
    /// Bucket: s3://bucket
    #[arg(value_name = "S3-URL")]
    url: S3Url,
}

/// Runs `rm`.
pub(crate) async fn rm(args: &RmArgs, remote: &RemoteArgs, out: &Output) -> anyhow::Result<()> {
    let client = remote.client()?;
    let url = &args.url;
    if args.recursive {
        return remove_prefix(&client, url, out).await;
    }
    if url.key.is_empty() {
        let message = format!("{url} is a bucket: add --recursive, or use rb once it is empty");
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    // DELETE of a missing key succeeds in S3; a user wants to know about a typo.
    require_object(&client, url, ADD_RECURSIVE).await?;
    client.delete(&url.bucket, &url.key).await?;
    out.json("deleted", &json!({"key": url.key}))?;
    out.text(format_args!("deleted {url}"))
}

async fn remove_prefix(client: &Client, url: &S3Url, out: &Output) -> anyhow::Result<()> {
    let objects = list_covered(client, url).await?;
    if objects.is_empty() && !url.key.is_empty() {
        return Err(not_found(url));
    }
    let keys: Vec<String> = objects.into_iter().map(|object| object.key).collect();
    let bar = count_bar("rm", keys.len() as u64, out.is_json());
    let mut failures = Failures::default();
    for batch in keys.chunks(fulgurite_client::limits::DELETE_KEYS_MAX) {
        let undeleted = client.delete_many(&url.bucket, batch).await?;
        for key in batch.iter().filter(|key| !undeleted.iter().any(|f| f.key == **key)) {
            out.json("deleted", &json!({"key": key}))?;
        }
        for failure in undeleted {
            let error = anyhow::anyhow!("{}: {}", failure.code, failure.message);
            failures.add(&bar, &failure.key, &error);
        }
        bar.inc(batch.len() as u64);
    }
    bar.finish_and_clear();
    let done = keys.len() as u64 - failures.count();
    out.json("summary", &json!({"deleted": done, "failed": failures.count()}))?;
    out.text(format_args!("deleted {}", pluralize(done, "object")))?;
    if url.key.is_empty() && failures.count() == 0 && !out.is_json() {
        out.flush()?;
        let bucket = &url.bucket;
        note(hint(format_args!(
            "the bucket is still there: fulgurite rb s3://{bucket} deletes it"
        )));
    }
    failures.into_result("deleted", done)
}

/// Runs `mb`.
pub(crate) async fn make_bucket(
    args: &BucketArgs,
    remote: &RemoteArgs,
    out: &Output,
) -> anyhow::Result<()> {
    let bucket = bucket_of(&args.url)?;
    let is_new = remote.client()?.create_bucket(bucket).await?;
    out.json("bucket", &json!({"name": bucket, "is_new": is_new}))?;
    out.text(format_args!("{} s3://{bucket}", if is_new { "created" } else { "already exists:" }))
}

/// Runs `rb`.
pub(crate) async fn remove_bucket(
    args: &BucketArgs,
    remote: &RemoteArgs,
    out: &Output,
) -> anyhow::Result<()> {
    let bucket = bucket_of(&args.url)?;
    remote.client()?.delete_bucket(bucket).await?;
    out.json("deleted", &json!({"bucket": bucket}))?;
    out.text(format_args!("deleted s3://{bucket}"))
}

fn bucket_of(url: &S3Url) -> anyhow::Result<&str> {
    if url.key.is_empty() {
        return Ok(&url.bucket);
    }
    Err(ExitError::new(Exit::Usage, format!("{url} names an object; write s3://bucket")).into())
}
