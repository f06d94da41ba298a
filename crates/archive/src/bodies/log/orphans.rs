//! Orphans: segments that the catalog does not name and that may be newer than it. They appear
//! after a crash, with a catalog from a backup, or with a rebuilt one.
//!
//! ```text
//! staging/00000007.seg  --not named, not proved older-->  orphaned/staging-00000007-run-9.seg
//!                       <--named by a catalog that was restored--
//! ```
//!
//! Only [`Orphans::discard`] removes one, and only when an operator requests it. Their bytes do not
//! count toward the budget: they must not block uploads.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use fulgurite_units::ObjectId;

use super::scan::{ScannedRecord, SegmentScan};
use super::{LogKind, segment_path};
use crate::directory::{Paths, sync_dir};
use crate::{ArchiveError, Result};

/// A file in the orphan folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrphanFile {
    pub(crate) path: PathBuf,
    pub(crate) kind: LogKind,
    pub(crate) number: u32,
    /// The run that wrote it, if its header is readable.
    pub(crate) run: Option<u64>,
    /// Bytes used on the disk.
    pub(crate) disk_bytes: u64,
}

/// The orphan folder.
#[derive(Clone, Debug)]
pub(crate) struct Orphans {
    data: PathBuf,
    dir: PathBuf,
}

impl Orphans {
    /// Returns the orphan folder of the data directory `data`.
    pub(crate) fn new(data: &Path) -> Self {
        Self { data: data.to_owned(), dir: data.join("orphaned") }
    }

    /// Lists all orphans, sorted by log, number and run. The folder need not exist.
    pub(crate) fn list(&self) -> Result<Vec<OrphanFile>> {
        use std::os::unix::fs::MetadataExt as _;
        let entries = match std::fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ArchiveError::io("list", &self.dir)(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(ArchiveError::io("list", &self.dir))?.path();
            let Some((kind, number, run)) = path.file_name().and_then(parse_name) else { continue };
            let metadata = path.metadata().map_err(ArchiveError::io("measure", &path))?;
            let disk_bytes = metadata.blocks() * 512;
            found.push(OrphanFile { path, kind, number, run, disk_bytes });
        }
        found.sort_by(|a, b| {
            (a.kind, a.number, a.run, &a.path).cmp(&(b.kind, b.number, b.run, &b.path))
        });
        Ok(found)
    }

    /// Returns the segment numbers used by orphans of a log.
    pub(super) fn numbers(&self, kind: LogKind) -> Result<Vec<u32>> {
        let of_kind = |orphan: &OrphanFile| orphan.kind == kind;
        Ok(self.list()?.iter().filter(|orphan| of_kind(orphan)).map(|o| o.number).collect())
    }

    /// Moves a segment to the orphan folder. On return the move is durable.
    pub(crate) fn adopt(
        &self,
        segment: &Path,
        kind: LogKind,
        number: u32,
        run: Option<u64>,
    ) -> Result<()> {
        if !self.dir.exists() {
            std::fs::create_dir(&self.dir).map_err(ArchiveError::io("create", &self.dir))?;
            sync_dir(&self.data)?;
        }
        // The data directory is locked, so an unused name stays unused.
        let free = (0..).map(|again| self.dir.join(name(kind, number, run, again)));
        let Some(to) = { free }.find(|path| path.symlink_metadata().is_err()) else {
            return Err(ArchiveError::Internal { what: "no name for an orphan".to_owned() });
        };
        move_file(segment, &to)?;
        tracing::warn!(
            segment = %segment.display(),
            orphan = %to.display(),
            "set aside a segment that the catalog does not name; see `fulgurite archive orphans`"
        );
        Ok(())
    }

    /// Moves orphans that the catalog names back to their log: a newer catalog was restored.
    pub(super) fn reinstate(&self, kind: LogKind, live: &BTreeMap<u32, u64>) -> Result<()> {
        let dir = Paths::new(&self.data).log(kind);
        // If two have the same number, the one of the later run comes first.
        for orphan in self.list()?.into_iter().rev() {
            let segment = segment_path(&dir, orphan.number);
            let is_named = orphan.kind == kind && live.contains_key(&orphan.number);
            if is_named && segment.symlink_metadata().is_err() {
                move_file(&orphan.path, &segment)?;
                tracing::warn!(
                    segment = %segment.display(),
                    "moved an orphaned segment back to its log, because the catalog names it"
                );
            }
        }
        Ok(())
    }

    /// Deletes an orphan for good.
    pub(crate) fn discard(&self, orphan: &OrphanFile) -> Result<()> {
        std::fs::remove_file(&orphan.path).map_err(ArchiveError::io("remove", &orphan.path))?;
        sync_dir(&self.dir)
    }
}

impl OrphanFile {
    /// Returns the number of intact records, and the bodies they belong to. The entry of a body
    /// that spans segments is in the last of them.
    pub(crate) fn content(&self) -> Result<(u64, Vec<ObjectId>)> {
        let mut scan = SegmentScan::open(&self.path, self.kind, self.number)?;
        let (mut records, mut bodies) = (0, Vec::new());
        while let Some(record) = scan.next_record()? {
            match record {
                ScannedRecord::Data(header) | ScannedRecord::Entry(header, _) => {
                    records += 1;
                    bodies.push(header.body);
                }
                ScannedRecord::Torn(_) => {}
            }
        }
        Ok((records, bodies))
    }
}

fn move_file(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).map_err(ArchiveError::io("move", from))?;
    // The new name is synced first: a crash in between leaves both names or the new one.
    for path in [to, from] {
        path.parent().map_or(Ok(()), sync_dir)?;
    }
    Ok(())
}

fn name(kind: LogKind, number: u32, run: Option<u64>, again: u32) -> String {
    let run = run.map_or_else(|| "unknown".to_owned(), |run| run.to_string());
    let again = if again == 0 { String::new() } else { format!("-{again}") };
    format!("{}-{number:08}-run-{run}{again}.seg", kind.folder())
}

fn parse_name(name: &OsStr) -> Option<(LogKind, u32, Option<u64>)> {
    let mut words = name.to_str()?.strip_suffix(".seg")?.split('-');
    let folder = words.next()?;
    let kind = LogKind::ALL.into_iter().find(|kind| kind.folder() == folder)?;
    let number = words.next()?.parse().ok()?;
    let run = words.next().filter(|&word| word == "run").and_then(|_| words.next())?;
    match run {
        "unknown" => Some((kind, number, None)),
        run => Some((kind, number, Some(run.parse().ok()?))),
    }
}

#[cfg(test)]
mod tests;
