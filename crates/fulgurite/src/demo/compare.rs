//! Compares restored files with the originals, byte by byte.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::Context as _;
use fulgurite_client::names::path_of;
use fulgurite_object_commands::PlannedPut;

use fulgurite_client::limits::WRITE_BUFFER_BYTES;

/// Returns the keys of all `files` of `original` that differ below `restored`.
pub(crate) fn differing_keys(
    original: &Path,
    restored: &Path,
    prefix: &str,
    files: &[PlannedPut],
) -> anyhow::Result<Vec<String>> {
    let mut differing = Vec::new();
    for file in files {
        let relative = path_of(prefix, file.key())?;
        if !is_same(&original.join(&relative), &restored.join(&relative))? {
            differing.push(file.key().to_owned());
        }
    }
    Ok(differing)
}

/// Whether two files hold the same bytes. If `other` cannot be opened, they differ.
pub(crate) fn is_same(one: &Path, other: &Path) -> anyhow::Result<bool> {
    let open = |path: &Path| {
        File::open(path).with_context(|| format!("cannot open \"{}\"", path.display()))
    };
    let one = open(one)?;
    let Ok(other) = open(other) else { return Ok(false) };
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    let mut buffers = (vec![0; WRITE_BUFFER_BYTES], vec![0; WRITE_BUFFER_BYTES]);
    loop {
        let read = one.read(&mut buffers.0)?;
        if read == 0 {
            return Ok(true);
        }
        if other.read_exact(&mut buffers.1[..read]).is_err()
            || buffers.0[..read] != buffers.1[..read]
        {
            return Ok(false);
        }
    }
}
