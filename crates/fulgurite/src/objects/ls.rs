//! `ls [s3://bucket/prefix]`: buckets, or the objects and folders at a prefix.

use fulgurite_units::ByteCount;
use serde_json::json;

use crate::names::S3Url;
use crate::output::Output;
use crate::remote::RemoteArgs;
use crate::s3::{Client, ListScope, ListedObject};

/// Flags of `ls`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LsArgs {
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
    loop {
        let page = client.list(scope, token.as_deref()).await?;
        for prefix in page.prefixes {
            out.json(&json!({"type": "prefix", "prefix": prefix}))?;
            out.text(format_args!("{:>10}  {:12}  {:20}  {prefix}", "-", "", ""))?;
        }
        for object in &page.objects {
            print(object, out)?;
        }
        if page.next.is_none() {
            return Ok(());
        }
        token = page.next;
    }
}

async fn list_buckets(client: &Client, out: &Output) -> anyhow::Result<()> {
    for bucket in client.list_buckets().await? {
        out.json(&json!({"type": "bucket", "name": bucket.name, "created": bucket.created}))?;
        out.text(format_args!("{:24}  s3://{}", bucket.created, bucket.name))?;
    }
    Ok(())
}

fn print(object: &ListedObject, out: &Output) -> anyhow::Result<()> {
    out.json(&json!({
        "type": "object", "key": object.key, "bytes": object.bytes, "class": object.class,
        "modified": object.modified, "etag": object.etag,
    }))?;
    out.text(format_args!(
        "{:>10}  {:12}  {:20}  {}",
        ByteCount::new(object.bytes).to_string(),
        object.class,
        object.modified,
        object.key
    ))
}
