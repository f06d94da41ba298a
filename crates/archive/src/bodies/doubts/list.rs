//! `DIR/doubts`: what starts found in doubt, for a recovery that has no catalog.
//!
//! A line for each body: its id, and the id of the object that its entry names
//! (docs/formats/doubts.md). A body without a key is nothing any more, so lines go when keys do,
//! and only a start or a recovery writes the file.

use std::collections::BTreeSet;

use fulgurite_units::ObjectId;

use crate::directory::{Paths, write_durably};
use crate::{ArchiveError, Result};

/// The first line: what it is, and its version.
const HEADER: &str = "fulgurite-doubts 1\n";

/// Bodies in doubt, each with the object that it would be of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DoubtList {
    pairs: BTreeSet<(ObjectId, ObjectId)>,
}

impl DoubtList {
    /// The list of an archive; empty if it has none. What is no line of it is passed over.
    pub(crate) fn read(paths: &Paths) -> Result<Self> {
        let path = paths.doubts();
        let text = match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(ArchiveError::io("read", &path)(error)),
        };
        let pair = |line: &str| {
            let (body, object) = line.split_once(' ')?;
            Some((body.parse().ok()?, object.parse().ok()?))
        };
        Ok(Self { pairs: text.lines().filter_map(pair).collect() })
    }

    /// Writes it, durably; an empty one has no file.
    pub(crate) fn write(&self, paths: &Paths) -> Result<()> {
        let path = paths.doubts();
        if self.pairs.is_empty() {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(ArchiveError::io("remove", &path)(error))
                }
                Ok(()) | Err(_) => Ok(()),
            };
        }
        let lines = self.pairs.iter().map(|(body, object)| format!("{body} {object}\n"));
        let text: String = std::iter::once(HEADER.to_owned()).chain(lines).collect();
        write_durably(&path, text.as_bytes(), 0o600)
    }

    /// Whether this body was in doubt as one of this object.
    pub(crate) fn contains(&self, body: ObjectId, object: ObjectId) -> bool {
        self.pairs.contains(&(body, object))
    }

    pub(crate) fn insert(&mut self, body: ObjectId, object: ObjectId) {
        self.pairs.insert((body, object));
    }

    /// The pairs, by body.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ObjectId, ObjectId)> + '_ {
        self.pairs.iter().copied()
    }
}

impl FromIterator<(ObjectId, ObjectId)> for DoubtList {
    fn from_iter<T: IntoIterator<Item = (ObjectId, ObjectId)>>(pairs: T) -> Self {
        Self { pairs: pairs.into_iter().collect() }
    }
}
