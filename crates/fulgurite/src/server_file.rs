//! `DATA/server.json`: how other processes find the server of a data directory.
//!
//! Written when the server listens, removed when it stops. A file left by a killed server is told
//! by its process id and by the silence of its endpoint; nothing depends on its absence.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::credentials::write_private;
use crate::exit::{Coded, Exit};

/// What a running server says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerFile {
    /// `http://..` or `https://..`
    pub(crate) endpoint: String,
    /// Process id.
    pub(crate) pid: u32,
    /// Access key it serves.
    pub(crate) access_key: String,
    /// Certificate to trust, when it is self-signed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) certificate: Option<PathBuf>,
}

fn server_path(data: &Path) -> PathBuf {
    data.join("server.json")
}

impl ServerFile {
    /// Says that a server of `data` listens.
    pub(crate) fn write(&self, data: &Path) -> anyhow::Result<()> {
        let path = server_path(data);
        let text = serde_json::to_string_pretty(self).context("cannot write JSON")?;
        write_private(&path, text.as_bytes())
            .with_context(|| format!("cannot write \"{}\"", path.display()))
    }

    /// The server of `data`.
    pub(crate) fn read(data: &Path) -> anyhow::Result<Self> {
        let path = server_path(data);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let data = data.display();
                let message = format!(
                    "no server runs on \"{data}\": start one with fulgurite serve --data {data}"
                );
                return Err(Coded::new(Exit::Unavailable, message).into());
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read \"{}\"", path.display()));
            }
        };
        serde_json::from_str(&text).with_context(|| format!("\"{}\" is wrong", path.display()))
    }

    /// Says that no server of `data` listens any more.
    pub(crate) fn remove(data: &Path) {
        if let Err(error) = std::fs::remove_file(server_path(data)) {
            tracing::warn!(%error, "server.json could not be removed");
        }
    }
}
