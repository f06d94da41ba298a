//! Walks the rows of a directory in the order of their keys, a page at a time.
//!
//! The files of a folder are sorted as if folders ended with a slash and rows with `!`, which sorts
//! before all characters of keys: that is the order of keys.

use std::fs;
use std::io;
use std::path::Path;

use super::files::{Files, SUFFIX};
use super::lock::to_table_error;
use crate::stores::limits::{PAGE_BYTES, PAGE_FILES};
use crate::stores::scan::Page;
use crate::stores::{Key, Row, TableError};

/// State of a walk.
struct Walk<'a> {
    files: &'a Files,
    after: Option<&'a Key>,
    rows: Vec<(Key, Row)>,
    bytes: usize,
}

/// Returns the page of rows below `prefix` after `after`.
pub(super) fn page(
    files: &Files,
    prefix: Option<&Key>,
    after: Option<&Key>,
) -> Result<Page, TableError> {
    let mut walk = Walk { files, after, rows: Vec::new(), bytes: 0 };
    let folder = files.rows();
    let is_full = match prefix {
        None => walk.folder(&folder, "")?,
        Some(prefix) => walk.folder(&folder.join(prefix.as_str()), prefix.as_str())?,
    };
    // A missing folder has no rows, unless the whole table is missing.
    files.check_marker()?;
    Ok(Page { rows: walk.rows, is_last: !is_full })
}

impl Walk<'_> {
    /// Adds the rows of a folder. Returns whether the page is full.
    fn folder(&mut self, folder: &Path, key: &str) -> Result<bool, TableError> {
        for name in names(folder, key.is_empty()).map_err(|error| to_table_error(&error))? {
            let below = |name: &str| match key {
                "" => name.to_owned(),
                _ => format!("{key}/{name}"),
            };
            if let Some(name) = name.strip_suffix('/') {
                let (inner, child) = (folder.join(name), below(name));
                if self.is_behind(&child) && self.folder(&inner, &child)? {
                    return Ok(true);
                }
            } else if let Some(key) = name.strip_suffix(SUFFIX).map(below)
                && let Ok(key) = Key::new(key)
                && self.after.is_none_or(|after| key > *after)
                && let Some(row) = self.files.read(&key)?
            {
                self.bytes += row.bytes.len();
                self.rows.push((key, row));
                if self.rows.len() == PAGE_FILES || self.bytes >= PAGE_BYTES {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a folder has keys after the last one of the previous page.
    fn is_behind(&self, folder: &str) -> bool {
        self.after.is_none_or(|after| {
            let (after, folder) = (after.as_str(), format!("{folder}/"));
            after < folder.as_str() || after.starts_with(&folder)
        })
    }
}

/// Returns the sorted names in a folder; folders end with a slash.
fn names(folder: &Path, is_root: bool) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_root => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
        // Names that are not UTF-8 are not ours.
        names.extend(entry.file_name().to_str().map(|name| format!("{name}{slash}")));
    }
    names.sort();
    Ok(names)
}
