//! The steps of commands, for a run that takes several of them, like the demo.

use fulgurite_client::names::S3Url;
use fulgurite_client::s3::{Client, ListedObject};
use fulgurite_terminal::CommandFuture;

use crate::get::{self, GetJob, GetSummary};
use crate::put::{self, PlannedPut, PutJob, PutSummary};
use crate::restore::{self, RestoreCounts, RestoreJob};
use crate::{Failures, listing};

/// Puts everything planned.
pub fn put_all<'a>(
    job: &'a PutJob<'a>,
    planned: &'a [PlannedPut],
) -> CommandFuture<'a, (PutSummary, Failures)> {
    Box::pin(put::put_all(job, planned))
}

/// Fetches every object that is readable now.
pub fn get_all<'a>(
    job: &'a GetJob<'a>,
    objects: &'a [ListedObject],
) -> CommandFuture<'a, (GetSummary, Failures)> {
    Box::pin(get::get_all(job, objects))
}

/// Requests a restore of every key.
pub fn restore_all<'a>(
    job: &'a RestoreJob<'a>,
    keys: &'a [String],
) -> CommandFuture<'a, (RestoreCounts, Failures)> {
    Box::pin(restore::restore_all(job, keys))
}

/// Polls, with backoff, until none of the objects is archived without a copy.
pub fn wait_for_restore<'a>(
    client: &'a Client,
    url: &'a S3Url,
    is_recursive: bool,
    is_quiet: bool,
) -> CommandFuture<'a> {
    Box::pin(restore::wait_for_restore(client, url, is_recursive, is_quiet))
}

/// Lists every object whose key begins with `prefix`, in key order.
pub fn list_all<'a>(
    client: &'a Client,
    bucket: &'a str,
    prefix: &'a str,
) -> CommandFuture<'a, Vec<ListedObject>> {
    Box::pin(async move { Ok(listing::list_all(client, bucket, prefix).await?) })
}
