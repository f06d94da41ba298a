//! The local folder of a sync: lists files by key, compares checksums, and deletes files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use fulgurite_client::names::S3Url;
use fulgurite_client::s3::Verifier;
use fulgurite_terminal::exit::{Exit, ExitError};

use super::super::put::{PlannedPut, plan};

/// Lists the files and empty folders below `folder` by the keys they have or would have, and counts
/// the entries that are neither.
pub(super) fn list(
    folder: &Path,
    url: &S3Url,
    prefix: &str,
    must_exist: bool,
) -> anyhow::Result<(BTreeMap<String, PlannedPut>, u64)> {
    match std::fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => {
            let message = format!("\"{}\" is not a folder", folder.display());
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => {
            return Ok((BTreeMap::new(), 0));
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read \"{}\"", folder.display()));
        }
    }
    // A trailing slash means only the contents of the folder.
    let url = S3Url { bucket: url.bucket.clone(), key: prefix.to_owned() };
    let (planned, mut skipped) = plan(&[folder.join("")], &url)?;
    if planned.is_empty() && prefix.is_empty() {
        // An empty folder has no key at the top of a bucket, and does not count as skipped.
        skipped = 0;
    }
    let files = planned.into_iter().filter(|file| file.key() != prefix && !is_part(file.path()));
    Ok((files.map(|file| (file.key().to_owned(), file)).collect(), skipped))
}

/// Whether a file is left over from a killed get.
fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with(fulgurite_client::limits::PART_PREFIX)
        && name.ends_with(fulgurite_client::limits::PART_SUFFIX)
}

/// Whether the bytes of `path` match the checksum of `verifier`.
pub(super) fn matches_checksum(path: &Path, mut verifier: Verifier) -> anyhow::Result<bool> {
    let shown = || format!("cannot read \"{}\"", path.display());
    let mut file = File::open(path).with_context(shown)?;
    let mut buffer = vec![0; fulgurite_client::limits::WRITE_BUFFER_BYTES];
    loop {
        match file.read(&mut buffer).with_context(shown)? {
            0 => return Ok(verifier.finish("").is_ok()),
            count => verifier.update(&buffer[..count]),
        }
    }
}

/// Removes a file, or an empty folder, and then the folders above it below `root` that become
/// empty; those that `has_marker` (by their path below `root`) stay.
pub(super) fn remove(
    root: &Path,
    file: &PlannedPut,
    has_marker: &dyn Fn(&Path) -> bool,
) -> anyhow::Result<()> {
    let path = file.path();
    let removed =
        if file.is_folder() { std::fs::remove_dir(path) } else { std::fs::remove_file(path) };
    removed.with_context(|| format!("cannot delete \"{}\"", path.display()))?;
    let mut parent = path.parent();
    while let Some(folder) = parent {
        let Ok(relative) = folder.strip_prefix(root) else { break };
        // A folder that is not empty cannot be removed, and neither can those above it.
        if relative.as_os_str().is_empty()
            || has_marker(relative)
            || std::fs::remove_dir(folder).is_err()
        {
            break;
        }
        parent = folder.parent();
    }
    Ok(())
}
