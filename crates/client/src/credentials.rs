//! The access key and secret key of a data directory: generated once, stored with mode 0600.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_units::settings;
use serde::{Deserialize, Serialize};

/// An access key and its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyPair {
    /// Public name.
    pub access_key: String,
    /// Secret.
    pub secret_key: String,
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPair").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// Where the keys of a server came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// Generated now: they are shown this once.
    New,
    /// Read from the data directory.
    Stored,
    /// Passed in by the operator at the start of the server.
    Provided,
}

/// Letters without a special meaning to any shell, URL or option parser.
const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

impl KeyPair {
    /// Generates a pair from the system's entropy: 20 letters, and a secret of 40 (200 bits).
    pub fn generate() -> anyhow::Result<Self> {
        let mut random = [0u8; 57];
        getrandom::fill(&mut random)
            .map_err(|error| anyhow::anyhow!("cannot get random bytes from the system: {error}"))?;
        let letters: String =
            random.iter().map(|byte| char::from(LETTERS[usize::from(byte & 31)])).collect();
        let (name, secret) = letters.split_at(17);
        Ok(Self { access_key: format!("FUL{name}"), secret_key: secret.to_owned() })
    }
}

/// Returns the path of the pair of the data directory `data`.
pub fn credentials_path(data: &Path) -> PathBuf {
    data.join("credentials.toml")
}

/// Reads the pair of the data directory, if it has one.
pub fn read(data: &Path) -> anyhow::Result<Option<KeyPair>> {
    read_pair(&credentials_path(data))
}

/// Reads the pair in the file `path`, if there is one.
pub fn read_pair(path: &Path) -> anyhow::Result<Option<KeyPair>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read \"{}\"", path.display()));
        }
    };
    let pair = settings::from_toml(&text).map_err(|error| {
        // The error would show the offending line, which may hold the secret.
        let offset = error.span().map_or(0, |span| span.start);
        let message = format!("credentials \"{}\" are wrong at byte {offset}", path.display());
        ExitError::new(Exit::Config, message)
    })?;
    Ok(Some(pair))
}

/// Reads the pair of the data directory, or generates one if it has none; `true` means that it is
/// new.
pub fn read_or_generate(data: &Path) -> anyhow::Result<(KeyPair, bool)> {
    if let Some(pair) = read(data)? {
        return Ok((pair, false));
    }
    let pair = KeyPair::generate()?;
    let path = credentials_path(data);
    write_private(&path, toml::to_string(&pair)?.as_bytes())
        .with_context(|| format!("cannot write \"{}\"", path.display()))?;
    Ok((pair, true))
}

/// Writes a file that only its owner may read, atomically.
pub fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let temporary = path.with_extension("part");
    let _ = std::fs::remove_file(&temporary);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests;
