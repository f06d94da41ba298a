//! `ls [s3://bucket/prefix]`: lists buckets, or the objects and folders at a prefix.

use fulgurite_client::names::S3Url;
use fulgurite_client::remote::RemoteArgs;
use fulgurite_client::s3::{Client, ListScope, ListedObject};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, bytes, hint, note};
use fulgurite_terminal::style::{self, Tone};
use serde_json::json;

/// Flags of `ls`.
#[derive(Clone, Debug, clap::Args)]
pub struct LsArgs {
    /// Bucket or prefix: s3://bucket/prefix; without it, all buckets
    #[arg(value_name = "S3-URL")]
    url: Option<S3Url>,
    /// All objects below the prefix, not only those of one folder
    #[arg(long, short)]
    recursive: bool,
}

/// Runs `ls`.
pub(crate) async fn ls(args: &LsArgs, remote: &RemoteArgs, out: &Output) -> anyhow::Result<()> {
    let client = remote.client()?;
    let Some(url) = &args.url else { return list_buckets(&client, out).await };
    let scope = ListScope { bucket: &url.bucket, prefix: &url.key, by_folder: !args.recursive };
    let mut token: Option<String> = None;
    let (mut objects, mut prefixes) = (0, Vec::new());
    loop {
        let page = client.list(scope, token.as_deref()).await?;
        for prefix in page.prefixes {
            out.json("prefix", &json!({"prefix": prefix}))?;
            let name = style::out(Tone::Strong, &prefix);
            out.text(format_args!("{:>10}  {:12}  {:24}  {name}", "-", "", ""))?;
            prefixes.push(prefix);
        }
        for object in &page.objects {
            print(object, out)?;
        }
        objects += page.objects.len();
        if page.next.is_none() {
            break;
        }
        token = page.next;
    }
    out.flush()?;
    explain(url, objects, &prefixes, out)
}

/// Suggests a better command if a listing is probably not what was meant.
fn explain(url: &S3Url, objects: usize, prefixes: &[String], out: &Output) -> anyhow::Result<()> {
    let bucket = &url.bucket;
    if objects == 0 && prefixes.is_empty() {
        if !url.key.is_empty() {
            let message =
                format!("{url} does not exist; fulgurite ls s3://{bucket} shows what does");
            return Err(ExitError::new(Exit::NotFound, message).into());
        }
        if !out.is_json() {
            note(hint(format_args!("s3://{bucket} is empty: fulgurite put FILE s3://{bucket}")));
        }
    }
    if objects == 0 && prefixes == [format!("{}/", url.key)] && !out.is_json() {
        note(hint(format_args!("a folder: fulgurite ls {url}/ shows what is in it")));
    }
    Ok(())
}

async fn list_buckets(client: &Client, out: &Output) -> anyhow::Result<()> {
    let buckets = client.list_buckets().await?;
    for bucket in &buckets {
        out.json("bucket", &json!({"name": bucket.name, "created": bucket.created}))?;
        out.text(format_args!("{:24}  s3://{}", bucket.created, bucket.name))?;
    }
    if buckets.is_empty() && !out.is_json() {
        note(hint("no buckets yet: fulgurite mb s3://NAME makes one"));
    }
    Ok(())
}

fn print(object: &ListedObject, out: &Output) -> anyhow::Result<()> {
    out.json(
        "object",
        &json!({
            "key": object.key, "bytes": object.bytes, "class": object.class,
            "modified": object.modified, "etag": object.etag,
        }),
    )?;
    out.text(format_args!(
        "{:>10}  {:12}  {:24}  {}",
        bytes(object.bytes),
        object.class,
        object.modified,
        object.key
    ))
}
