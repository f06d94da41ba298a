//! `DIR/unconfirmed`: the unconfirmed bodies that starts have found, for a recovery without a
//! catalog.
//!
//! Each line has a body id, and the id of the object that its entry names
//! (docs/formats/unconfirmed.md).
//! A body without a key is worthless, so its line is removed with the key. Only a start or a
//! recovery writes the file.

use std::collections::BTreeSet;

use fulgurite_units::ObjectId;

use crate::directory::{Paths, write_durably};
use crate::{ArchiveError, Result};

/// Begins the first line, which goes on with the version.
const FORMAT: &str = "fulgurite-unconfirmed ";
const VERSION: u64 = 1;

/// Unconfirmed bodies, each with the object that it would belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnconfirmedList {
    pairs: BTreeSet<(ObjectId, ObjectId)>,
}

impl UnconfirmedList {
    /// Reads the list of an archive; empty if there is none. Invalid lines are skipped.
    ///
    /// # Errors
    /// When it cannot be read, or a newer program wrote it.
    pub(crate) fn read(paths: &Paths) -> Result<Self> {
        let path = paths.unconfirmed();
        let text = match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(ArchiveError::io("read", &path)(error)),
        };
        let version = text.lines().next().and_then(|line| line.strip_prefix(FORMAT));
        if let Some(version) = version.and_then(|version| version.parse::<u64>().ok())
            && version > VERSION
        {
            let what = format!("\"{}\" has version {version}", path.display());
            return Err(ArchiveError::Newer { what });
        }
        let pair = |line: &str| {
            let (body, object) = line.split_once(' ')?;
            Some((body.parse().ok()?, object.parse().ok()?))
        };
        Ok(Self { pairs: text.lines().filter_map(pair).collect() })
    }

    /// Writes the list durably. An empty list removes the file.
    pub(crate) fn write(&self, paths: &Paths) -> Result<()> {
        let path = paths.unconfirmed();
        if self.pairs.is_empty() {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(ArchiveError::io("remove", &path)(error))
                }
                Ok(()) | Err(_) => Ok(()),
            };
        }
        let lines = self.pairs.iter().map(|(body, object)| format!("{body} {object}\n"));
        let text: String = std::iter::once(format!("{FORMAT}{VERSION}\n")).chain(lines).collect();
        write_durably(&path, text.as_bytes(), 0o600)
    }

    /// Whether this body was unconfirmed as one of this object.
    pub(crate) fn contains(&self, body: ObjectId, object: ObjectId) -> bool {
        self.pairs.contains(&(body, object))
    }

    pub(crate) fn insert(&mut self, body: ObjectId, object: ObjectId) {
        self.pairs.insert((body, object));
    }

    /// Returns the pairs, sorted by body.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ObjectId, ObjectId)> + '_ {
        self.pairs.iter().copied()
    }
}

impl FromIterator<(ObjectId, ObjectId)> for UnconfirmedList {
    fn from_iter<T: IntoIterator<Item = (ObjectId, ObjectId)>>(pairs: T) -> Self {
        Self { pairs: pairs.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_list_is_refused() {
        let dir = crate::testing::dir();
        let paths = Paths::new(dir.path());
        assert_eq!(UnconfirmedList::read(&paths).unwrap(), UnconfirmedList::default());
        std::fs::write(paths.unconfirmed(), "fulgurite-unconfirmed 2\n").unwrap();
        let error = UnconfirmedList::read(&paths).unwrap_err();
        assert!(matches!(error, ArchiveError::Newer { .. }), "{error}");
        std::fs::write(paths.unconfirmed(), "fulgurite-unconfirm\n").unwrap();
        assert_eq!(UnconfirmedList::read(&paths).unwrap(), UnconfirmedList::default());
    }
}
