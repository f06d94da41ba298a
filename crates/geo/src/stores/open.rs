//! Opens the table and the blobs of a site from its address.
//!
//! Secrets come from the environment variables named in the address, or from those of the stores'
//! own tools (`AWS_...`, `GOOGLE_...`, `AZURE_...`, `PGPASSWORD`, `ETCD_PASSWORD`). The environment
//! is injected. A table and blobs of the same address do not collide: they are below `table` and
//! `blobs`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Certificate, ClientOptions, ObjectStore, RetryConfig};

use crate::stores::address::{Address, AddressError, Scheme, refuse};
use crate::stores::directory::sync_ancestors;
use crate::stores::limits::{
    ANSWER_TIMEOUT, BLOB_TIMEOUT, CONNECT_TIMEOUT, CONNECTIONS, CONNECTIONS_MAX,
};
use crate::stores::{
    Blob, BlobError, BucketBlobs, BucketTable, Cause, DirectoryTable, Entropy, EtcdOptions,
    EtcdTable, MemoryTable, NodeEndpoint, Nodes, OpenError, PostgresOptions, PostgresTable,
    PostgresTls, StatusConnector, Table,
};

/// Opens sites.
pub struct Opener {
    entropy: Entropy,
    environment: BTreeMap<String, String>,
    /// Sites in memory, shared by all that use the same name with this opener.
    memory: Mutex<BTreeMap<String, (MemoryTable, Arc<InMemory>)>>,
    nodes: Option<Arc<dyn Nodes>>,
}

impl fmt::Debug for Opener {
    /// Omits the environment, which contains secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").finish_non_exhaustive()
    }
}

impl Opener {
    /// Creates an opener that draws tags from `entropy` and reads secrets from `environment`.
    #[must_use]
    pub fn new(entropy: Entropy, environment: impl IntoIterator<Item = (String, String)>) -> Self {
        let environment = environment.into_iter().collect();
        Self { entropy, environment, memory: Mutex::default(), nodes: None }
    }

    /// Adds support for `node://` addresses.
    #[must_use]
    pub fn with_nodes(mut self, nodes: Arc<dyn Nodes>) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// Opens the table of a site. It is only created if it is missing and `may_create`: a site that
    /// lost its table must not silently start with an empty one. Buckets are neither created nor
    /// contacted here.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn table<'a>(
        &'a self,
        address: &'a Address,
        may_create: bool,
    ) -> BoxFuture<'a, Result<Arc<dyn Table>, OpenError>> {
        Box::pin(async move {
            let place = address.to_string();
            let failed = |source| OpenError::Table { place: place.clone(), source };
            let table: Arc<dyn Table> = match address.scheme {
                Scheme::Memory => Arc::new(self.memory(&address.host).0),
                Scheme::Directory => {
                    let (folder, entropy) =
                        (FilePath::new(&address.path).join("table"), self.entropy.clone());
                    let opened = tokio::task::spawn_blocking(move || {
                        DirectoryTable::open(folder, may_create, entropy)
                    });
                    let opened = opened.await.map_err(|error| OpenError::Foreign {
                        place: place.clone(),
                        what: error.to_string(),
                    })?;
                    Arc::new(opened?)
                }
                Scheme::S3 | Scheme::Google | Scheme::Azure => Arc::new(BucketTable::new(
                    self.bucket(address, false)?,
                    prefix(address, "table"),
                )),
                Scheme::Postgres => {
                    let options = self.postgres(address, may_create)?;
                    let opened = PostgresTable::open(options, self.entropy.clone()).await;
                    Arc::new(opened.map_err(failed)?)
                }
                Scheme::Etcd => Arc::new(EtcdTable::open(self.etcd(address)?).map_err(failed)?),
                Scheme::Node => self.nodes()?.table(node(address)?, may_create).await?,
            };
            Ok(table)
        })
    }

    /// Opens the blobs of a site. A directory is created if it is missing and `may_create`.
    ///
    /// # Errors
    /// [`OpenError`]; databases have no blobs.
    pub fn blobs<'a>(
        &'a self,
        address: &'a Address,
        may_create: bool,
    ) -> BoxFuture<'a, Result<Arc<dyn Blob>, OpenError>> {
        Box::pin(async move {
            let blobs: Arc<dyn Blob> = match address.scheme {
                Scheme::Memory => {
                    Arc::new(BucketBlobs::new(self.memory(&address.host).1, Path::default()))
                }
                Scheme::Directory => Arc::new(directory(address, may_create).await?),
                Scheme::S3 | Scheme::Google | Scheme::Azure => Arc::new(BucketBlobs::new(
                    self.bucket(address, true)?,
                    prefix(address, "blobs"),
                )),
                Scheme::Node => self.nodes()?.blobs(node(address)?, may_create).await?,
                Scheme::Postgres | Scheme::Etcd => {
                    let remedy = "name a bucket or a directory for blobs";
                    return Err(refuse("the scheme", "a database has no blobs", remedy).into());
                }
            };
            Ok(blobs)
        })
    }

    fn nodes(&self) -> Result<&dyn Nodes, AddressError> {
        self.nodes.as_deref().ok_or_else(|| {
            let remedy = "name the store itself";
            refuse("the scheme", "this program does not support nodes", remedy)
        })
    }

    fn memory(&self, name: &str) -> (MemoryTable, Arc<InMemory>) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let (table, blobs) = memory.entry(name.to_owned()).or_default();
        (table.clone(), Arc::clone(blobs))
    }

    /// Returns the value of the environment variable that an option names, or of the default one.
    fn secret(
        &self,
        address: &Address,
        option: &str,
        default_variable: Option<&str>,
    ) -> Result<Option<String>, AddressError> {
        let Some(name) = address.option(option) else {
            return Ok(default_variable.and_then(|name| self.environment.get(name)).cloned());
        };
        let missing = || {
            let what = format!("there is no environment variable {name}");
            refuse(format!("the option {option}"), what, "set it, or name another")
        };
        self.environment.get(name).cloned().map(Some).ok_or_else(missing)
    }

    /// Returns the environment variables with this prefix, as `object_store` calls them.
    fn environment_options<K: std::str::FromStr>(&self, beginning: &str) -> Vec<(K, &String)> {
        let named = self.environment.iter().filter(|(name, _)| name.starts_with(beginning));
        named
            .filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value)))
            .collect()
    }

    fn bucket(
        &self,
        address: &Address,
        is_for_blobs: bool,
    ) -> Result<Arc<dyn ObjectStore>, OpenError> {
        check_provider()?;
        let client = client_options(address, is_for_blobs)?;
        let built = if address.scheme == Scheme::S3 {
            self.s3(address, client)?
        } else if address.scheme == Scheme::Google {
            self.google(address, client)?
        } else {
            self.azure(address, client)?
        };
        // The error of a configuration does not show its values.
        let remedy = "set what is missing in the environment, or name it by an option";
        Ok(built.map_err(|error| refuse("the store", error.to_string(), remedy))?)
    }

    fn s3(&self, address: &Address, client: ClientOptions) -> Result<Built, OpenError> {
        let mut builder = AmazonS3Builder::new().with_client_options(client);
        for (key, value) in self.environment_options::<AmazonS3ConfigKey>("AWS_") {
            builder = builder.with_config(key, value);
        }
        if let Some(endpoint) = address.option("endpoint") {
            builder = builder.with_endpoint(endpoint).with_allow_http(is_plain(endpoint));
        }
        if let Some(region) = address.option("region") {
            builder = builder.with_region(region);
        }
        for (option, key) in [
            ("access_key_id_env", AmazonS3ConfigKey::AccessKeyId),
            ("secret_access_key_env", AmazonS3ConfigKey::SecretAccessKey),
            ("session_token_env", AmazonS3ConfigKey::Token),
        ] {
            if let Some(secret) = self.secret(address, option, None)? {
                builder = builder.with_config(key, secret);
            }
        }
        let builder = builder
            .with_bucket_name(&address.host)
            .with_retry(no_retries())
            .with_http_connector(StatusConnector);
        Ok(builder.build().map(|store| Arc::new(store) as _))
    }

    fn google(&self, address: &Address, client: ClientOptions) -> Result<Built, OpenError> {
        let client = client.with_allow_http(address.option("endpoint").is_some_and(is_plain));
        let mut builder = GoogleCloudStorageBuilder::new().with_client_options(client);
        for (key, value) in self.environment_options::<GoogleConfigKey>("GOOGLE_") {
            builder = builder.with_config(key, value);
        }
        if let Some(endpoint) = address.option("endpoint") {
            builder = builder.with_config(GoogleConfigKey::BaseUrl, endpoint);
        }
        if let Some(secret) = self.secret(address, "service_account_key_env", None)? {
            builder = builder.with_service_account_key(secret);
        }
        let builder = builder
            .with_bucket_name(&address.host)
            .with_retry(no_retries())
            .with_http_connector(StatusConnector);
        Ok(builder.build().map(|store| Arc::new(store) as _))
    }

    fn azure(&self, address: &Address, client: ClientOptions) -> Result<Built, OpenError> {
        let mut builder = MicrosoftAzureBuilder::new().with_client_options(client);
        for (key, value) in self.environment_options::<AzureConfigKey>("AZURE_") {
            builder = builder.with_config(key, value);
        }
        if let Some(account) = address.option("account") {
            builder = builder.with_account(account);
        }
        if let Some(endpoint) = address.option("endpoint") {
            let is_plain = is_plain(endpoint);
            builder = builder.with_endpoint(endpoint.to_owned()).with_allow_http(is_plain);
        }
        if let Some(secret) = self.secret(address, "account_key_env", None)? {
            builder = builder.with_access_key(secret);
        }
        let builder = builder
            .with_container_name(&address.host)
            .with_retry(no_retries())
            .with_http_connector(StatusConnector);
        Ok(builder.build().map(|store| Arc::new(store) as _))
    }

    fn postgres(&self, address: &Address, may_create: bool) -> Result<PostgresOptions, OpenError> {
        let (host, port) = host_and_port(&address.host, 5432)?;
        let mut config = tokio_postgres::Config::new();
        config.host(host).port(port).dbname(&address.path);
        config.user(address.user.as_deref().unwrap_or("postgres"));
        if let Some(password) = self.secret(address, "password_env", Some("PGPASSWORD"))? {
            config.password(password);
        }
        let connections = match address.option("connections") {
            None => CONNECTIONS,
            Some(text) => match text.parse() {
                Ok(number @ 1..=CONNECTIONS_MAX) => number,
                _ => {
                    let remedy = format!("write a number from 1 to {CONNECTIONS_MAX}");
                    let what = "it is not a number of connections";
                    return Err(refuse("the option connections", what, remedy).into());
                }
            },
        };
        let tls = match (address.option("ca"), address.option("sslmode")) {
            (Some(ca), None | Some("require" | "verify-ca" | "verify-full")) => {
                PostgresTls::verified(FilePath::new(ca)).map_err(|error| {
                    refuse("the option ca", error.to_string(), "name a file of certificates (PEM)")
                })?
            }
            (None, Some("disable")) => PostgresTls::Off,
            (None, None) if is_loopback(host) => PostgresTls::Off,
            _ => {
                let what = "the connection must be secured, but no CA is set";
                let remedy = "name the CA of the server's certificate with ca=FILE, or write only \
                              sslmode=disable in a private network";
                return Err(refuse("the options ca and sslmode", what, remedy).into());
            }
        };
        let table = address.option("table").unwrap_or("fulgurite_rows").to_owned();
        Ok(PostgresOptions { config, table, may_create, connections, tls })
    }

    fn etcd(&self, address: &Address) -> Result<EtcdOptions, OpenError> {
        check_provider()?;
        let scheme = match (address.option("tls"), address.option("ca")) {
            (Some("off"), None) => "http",
            (Some("on"), _) | (None, Some(_)) => "https",
            (None, None) if address.host.split(',').all(|host| is_loopback(bare_host(host))) => {
                "http"
            }
            _ => {
                let remedy = "write tls=on, with ca=FILE for a private CA, or tls=off in a \
                              private network";
                let what = "it does not state whether the connection uses TLS";
                return Err(refuse("the option tls", what, remedy).into());
            }
        };
        let mut members = Vec::new();
        for member in address.host.split(',') {
            let (host, port) = host_and_port(member, 2379)?;
            members.push(format!("{scheme}://{host}:{port}"));
        }
        let user = match address.option("user") {
            None => None,
            Some(user) => {
                let password = self.secret(address, "password_env", Some("ETCD_PASSWORD"))?;
                let missing = || {
                    let remedy = "set ETCD_PASSWORD, or name a variable with password_env=NAME";
                    refuse("the option user", "its password is not set", remedy)
                };
                Some((user.to_owned(), password.ok_or_else(missing)?))
            }
        };
        let prefix = match address.path.as_str() {
            "" => "fulgurite".to_owned(),
            path => path.to_owned(),
        };
        let ca = address.option("ca").map(|ca| file("ca", ca)).transpose()?;
        Ok(EtcdOptions { members, prefix, user, ca })
    }
}

type Built = object_store::Result<Arc<dyn ObjectStore>>;

/// Returns the place of a node, its expected identity, and our certificate for it.
fn node(address: &Address) -> Result<NodeEndpoint, AddressError> {
    let (host, port) = host_and_port(&address.host, 0)?;
    if port == 0 {
        let remedy = "write node://host:port/name";
        return Err(refuse("the host", "it has no port", remedy));
    }
    let file = |option: &str| {
        let remedy = "write node://host:port/name?ca=FILE&cert=FILE&key=FILE: the CA of both \
                      sides, the certificate of this program, and its key";
        let missing = || refuse(format!("the option {option}"), "it is missing", remedy);
        address.option(option).map(PathBuf::from).ok_or_else(missing)
    };
    let bare_host = host.trim_start_matches('[').trim_end_matches(']');
    let name = if address.path.is_empty() { bare_host } else { &address.path };
    Ok(NodeEndpoint {
        address: address.to_string(),
        authority: address.host.clone(),
        name: name.to_owned(),
        ca: file("ca")?,
        certificate: file("cert")?,
        key: file("key")?,
    })
}

/// Opens blobs in a directory, identified by a marker.
async fn directory(address: &Address, may_create: bool) -> Result<BucketBlobs, OpenError> {
    let folder: PathBuf = FilePath::new(&address.path).join("blobs");
    let place = address.to_string();
    let failed = |source| OpenError::Blob { place: place.clone(), source };
    let unavailable = |what: String| failed(BlobError::Unavailable(Cause::new(what)));
    if may_create {
        let created = std::fs::create_dir_all(&folder).and_then(|()| sync_ancestors(&folder));
        created.map_err(|error| unavailable(error.to_string()))?;
    } else if !folder.is_dir() {
        return Err(OpenError::Missing { what: "blob folder", place });
    }
    let store =
        LocalFileSystem::new_with_prefix(&folder).map_err(|e| unavailable(e.to_string()))?;
    let blobs = BucketBlobs::new(Arc::new(store.with_fsync(true)), Path::default());
    match blobs.with_marker(may_create).await {
        Ok(blobs) => Ok(blobs),
        Err(BlobError::NotFound) => Err(OpenError::Missing { what: "blob marker", place }),
        Err(error) => Err(failed(error)),
    }
}

fn prefix(address: &Address, what: &str) -> Path {
    Path::from(format!("{}/{what}", address.path))
}

/// Disables retries: only the caller can distinguish its own earlier write from another's.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, retry_timeout: ANSWER_TIMEOUT, ..RetryConfig::default() }
}

fn client_options(address: &Address, is_for_blobs: bool) -> Result<ClientOptions, OpenError> {
    let timeout = if is_for_blobs { BLOB_TIMEOUT } else { ANSWER_TIMEOUT };
    let client = ClientOptions::new().with_connect_timeout(CONNECT_TIMEOUT).with_timeout(timeout);
    let Some(path) = address.option("ca") else { return Ok(client) };
    let pem = file("ca", path)?;
    let found = Certificate::from_pem_bundle(&pem).map_err(|error| {
        refuse("the option ca", error.to_string(), "name a file of certificates (PEM)")
    })?;
    Ok(found.into_iter().fold(client, ClientOptions::with_root_certificate))
}

fn file(option: &str, path: &str) -> Result<Vec<u8>, AddressError> {
    std::fs::read(path).map_err(|error| {
        let what = format!("\"{path}\" cannot be read: {error}");
        refuse(format!("the option {option}"), what, "name a file that can be read")
    })
}

/// Checks for a TLS provider, without which HTTP clients do not start, even without TLS.
fn check_provider() -> Result<(), AddressError> {
    if rustls::crypto::CryptoProvider::get_default().is_some() {
        return Ok(());
    }
    let what = "this process has no TLS provider";
    let remedy = "install the ring provider of rustls when the program starts";
    Err(refuse("the store", what, remedy))
}

fn is_plain(endpoint: &str) -> bool {
    endpoint.starts_with("http://")
}

/// Strips the port from a host.
fn bare_host(host: &str) -> &str {
    host_and_port(host, 0).map_or(host, |(host, _)| host)
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Splits a text into host and port; IPv6 addresses are in brackets.
fn host_and_port(text: &str, default_port: u16) -> Result<(&str, u16), AddressError> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_host = !host.is_empty() && (host.starts_with('[') || !host.contains([':', ',']));
    let port = port.map_or(Ok(default_port), str::parse);
    match (is_host, port) {
        (true, Ok(port)) => Ok((host, port)),
        _ => Err(refuse("the host", "it is not a host with a port", "write host or host:port")),
    }
}

#[cfg(test)]
mod tests;
