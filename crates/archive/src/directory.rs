//! The data directory: its layout, its identity, and how its small files are written.
//!
//! Not here: the content of its files, which belongs to their readers.

use std::fs::File;
use std::path::{Path, PathBuf};

use fulgurite_units::ArchiveId;
use serde::{Deserialize, Serialize};

use crate::bodies::cipher::SecretKey;
use crate::bodies::log::LogKind;
use crate::config::ArchiveConfig;
use crate::{ArchiveError, Result};

/// Paths inside a data directory.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    root: PathBuf,
}

impl Paths {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }
    pub(crate) fn identity(&self) -> PathBuf {
        self.root.join("archive.json")
    }
    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }
    pub(crate) fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }
    pub(crate) fn key_table(&self) -> PathBuf {
        self.keys().join("table")
    }
    pub(crate) fn catalog(&self) -> PathBuf {
        self.root.join("catalog")
    }
    /// The high-water mark of the catalog, stored outside of it.
    pub(crate) fn catalog_mark(&self) -> PathBuf {
        self.root.join("catalog.mark")
    }
    pub(crate) fn key_table_copy(&self) -> PathBuf {
        self.keys().join("table.copy")
    }
    /// Where a recovery builds a catalog until it is complete.
    pub(crate) fn catalog_part(&self) -> PathBuf {
        self.root.join("catalog.part")
    }
    /// A complete recovered catalog, before it replaces the previous one.
    pub(crate) fn catalog_recovered(&self) -> PathBuf {
        self.root.join("catalog.recovered")
    }
    /// Finishes the rename of a recovered catalog after a crash. If the previous catalog is still
    /// in place, the recovered one is deleted and a new recovery can be run.
    pub(crate) fn settle_recovered_catalog(&self) -> Result<()> {
        let (from, to) = (self.catalog_recovered(), self.catalog());
        if !from.exists() {
            return Ok(());
        }
        if !is_empty_dir(&to) {
            return std::fs::remove_dir_all(&from).map_err(ArchiveError::io("remove", &from));
        }
        if to.exists() {
            std::fs::remove_dir(&to).map_err(ArchiveError::io("replace", &to))?;
        }
        tracing::warn!("finishing a recovery that was interrupted at its last step");
        std::fs::rename(&from, &to).map_err(ArchiveError::io("rename", &from))?;
        sync_dir(&self.root)
    }
    /// The list of unconfirmed bodies, if there is one.
    pub(crate) fn unconfirmed(&self) -> PathBuf {
        self.root.join("unconfirmed")
    }
    pub(crate) fn log(&self, kind: LogKind) -> PathBuf {
        self.root.join(kind.folder())
    }
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
    pub(crate) fn platters(&self) -> PathBuf {
        self.root.join("platters")
    }
}

/// Identity of a data directory; written once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    /// Version of the directory layout.
    pub(crate) format: u32,
    pub(crate) archive: ArchiveId,
}

const FORMAT: u32 = 1;

/// Locks the data directory for this process.
pub(crate) fn lock_directory(data: &Path) -> Result<File> {
    let path = Paths::new(data).lock();
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(ArchiveError::io("open", &path))?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| ArchiveError::Locked { path: data.display().to_string() })?;
    Ok(file)
}

/// Returns the error for a directory, or a file in it, that cannot be used.
pub(crate) fn unusable(data: &Path, reason: impl Into<String>) -> ArchiveError {
    ArchiveError::Unusable { path: data.display().to_string(), reason: reason.into() }
}

/// Reads the identity; `None` if there is no file.
pub(crate) fn read_identity(data: &Path) -> Result<Option<Identity>> {
    let path = Paths::new(data).identity();
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ArchiveError::io("read", &path)(error)),
    };
    let identity: Identity = serde_json::from_slice(&bytes).map_err(|e| {
        unusable(data, format!("archive.json is damaged: {e}; move it away to have it recreated"))
    })?;
    if identity.format != FORMAT {
        let reason = format!("its format {} is not {FORMAT}", identity.format);
        return Err(unusable(data, reason));
    }
    Ok(Some(identity))
}

/// Writes the identity.
pub(crate) fn write_identity(data: &Path, archive: ArchiveId) -> Result<Identity> {
    let identity = Identity { format: FORMAT, archive };
    let text = serde_json::to_vec_pretty(&identity)
        .map_err(|e| ArchiveError::Internal { what: e.to_string() })?;
    write_durably(&Paths::new(data).identity(), &text, 0o600)?;
    Ok(identity)
}

/// Writes a small file atomically and durably.
pub(crate) fn write_durably(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let part = path.with_extension("part");
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(&part)
        .map_err(ArchiveError::io("create", &part))?;
    file.write_all(bytes).map_err(ArchiveError::io("write", &part))?;
    file.sync_all().map_err(ArchiveError::io("sync", &part))?;
    std::fs::rename(&part, path).map_err(ArchiveError::io("rename", &part))?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Reads the master key from `path`, or creates it there when `may_create`.
pub(crate) fn master_key(path: &Path, may_create: bool) -> Result<SecretKey> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => zeroize::Zeroizing::new(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && may_create => {
            let key = SecretKey::random()?;
            let text = zeroize::Zeroizing::new(hex::encode(key.expose()));
            write_durably(path, text.as_bytes(), 0o600)?;
            return Ok(key);
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(unusable(
                path,
                "the master key is missing: restore it from its backup; without it no object \
                 can be read",
            ));
        }
        Err(error) => return Err(ArchiveError::io("read the master key", path)(error)),
    };
    parse_key(path, &text, "a master key is 64 hexadecimal digits; restore it from its backup")
}

fn parse_key(path: &Path, text: &str, reason: &str) -> Result<SecretKey> {
    let mut key = [0; 32];
    hex::decode_to_slice(text.trim(), &mut key).map_err(|_| unusable(path, reason))?;
    Ok(SecretKey::from_bytes(key))
}

/// Reads the key of buckets that several archives share. It is never created here: all of them use
/// the same one.
pub(crate) fn shared_key(path: &Path) -> Result<SecretKey> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => zeroize::Zeroizing::new(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(unusable(
                path,
                "there is no key of shared buckets: copy it from an archive that shares them, or \
                 create one with `openssl rand -hex 32` if there is none",
            ));
        }
        Err(error) => return Err(ArchiveError::io("read the key of shared buckets", path)(error)),
    };
    parse_key(path, &text, "a key of shared buckets is 64 hexadecimal digits")
}

/// Returns the path of the master key, as configured or by default.
pub(crate) fn master_key_path(config: &ArchiveConfig) -> PathBuf {
    let default = || Paths::new(&config.data).keys().join("master.key");
    config.master_key.clone().unwrap_or_else(default)
}

pub(crate) fn make_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(ArchiveError::io("create", path))
}

/// Creates a directory with its ancestors and makes their names durable. Stops at an ancestor that
/// cannot be opened, or whose file system cannot sync directories (a read-only image): that one
/// already existed.
pub(crate) fn make_durable_path(path: &Path) -> Result<()> {
    use std::io::ErrorKind::{InvalidInput, PermissionDenied};
    make_dir(path)?;
    for above in path.ancestors().skip(1) {
        // The parent of a relative path with one component is the working directory.
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        match sync_dir(above) {
            Err(ArchiveError::Io { source, .. })
                if matches!(source.kind(), PermissionDenied | InvalidInput) =>
            {
                break;
            }
            done => done?,
        }
    }
    Ok(())
}

/// Whether `dir` is missing or has no entries.
pub(crate) fn is_empty_dir(dir: &Path) -> bool {
    std::fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_none())
}

/// Makes new and renamed entries of `dir` durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    let file = File::open(dir).map_err(ArchiveError::io("open", dir))?;
    file.sync_all().map_err(ArchiveError::io("sync", dir))
}
