//! `cat s3://bucket/key...`: writes objects to standard output, one after the other.
//!
//! Bytes are written before their checksum is known: a mismatch ends the command with exit code 8,
//! which the reader of the pipe must check.

use std::fs::File;
use std::os::fd::AsFd as _;

use anyhow::Context as _;
use fulgurite_client::names::S3Url;
use fulgurite_client::remote::RemoteArgs;
use fulgurite_client::s3::{Client, S3Error, S3ErrorKind};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, is_stderr_terminal};
use fulgurite_terminal::progress::bytes_bar;

use super::{not_found, require_object};

/// What to do instead with a folder.
const NAME_ONE_OBJECT: &str = "name one object, or fetch the folder with get";

/// Flags of `cat`.
#[derive(Clone, Debug, clap::Args)]
pub struct CatArgs {
    /// Objects: s3://bucket/key
    #[arg(required = true, value_name = "S3-URL")]
    urls: Vec<S3Url>,
}

/// Runs `cat`.
pub(crate) async fn cat(args: &CatArgs, remote: &RemoteArgs, out: &Output) -> anyhow::Result<()> {
    let client = remote.client()?;
    for url in &args.urls {
        print_object(&client, url, out).await?;
    }
    Ok(())
}

/// Writes one object to standard output.
pub(super) async fn print_object(client: &Client, url: &S3Url, out: &Output) -> anyhow::Result<()> {
    if out.is_json() {
        let message = "standard output takes the object's bytes: leave --json out";
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    if url.key.is_empty() {
        let message = format!("{url} is a bucket: write s3://{}/KEY", url.bucket);
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    let stdout = std::io::stdout();
    // On a terminal the bytes themselves are the progress.
    let is_quiet = std::io::IsTerminal::is_terminal(&stdout) || !is_stderr_terminal();
    let sink = stdout.as_fd().try_clone_to_owned().context("cannot write to standard output")?;
    let bar = bytes_bar("get", 0, is_quiet);
    if !is_quiet {
        bar.set_length(require_object(client, url, NAME_ONE_OBJECT).await?.bytes);
    }
    let result = client.get_into(&url.bucket, &url.key, File::from(sink), &|n| bar.inc(n)).await;
    bar.finish_and_clear();
    match result {
        // The reader has the lines it wanted.
        Ok(_) | Err(S3Error::ReaderGone) => Ok(()),
        Err(error) if error.code() == "NoSuchKey" => {
            require_object(client, url, NAME_ONE_OBJECT).await?;
            Err(not_found(url))
        }
        Err(error) => Err(explain_archived(error, url)),
    }
}

/// Explains what to do about an object that is on glass.
pub(super) fn explain_archived(error: S3Error, url: &S3Url) -> anyhow::Error {
    if error.kind() != S3ErrorKind::Archived {
        return error.into();
    }
    let message = format!("{url} is archived; first run: fulgurite restore --wait {url}");
    ExitError::new(Exit::Archived, message).into()
}
