//! Finds the server and the credentials: from flags, then the data directory, then the environment.

use std::path::{Path, PathBuf};

use aws_credential_types::Credentials;
use fulgurite_terminal::exit::{Exit, ExitError};

use crate::credentials::{self, KeyPair, credentials_path};
use crate::s3::{Client, ClientConfig, Trust};
use crate::server_file::ServerFile;

/// Flags of every command that talks to a server.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Server")]
pub struct RemoteArgs {
    /// S3 endpoint, like http://127.0.0.1:9000
    #[arg(long, value_name = "URL", env = "FULGURITE_ENDPOINT")]
    pub endpoint: Option<String>,
    /// Data directory whose running server (and credentials) to use
    #[arg(long, value_name = "DIR", env = "FULGURITE_DATA")]
    pub data: Option<PathBuf>,
    /// Access key [also: AWS_ACCESS_KEY_ID]
    #[arg(long, value_name = "KEY", env = "FULGURITE_ACCESS_KEY")]
    pub access_key: Option<String>,
    /// Secret key; prefer the variable, a flag is seen by others [also: AWS_SECRET_ACCESS_KEY]
    #[arg(long, value_name = "KEY", env = "FULGURITE_SECRET_KEY", hide_env_values = true)]
    pub secret_key: Option<String>,
    /// Region that signatures name
    #[arg(long, value_name = "NAME", env = "AWS_REGION", default_value = "us-east-1")]
    pub region: String,
    /// PEM file of the certificates to trust, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Trust any certificate: for tests only
    #[arg(long)]
    pub insecure: bool,
}

/// A server, and the keys to it.
#[derive(Clone, Debug)]
pub struct Remote {
    /// `http://host:port`
    pub endpoint: String,
    /// The credentials.
    pub keys: KeyPair,
    /// Session token of temporary credentials.
    pub session_token: Option<String>,
    /// Region.
    pub region: String,
    /// The trusted certificates.
    pub trust: Trust,
}

impl RemoteArgs {
    /// Finds the server and the keys.
    pub fn resolve(&self) -> anyhow::Result<Remote> {
        let server = self.server_file()?;
        let endpoint = match (&self.endpoint, &server) {
            (Some(endpoint), _) => endpoint.clone(),
            (None, Some(server)) => server.endpoint.clone(),
            (None, None) => {
                env_var("AWS_ENDPOINT_URL_S3").or_else(|| env_var("AWS_ENDPOINT_URL")).ok_or_else(
                    || ExitError::new(Exit::Usage, "no server: pass --endpoint URL or --data DIR"),
                )?
            }
        };
        let (keys, session_token) = self.keys(server.as_ref())?;
        let trust = match (&self.ca, &server) {
            _ if self.insecure => Trust::Insecure,
            (Some(file), _) => Trust::File(file.clone()),
            (None, Some(ServerFile { certificate: Some(file), .. })) => Trust::File(file.clone()),
            (None, _) => Trust::System,
        };
        Ok(Remote { endpoint, keys, session_token, region: self.region.clone(), trust })
    }

    /// Does the same for the admin API, which a data directory opens even if its server was started
    /// with external keys.
    pub fn resolve_operator(&self) -> anyhow::Result<Remote> {
        let has_keys = self.access_key.is_some() && self.secret_key.is_some();
        let operator = match self.server_file()? {
            Some(ServerFile { operator: Some(path), .. }) if !has_keys => {
                credentials::read_pair(&path)?
            }
            Some(_) | None => None,
        };
        let Some(keys) = operator else { return self.resolve() };
        let named = Self {
            access_key: Some(keys.access_key),
            secret_key: Some(keys.secret_key),
            ..self.clone()
        };
        named.resolve()
    }

    /// Creates a client of the server.
    pub fn client(&self) -> anyhow::Result<Client> {
        self.resolve()?.client()
    }

    /// Reads the server file. With `--endpoint` a data directory gives credentials only, so it may
    /// have no server.
    fn server_file(&self) -> anyhow::Result<Option<ServerFile>> {
        match &self.data {
            Some(data) if self.endpoint.is_some() => Ok(ServerFile::read(data).ok()),
            Some(data) => ServerFile::read(data).map(Some),
            None => Ok(None),
        }
    }

    fn keys(&self, server: Option<&ServerFile>) -> anyhow::Result<(KeyPair, Option<String>)> {
        if let (Some(access_key), Some(secret_key)) = (&self.access_key, &self.secret_key) {
            let keys = KeyPair { access_key: access_key.clone(), secret_key: secret_key.clone() };
            return Ok((keys, None));
        }
        if self.access_key.is_some() != self.secret_key.is_some() {
            let message = "--access-key and --secret-key must be passed together";
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        if let Some(data) = &self.data
            && let Some(keys) = stored_keys(data, server)?
        {
            return Ok((keys, None));
        }
        match (env_var("AWS_ACCESS_KEY_ID"), env_var("AWS_SECRET_ACCESS_KEY")) {
            (Some(access_key), Some(secret_key)) => {
                Ok((KeyPair { access_key, secret_key }, env_var("AWS_SESSION_TOKEN")))
            }
            _ if server.is_some_and(|server| server.operator.is_some()) => {
                let message = "the server was started with external keys and does not store them: \
                               set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (admin commands \
                               need none)";
                Err(ExitError::new(Exit::Config, message).into())
            }
            _ => {
                let message = "no credentials: pass --access-key and --secret-key, set \
                               AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or pass --data DIR";
                Err(ExitError::new(Exit::Config, message).into())
            }
        }
    }
}

/// Returns the keys stored in `data`, unless its server was started with others.
fn stored_keys(data: &Path, server: Option<&ServerFile>) -> anyhow::Result<Option<KeyPair>> {
    let Some(keys) = credentials::read(data)? else { return Ok(None) };
    match server {
        Some(server) if server.access_key != keys.access_key => {
            tracing::debug!(
                file = %credentials_path(data).display(),
                "the server uses other keys than this file"
            );
            Ok(None)
        }
        Some(_) | None => Ok(Some(keys)),
    }
}

fn env_var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Remote {
    /// Creates a client of the server.
    pub fn client(&self) -> anyhow::Result<Client> {
        let credentials = Credentials::new(
            &self.keys.access_key,
            &self.keys.secret_key,
            self.session_token.clone(),
            None,
            "fulgurite",
        );
        Ok(Client::new(ClientConfig {
            endpoint: self.endpoint.clone(),
            credentials,
            region: self.region.clone(),
            trust: self.trust.clone(),
        })?)
    }
}
