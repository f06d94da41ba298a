//! `DATA/server.json`: how other processes find the server of a data directory.
//!
//! Written when the server listens, removed when it stops. A file left by a killed server is
//! recognized by its process id and by its silent endpoint; nothing depends on its absence.
//!
//! A server that was started with external keys does not store them. So `DATA/operator.toml` has
//! other keys, for the admin API alone: generated at each start, and invalid once that server is
//! gone.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fulgurite_terminal::exit::{Exit, ExitError};
use serde::{Deserialize, Serialize};

use crate::credentials::{KeyPair, write_private};

/// What a running server publishes about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFile {
    /// `http://..` or `https://..`
    pub endpoint: String,
    /// Process id.
    pub pid: u32,
    /// Access key it accepts.
    pub access_key: String,
    /// Certificate to trust, when it is self-signed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub certificate: Option<PathBuf>,
    /// File of the keys for the admin API, when those of the archive are not stored here.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub operator: Option<PathBuf>,
}

fn server_path(data: &Path) -> PathBuf {
    data.join("server.json")
}

fn operator_path(data: &Path) -> PathBuf {
    data.join("operator.toml")
}

/// Generates keys for the admin API of the server that starts now, and writes their file.
pub fn create_operator_keys(data: &Path) -> anyhow::Result<(KeyPair, PathBuf)> {
    let (keys, path) = (KeyPair::generate()?, operator_path(data));
    write_private(&path, toml::to_string(&keys)?.as_bytes())
        .with_context(|| format!("cannot write \"{}\"", path.display()))?;
    let path = path.canonicalize().unwrap_or(path);
    Ok((keys, path))
}

/// Removes the key file that a server leaves behind; the keys are invalid without the server.
pub fn remove_operator_keys(data: &Path) {
    match std::fs::remove_file(operator_path(data)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%error, "cannot remove operator.toml; its keys are no longer valid");
        }
        Ok(()) | Err(_) => {}
    }
}

impl ServerFile {
    /// Publishes that a server of `data` listens.
    pub fn write(&self, data: &Path) -> anyhow::Result<()> {
        let path = server_path(data);
        let text = serde_json::to_string_pretty(self).context("cannot write JSON")?;
        write_private(&path, text.as_bytes())
            .with_context(|| format!("cannot write \"{}\"", path.display()))
    }

    /// Reads the server file of `data`.
    pub fn read(data: &Path) -> anyhow::Result<Self> {
        let path = server_path(data);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let data = data.display();
                let message = format!(
                    "no server runs on \"{data}\": start one with fulgurite serve --data {data}"
                );
                return Err(ExitError::new(Exit::Unavailable, message).into());
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read \"{}\"", path.display()));
            }
        };
        serde_json::from_str(&text)
            .with_context(|| format!("\"{}\" is not a valid server file", path.display()))
    }

    /// Removes the server file of `data`, whose server no longer listens.
    pub fn remove(data: &Path) {
        if let Err(error) = std::fs::remove_file(server_path(data)) {
            tracing::warn!(%error, "cannot remove server.json");
        }
        remove_operator_keys(data);
    }
}
