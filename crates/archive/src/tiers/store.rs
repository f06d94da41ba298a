//! Creates the client of a store from a configured address.

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

use crate::directory::make_durable_path;
use crate::limits::{
    TIER_CONNECT_SECONDS, TIER_REQUEST_SECONDS, TIER_TRIES_MAX, TIER_TRIES_SECONDS,
};
use crate::model::classes::TierName;
use crate::tiers::MovePolicy;
use crate::{ArchiveError, Result};

/// Configuration of a tier of objects.
#[derive(Clone, Default)]
pub struct TierOptions {
    /// `file:///folder`, `s3://bucket/prefix`, `az://container/prefix`, `gs://bucket/prefix`.
    pub url: String,
    /// Further options of the store, named as in the crate `object_store` (`aws_endpoint`,
    /// `aws_region`, `aws_access_key_id`, ...). Environment variables with these names in capitals
    /// are the defaults.
    pub options: BTreeMap<String, String>,
    /// Certificates (PEM) to trust besides those of the system.
    pub ca: Option<PathBuf>,
    /// A store that the program itself provides (docs/design/adding-a-tier.md). The other options
    /// are not used then, and `url` is only a name.
    pub store: Option<Arc<dyn ObjectStore>>,
    /// The id of that store, if it has one: it is recorded with the tier's name, and a start with
    /// the store of another tier is refused.
    pub store_id: Option<String>,
    /// When staged bodies are moved to it.
    pub move_policy: MovePolicy,
    /// Whether bodies also carry their sealed entries in an attribute. Not every store accepts
    /// attributes of that size.
    pub with_entries: bool,
    /// Bodies written to it at a time; 0 for the default. A higher number helps if puts wait for
    /// something other than the CPU or disk here.
    pub bodies_at_once: usize,
    /// Restores of each retrieval class that it is sent at a time; 0 for the default.
    pub restores_at_once: usize,
}

impl fmt::Debug for TierOptions {
    /// Leaves out the values, because some are secrets.
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

/// The location of a tier.
#[derive(Debug)]
pub(super) enum Address {
    /// A store, and a path in it. It has not been contacted yet.
    Bucket(Arc<dyn ObjectStore>, Path),
    /// A directory, which need not exist now.
    Directory(PathBuf),
}

/// Resolves a configuration.
pub(super) fn address(name: &TierName, options: &TierOptions) -> Result<Address> {
    let refuse = |reason: String| ArchiveError::InvalidArgument {
        what: format!("tier \"{name}\" at \"{}\": {reason}", options.url),
    };
    if let Some(store) = &options.store {
        return Ok(Address::Bucket(Arc::clone(store), Path::default()));
    }
    let Some((scheme, rest)) = options.url.split_once("://") else {
        return Err(refuse("an address must begin with file://, s3://, az:// or gs://".to_owned()));
    };
    if scheme == "file" {
        if let Some(key) = options.options.keys().next() {
            return Err(refuse(format!("a directory has no option \"{key}\"")));
        }
        if !rest.starts_with('/') {
            return Err(refuse("a directory needs an absolute path: file:///folder".to_owned()));
        }
        return Ok(Address::Directory(PathBuf::from(rest)));
    }
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(refuse("it names no bucket".to_owned()));
    }
    let client = client_options(options).map_err(refuse)?;
    // Client options replace each other as a whole, so the configured ones are applied last.
    let store: object_store::Result<Arc<dyn ObjectStore>> = match scheme {
        "s3" => apply_options(
            AmazonS3Builder::from_env().with_client_options(client).with_bucket_name(bucket),
            options,
            |builder, key: AmazonS3ConfigKey, value| builder.with_config(key, value),
        )
        .and_then(|builder| Ok(Arc::new(builder.with_retry(retry()).build()?) as _)),
        "az" => apply_options(
            MicrosoftAzureBuilder::from_env()
                .with_client_options(client)
                .with_container_name(bucket),
            options,
            |builder, key: AzureConfigKey, value| builder.with_config(key, value),
        )
        .and_then(|builder| Ok(Arc::new(builder.with_retry(retry()).build()?) as _)),
        "gs" => apply_options(
            GoogleCloudStorageBuilder::from_env()
                .with_client_options(client)
                .with_bucket_name(bucket),
            options,
            |builder, key: GoogleConfigKey, value| builder.with_config(key, value),
        )
        .and_then(|builder| Ok(Arc::new(builder.with_retry(retry()).build()?) as _)),
        other => return Err(refuse(format!("\"{other}\" is not one of file, s3, az and gs"))),
    };
    let store = store.map_err(|error| refuse(error.to_string()))?;
    let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|e| refuse(e.to_string()))?;
    Ok(Address::Bucket(store, prefix))
}

/// Opens a directory as a store that syncs files and folders. Creates it if `may_create`.
pub(super) fn directory(
    path: &std::path::Path,
    may_create: bool,
) -> std::result::Result<Arc<dyn ObjectStore>, String> {
    if may_create {
        make_durable_path(path).map_err(|error| error.to_string())?;
    }
    let store = LocalFileSystem::new_with_prefix(path).map_err(|error| error.to_string())?;
    Ok(Arc::new(store.with_fsync(true)))
}

/// Applies all configured options to a builder.
fn apply_options<B, K: FromStr<Err = object_store::Error>>(
    builder: B,
    options: &TierOptions,
    set: impl Fn(B, K, &str) -> B,
) -> object_store::Result<B> {
    options.options.iter().try_fold(builder, |builder, (key, value)| {
        Ok(set(builder, key.to_ascii_lowercase().parse()?, value))
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

/// Retries are short: callers retry with backoff themselves, and report meanwhile which tier does
/// not answer.
fn retry() -> RetryConfig {
    let retry_timeout = Duration::from_secs(TIER_TRIES_SECONDS);
    RetryConfig { max_retries: TIER_TRIES_MAX, retry_timeout, ..RetryConfig::default() }
}
