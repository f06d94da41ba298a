//! `restore s3://bucket/key`: requests readable copies of archived objects, and waits for them.

use std::time::Instant;

use fulgurite_client::names::S3Url;
use fulgurite_client::remote::RemoteArgs;
use fulgurite_client::s3::{Client, RestoreResponse, S3Error, is_archived_class};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{self, Output, pluralize};
use fulgurite_terminal::progress::count_bar;
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::json;

use super::status::{State, state_of};
use super::{
    ADD_RECURSIVE, Failures, add_restore_states, for_each, list_covered, not_found,
    parse_transfers, require_object,
};
use crate::limits;

/// Flags of `restore`.
#[derive(Clone, Debug, clap::Args)]
pub struct RestoreArgs {
    /// Object, or folder with --recursive: s3://bucket/key
    #[arg(value_name = "S3-URL")]
    url: S3Url,
    /// Every archived object in the folder; at a bucket, all of it
    #[arg(long, short)]
    recursive: bool,
    /// Days the copies stay
    #[arg(long, value_name = "N", default_value_t = 7,
          value_parser = clap::value_parser!(u32).range(1..))]
    days: u32,
    /// Restore tier
    #[arg(long, value_enum, default_value_t = RestoreTier::Standard)]
    tier: RestoreTier,
    /// Wait until every copy is ready
    #[arg(long)]
    wait: bool,
    /// Requests sent at one time
    #[arg(long, value_name = "N", default_value_t = limits::TRANSFERS_DEFAULT,
          value_parser = parse_transfers)]
    transfers: usize,
}

/// The restore tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RestoreTier {
    /// Slowest and cheapest.
    Bulk,
    /// The default.
    Standard,
    /// Fastest; most endpoints reject it for DEEP_ARCHIVE.
    Expedited,
}

impl RestoreTier {
    const fn name(self) -> &'static str {
        match self {
            Self::Bulk => "Bulk",
            Self::Standard => "Standard",
            Self::Expedited => "Expedited",
        }
    }
}

/// The results of the requests of a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RestoreCounts {
    /// Copies that will be made.
    pub accepted: u64,
    /// Copies that exist and are kept longer.
    pub extended: u64,
    /// Restores that were running already.
    pub in_progress: u64,
    /// Objects that need no restore.
    pub not_archived: u64,
}

impl RestoreCounts {
    /// Number of all requests that succeeded.
    pub const fn total(self) -> u64 {
        self.accepted + self.extended + self.in_progress + self.not_archived
    }
}

/// The parameters of a restore, except the list.
#[derive(Clone, Copy, Debug)]
pub struct RestoreJob<'a> {
    /// Client.
    pub client: &'a Client,
    /// Bucket.
    pub bucket: &'a str,
    /// Days the copies stay.
    pub days: u32,
    /// The restore tier.
    pub tier: RestoreTier,
    /// Requests at one time.
    pub transfers: usize,
    /// Where results are printed.
    pub out: &'a Output,
}

/// Runs `restore`.
pub(crate) async fn restore(
    args: &RestoreArgs,
    remote: &RemoteArgs,
    out: &Output,
) -> anyhow::Result<()> {
    let client = remote.client()?;
    let url = &args.url;
    let (keys, plain) = find(&client, args).await?;
    let started = Instant::now();
    let job = RestoreJob {
        client: &client,
        bucket: &url.bucket,
        days: args.days,
        tier: args.tier,
        transfers: args.transfers,
        out,
    };
    let (mut counts, failures) = restore_all(&job, &keys).await?;
    counts.not_archived += plain;
    if args.wait && failures.count() == 0 {
        wait_for_restore(&client, url, args.recursive, out.is_json()).await?;
    }
    let seconds = started.elapsed().as_secs_f64();
    out.json(
        "summary",
        &json!({
            "accepted": counts.accepted, "extended": counts.extended,
            "in_progress": counts.in_progress, "not_archived": counts.not_archived,
            "failed": failures.count(), "waited": args.wait, "seconds": seconds,
        }),
    )?;
    out.text(format_args!(
        "{} accepted, {} extended, {} already running, {} not archived",
        counts.accepted, counts.extended, counts.in_progress, counts.not_archived
    ))?;
    if args.wait && failures.count() == 0 {
        out.text(format_args!("all copies are ready after {}", output::seconds(seconds)))?;
    }
    failures.into_result("restored", counts.total())
}

/// Returns the archived keys that are meant, and how many objects need no restore.
async fn find(client: &Client, args: &RestoreArgs) -> anyhow::Result<(Vec<String>, u64)> {
    let url = &args.url;
    if !args.recursive {
        if url.key.is_empty() {
            let message = format!("{url} is a bucket: add --recursive");
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        require_object(client, url, ADD_RECURSIVE).await?;
        return Ok((vec![url.key.clone()], 0));
    }
    let objects = list_covered(client, url).await?;
    if objects.is_empty() && !url.key.is_empty() {
        return Err(not_found(url));
    }
    let total = objects.len();
    let archived = objects.into_iter().filter(|object| is_archived_class(&object.class));
    let keys: Vec<String> = archived.map(|object| object.key).collect();
    let plain = (total - keys.len()) as u64;
    Ok((keys, plain))
}

/// Requests a restore of every key.
pub(crate) async fn restore_all(
    job: &RestoreJob<'_>,
    keys: &[String],
) -> anyhow::Result<(RestoreCounts, Failures)> {
    let bar = count_bar("request", keys.len() as u64, job.out.is_json());
    let mut counts = RestoreCounts::default();
    let mut failures = Failures::default();
    let work = |key| request(job, key);
    for_each(keys.iter().map(String::as_str), job.transfers, work, |(key, answer)| {
        bar.inc(1);
        let state = match answer {
            Ok(RestoreResponse::Accepted) => {
                counts.accepted += 1;
                "accepted"
            }
            Ok(RestoreResponse::Extended) => {
                counts.extended += 1;
                "extended"
            }
            Ok(RestoreResponse::InProgress) => {
                counts.in_progress += 1;
                "in_progress"
            }
            Ok(RestoreResponse::NotArchived) => {
                counts.not_archived += 1;
                "not_archived"
            }
            Err(error) => {
                failures.add(&bar, key, &error.into());
                return Ok(());
            }
        };
        job.out.json("object", &json!({"key": key, "state": state}))
    })
    .await?;
    bar.finish_and_clear();
    Ok((counts, failures))
}

async fn request<'k>(
    job: &RestoreJob<'_>,
    key: &'k str,
) -> (&'k str, Result<RestoreResponse, S3Error>) {
    (key, job.client.restore(job.bucket, key, job.days, job.tier.name()).await)
}

/// Polls, with backoff, until none of the objects is archived without a copy.
pub(crate) async fn wait_for_restore(
    client: &Client,
    url: &S3Url,
    is_recursive: bool,
    is_quiet: bool,
) -> anyhow::Result<()> {
    wait(is_quiet, async || states(client, url, is_recursive).await).await
}

/// Does the same for `keys` of a bucket.
pub(crate) async fn wait_for_keys(
    client: &Client,
    bucket: &str,
    keys: &[String],
    is_quiet: bool,
) -> anyhow::Result<()> {
    let mut waiting: Vec<String> = keys.to_vec();
    let total = waiting.len();
    let poll = async || {
        let head = |key: String| async move {
            let head = client.head(bucket, &key).await;
            (key, head)
        };
        let (mut states, mut left) = (Vec::new(), Vec::new());
        for_each(std::mem::take(&mut waiting), limits::TRANSFERS_DEFAULT, head, |(key, head)| {
            let state = state_of(&head?.into_listed(&key));
            if matches!(state, State::Restoring | State::Archived) {
                left.push(key);
            }
            states.push(state);
            Ok(())
        })
        .await?;
        waiting = left;
        // Restored objects are not polled again, but count.
        states.resize(total, State::Restored);
        Ok(states)
    };
    wait(is_quiet, poll).await
}

async fn wait(
    is_quiet: bool,
    mut poll: impl AsyncFnMut() -> anyhow::Result<Vec<State>>,
) -> anyhow::Result<()> {
    let bar = count_bar("restore", 0, is_quiet);
    let mut interval = limits::POLL_FIRST;
    let mut was_stuck = false;
    loop {
        let states = poll().await?;
        let count = |state| states.iter().filter(|s| **s == state).count();
        let (running, archived) = (count(State::Restoring), count(State::Archived));
        show(&bar, states.len(), running + archived);
        if running + archived == 0 {
            bar.finish_and_clear();
            return Ok(());
        }
        // A listing may lag behind by one poll; two in a row without a running restore mean
        // failure.
        let is_stuck = running == 0;
        if is_stuck && was_stuck {
            bar.finish_and_clear();
            let objects = pluralize(archived as u64, "restore");
            let message = format!("{objects} ended without a copy; see the server's log");
            return Err(ExitError::new(Exit::Failure, message).into());
        }
        was_stuck = is_stuck;
        tokio::time::sleep(interval).await;
        interval = (interval * 3 / 2).min(limits::POLL_MAX);
    }
}

/// Returns the state of every archived object that is meant.
async fn states(client: &Client, url: &S3Url, is_recursive: bool) -> anyhow::Result<Vec<State>> {
    let objects = if is_recursive {
        let mut objects = list_covered(client, url).await?;
        add_restore_states(client, &url.bucket, &mut objects).await?;
        objects
    } else {
        let head = client.head(&url.bucket, &url.key).await?;
        vec![head.into_listed(&url.key)]
    };
    Ok(objects.iter().map(state_of).filter(|state| *state != State::Online).collect())
}

fn show(bar: &ProgressBar, total: usize, left: usize) {
    bar.set_length(total as u64);
    bar.set_position((total - left) as u64);
    bar.set_message(format!("{} left", pluralize(left as u64, "object")));
}
