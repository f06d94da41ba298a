//! From a configured address to what speaks with the store behind it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Certificate, ClientOptions, ObjectStore, RetryConfig};

use crate::directory::make_whole_path;
use crate::limits::{
    TIER_CONNECT_SECONDS, TIER_REQUEST_SECONDS, TIER_TRIES_MAX, TIER_TRIES_SECONDS,
};
use crate::objects::classes::TierName;
use crate::tiers::MoveWhen;
use crate::{ArchiveError, Result};

/// A tier of objects, as it is configured.
#[derive(Clone, Default)]
pub struct TierOptions {
    /// `file:///folder`, `s3://bucket/prefix`, `az://container/prefix`, `gs://bucket/prefix`.
    pub url: String,
    /// What else the store needs to know, under the names that the crate `object_store` has for it
    /// (`aws_endpoint`, `aws_region`, `aws_access_key_id`, ...). Environment variables of these
    /// names, in capitals, say what is not here.
    pub options: BTreeMap<String, String>,
    /// Certificates (PEM) that are believed besides those of the system.
    pub ca: Option<PathBuf>,
    /// The store itself, where the program brings one of its own (docs/design/adding-a-tier.md).
    /// Then nothing is built from the rest, and `url` only names it.
    pub store: Option<Arc<dyn ObjectStore>>,
    /// When staged bodies are brought to it.
    pub when: MoveWhen,
    /// Whether bodies have their sealed entries among their attributes, too. Not every store takes
    /// so many bytes of them.
    pub with_entries: bool,
    /// Bodies that are brought to it at a time; 0 for the usual number. More where a put waits for
    /// something other than the machine.
    pub bodies_at_once: usize,
    /// Restores of each retrieval that it is asked for at a time; 0 for the usual number.
    pub restores_at_once: usize,
}

impl fmt::Debug for TierOptions {
    /// Without the values, among which secrets are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.options.keys().collect();
        let Self { url, ca, store, .. } = self;
        f.debug_struct("TierOptions")
            .field("url", url)
            .field("options", &names)
            .field("ca", ca)
            .field("store", store)
            .finish()
    }
}

/// Where a tier is.
#[derive(Debug)]
pub(super) enum Address {
    /// In a store, from this path on. Nothing was asked of it yet.
    Bucket(Arc<dyn ObjectStore>, Path),
    /// A directory, which need not be there now.
    Directory(PathBuf),
}

/// What a configuration means.
pub(super) fn address(name: &TierName, options: &TierOptions) -> Result<Address> {
    let refuse = |why: String| ArchiveError::InvalidArgument {
        what: format!("tier \"{name}\" at \"{}\": {why}", options.url),
    };
    if let Some(store) = &options.store {
        return Ok(Address::Bucket(Arc::clone(store), Path::default()));
    }
    let Some((scheme, rest)) = options.url.split_once("://") else {
        return Err(refuse("an address begins with file://, s3://, az:// or gs://".to_owned()));
    };
    if scheme == "file" {
        if let Some(key) = options.options.keys().next() {
            return Err(refuse(format!("a directory has no option \"{key}\"")));
        }
        if !rest.starts_with('/') {
            return Err(refuse("a directory is named from the root: file:///folder".to_owned()));
        }
        return Ok(Address::Directory(PathBuf::from(rest)));
    }
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(refuse("it names no bucket".to_owned()));
    }
    let client = client_options(options).map_err(refuse)?;
    // Options of the connection are replaced as a whole: the configured ones come behind.
    let store: object_store::Result<Arc<dyn ObjectStore>> = match scheme {
        "s3" => configured(
            AmazonS3Builder::from_env().with_client_options(client).with_bucket_name(bucket),
            options,
            |builder, key: AmazonS3ConfigKey, value| builder.with_config(key, value),
        )
        .and_then(|builder| Ok(Arc::new(builder.with_retry(retry()).build()?) as _)),
        "az" => configured(
            MicrosoftAzureBuilder::from_env()
                .with_client_options(client)
                .with_container_name(bucket),
            options,
            |builder, key: AzureConfigKey, value| builder.with_config(key, value),
        )
        .and_then(|builder| Ok(Arc::new(builder.with_retry(retry()).build()?) as _)),
        "gs" => configured(
            GoogleCloudStorageBuilder::from_env()
                .with_client_options(client)
                .with_bucket_name(bucket),
            options,
            |builder, key: GoogleConfigKey, value| builder.with_config(key, value),
        )
        .and_then(|builder| Ok(Arc::new(builder.with_retry(retry()).build()?) as _)),
        other => return Err(refuse(format!("\"{other}\" is none of file, s3, az and gs"))),
    };
    let store = store.map_err(|error| refuse(error.to_string()))?;
    let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|e| refuse(e.to_string()))?;
    Ok(Address::Bucket(store, prefix))
}

/// What writes to a directory and syncs it, folders included. It is made if it may be.
pub(super) fn directory(
    path: &std::path::Path,
    may_create: bool,
) -> std::result::Result<Arc<dyn ObjectStore>, String> {
    if may_create {
        make_whole_path(path).map_err(|error| error.to_string())?;
    }
    let store = LocalFileSystem::new_with_prefix(path).map_err(|error| error.to_string())?;
    Ok(Arc::new(store.with_fsync(true)))
}

/// The builder with every option that is configured.
fn configured<B, K: FromStr<Err = object_store::Error>>(
    builder: B,
    options: &TierOptions,
    with: impl Fn(B, K, &str) -> B,
) -> object_store::Result<B> {
    options.options.iter().try_fold(builder, |builder, (key, value)| {
        Ok(with(builder, key.to_ascii_lowercase().parse()?, value))
    })
}

fn client_options(options: &TierOptions) -> std::result::Result<ClientOptions, String> {
    let client = ClientOptions::new()
        .with_connect_timeout(Duration::from_secs(TIER_CONNECT_SECONDS))
        .with_timeout(Duration::from_secs(TIER_REQUEST_SECONDS));
    let Some(path) = &options.ca else { return Ok(client) };
    let shown = path.display();
    let pem = std::fs::read(path).map_err(|error| format!("cannot read \"{shown}\": {error}"))?;
    let found = Certificate::from_pem_bundle(&pem)
        .map_err(|error| format!("\"{shown}\" holds no certificates: {error}"))?;
    Ok(found.into_iter().fold(client, ClientOptions::with_root_certificate))
}

/// Short: whoever asks a tier comes again, and says meanwhile which one does not answer.
fn retry() -> RetryConfig {
    let retry_timeout = Duration::from_secs(TIER_TRIES_SECONDS);
    RetryConfig { max_retries: TIER_TRIES_MAX, retry_timeout, ..RetryConfig::default() }
}
