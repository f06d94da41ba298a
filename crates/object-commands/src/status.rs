//! `status s3://bucket/key`: shows class and restore state of an object, or of all objects in a
//! folder.

use std::collections::BTreeMap;

use fulgurite_client::names::S3Url;
use fulgurite_client::remote::RemoteArgs;
use fulgurite_client::s3::{ListScope, ListedObject, is_archived_class};
use fulgurite_terminal::output::{self, Output, pluralize};
use fulgurite_terminal::style::{self, Tone};
use serde::Serialize;
use serde_json::json;

use super::{add_restore_states, not_found};

/// Flags of `status`.
#[derive(Clone, Debug, clap::Args)]
pub struct StatusArgs {
    /// Object or folder: s3://bucket/key
    #[arg(value_name = "S3-URL")]
    url: S3Url,
    /// Only the counts
    #[arg(long, short)]
    summary: bool,
}

/// The restore state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Not in an archive class.
    Online,
    /// Archived: restore it first.
    Archived,
    /// A copy is being made.
    Restoring,
    /// A copy exists.
    Restored,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Archived => "archived",
            Self::Restoring => "restoring",
            Self::Restored => "restored",
        }
    }

    /// Returns the name as a column.
    fn padded(self) -> impl std::fmt::Display {
        let tone = match self {
            Self::Online | Self::Restored => Tone::Good,
            Self::Restoring => Tone::Notice,
            Self::Archived => Tone::Strong,
        };
        style::out(tone, format!("{:9}", self.name()))
    }
}

/// Returns the restore state of `object`.
pub(crate) fn state_of(object: &ListedObject) -> State {
    match &object.restore {
        _ if !is_archived_class(&object.class) => State::Online,
        None => State::Archived,
        Some(restore) if restore.in_progress => State::Restoring,
        Some(_) => State::Restored,
    }
}

/// Runs `status`.
pub(crate) async fn status(
    args: &StatusArgs,
    remote: &RemoteArgs,
    out: &Output,
) -> anyhow::Result<()> {
    let client = remote.client()?;
    let url = &args.url;
    let scope = ListScope { bucket: &url.bucket, prefix: &url.key, by_folder: false };
    let mut totals: BTreeMap<State, (u64, u64)> = BTreeMap::new();
    let mut token: Option<String> = None;
    loop {
        let mut page = client.list(scope, token.as_deref()).await?;
        add_restore_states(&client, &url.bucket, &mut page.objects).await?;
        for object in page.objects.iter().filter(|object| url.covers(&object.key)) {
            let total = totals.entry(state_of(object)).or_default();
            total.0 += 1;
            total.1 += object.bytes;
            if !args.summary {
                print(object, out)?;
            }
        }
        if page.next.is_none() {
            break;
        }
        token = page.next;
    }
    if totals.is_empty() && !url.key.is_empty() {
        return Err(not_found(url));
    }
    for (state, (objects, bytes)) in &totals {
        out.json(
            "summary",
            &json!({
                "state": state, "objects": objects, "bytes": bytes,
            }),
        )?;
        let count = pluralize(*objects, "object");
        out.text(format_args!("{}  {count}, {}", state.padded(), output::bytes(*bytes)))?;
    }
    Ok(())
}

fn print(object: &ListedObject, out: &Output) -> anyhow::Result<()> {
    let state = state_of(object);
    let expiry = object.restore.as_ref().and_then(|restore| restore.expiry.as_deref());
    out.json(
        "object",
        &json!({
            "key": object.key, "bytes": object.bytes, "class": object.class,
            "state": state, "expiry": expiry,
        }),
    )?;
    out.text(format_args!(
        "{}  {:12}  {:24}  {:>10}  {}",
        state.padded(),
        object.class,
        expiry.unwrap_or("-"),
        output::bytes(object.bytes),
        object.key
    ))
}
