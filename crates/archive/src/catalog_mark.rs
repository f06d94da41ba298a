//! High-water marks of the catalog: how old it is, and evidence that it was newer before.
//!
//! A catalog from a backup, or one that lost the end of its journal, looks like any other. Serving
//! it would deny that acknowledged objects exist. So the durable state of the catalog is also
//! recorded outside of it, afterwards, and a start refuses a catalog that is below that.
//!
//! ```text
//! in every batch           meta/commits: the run, and how many batches it has written
//! when it is durable       CommitCounter, in memory
//!   with each new segment    its header: the run, which the catalog counted before
//!   with each small body     its DATA record: how many of the run's batches were durable
//!   at start, stop, each     DIR/catalog.mark: both
//!   deletion, and once a
//!   second of work
//! ```
//!
//! Everything recorded was durable before, so no crash leaves a catalog below it. The converse does
//! not hold: a commit after the last mark may be lost without a trace except at its client. This is
//! no write-ahead log, and never more than two numbers.

mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_catalog::{
    Batch, CatalogError, Direction, FjallStore, KeyRange, KeyValue, ReadView, Space, Visitor,
};
use fulgurite_units::ArchiveId;

pub(crate) use self::file::MarkFile;
use crate::bodies::log::orphans::Orphans;
use crate::bodies::log::record::{RecordKind, SegmentHeader};
use crate::bodies::log::scan::{SegmentScan, read_segment_header};
use crate::bodies::log::{LogKind, list_segments, segment_path};
use crate::commits::CommitCounter;
use crate::directory::Paths;
use crate::limits::MARK_SCAN_BYTES;
use crate::rows::{self, CatalogAge, META};
use crate::{ArchiveError, Result};

/// A catalog that counts each batch inside the batch itself.
#[derive(Debug)]
pub(crate) struct CountingCatalog {
    catalog: Arc<FjallStore>,
    run: u64,
    /// Batches submitted, durable or not: a failed one may have been written all the same.
    tried: AtomicU64,
    durable: Arc<CommitCounter>,
}

impl CountingCatalog {
    /// Wraps the catalog for writes of run `run`.
    pub(crate) fn new(catalog: Arc<FjallStore>, run: u64, durable: Arc<CommitCounter>) -> Self {
        Self { catalog, run, tried: AtomicU64::new(0), durable }
    }
}

impl ReadView for CountingCatalog {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, CatalogError> {
        self.catalog.get(space, key)
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<(), CatalogError> {
        self.catalog.scan(space, range, direction, visit)
    }
}

impl KeyValue for CountingCatalog {
    fn spaces(&self) -> &[Space] {
        self.catalog.spaces()
    }

    fn snapshot(&self) -> Box<dyn ReadView> {
        self.catalog.snapshot()
    }

    fn apply(&self, mut batch: Batch) -> Result<(), CatalogError> {
        let commits = self.tried.fetch_add(1, Ordering::Relaxed) + 1;
        let row = rows::encode(&CatalogAge { run: self.run, commits })
            .map_err(|error| CatalogError::Engine { message: error.to_string() })?;
        let mut count = Batch::new();
        count.put(META, rows::COMMITS_KEY, row)?;
        batch.absorb(count);
        self.catalog.apply(batch)?;
        self.durable.set(commits);
        Ok(())
    }

    fn check(&self) -> Result<(), CatalogError> {
        self.catalog.check()
    }

    fn reopen(&self) -> Result<(), CatalogError> {
        self.catalog.reopen()
    }
}

/// Refuses a catalog that was newer before, and one beside the logs of a newer program.
///
/// # Errors
/// `Unusable` with the evidence and the two ways to proceed, or `Newer`.
pub(crate) fn refuse_older(paths: &Paths, archive: ArchiveId, view: &dyn ReadView) -> Result<()> {
    file::refuse_newer(paths)?;
    let found = rows::catalog_age(view)?;
    let Some((age, witness)) = newer(paths, archive, found)? else { return Ok(()) };
    let (catalog, data) = (paths.catalog(), paths.root());
    Err(ArchiveError::Unusable {
        path: data.display().to_string(),
        reason: format!(
            "the catalog is older than the archive: it ends with {found}, and \"{}\" was written \
             after {age}. Objects stored since would be missing. Nothing was moved or destroyed. \
             Bring the newer catalog back (all of \"{}\"), or run `fulgurite recover --salvage \
             --data {}`, which finds every object whose key exists",
            witness.display(),
            catalog.display(),
            data.display(),
        ),
    })
}

/// Returns the latest run in segments or the mark; no later run may reuse its number.
pub(crate) fn last_run(paths: &Paths, archive: ArchiveId) -> Result<u64> {
    file::refuse_newer(paths)?;
    let mark = file::read(paths, archive).map_or(0, |mark| mark.age.run);
    let runs = segments(paths, archive)?.into_iter().map(|(header, _)| header.run);
    Ok(runs.fold(mark, u64::max))
}

/// Returns evidence that the catalog was newer than `found`, if there is any.
fn newer(
    paths: &Paths,
    archive: ArchiveId,
    found: CatalogAge,
) -> Result<Option<(CatalogAge, PathBuf)>> {
    let mark = file::read(paths, archive);
    if let Some(mark) = mark.filter(|mark| mark.age > found) {
        return Ok(Some((mark.age, paths.catalog_mark())));
    }
    let mut last: BTreeMap<LogKind, (SegmentHeader, PathBuf)> = BTreeMap::new();
    for (header, path) in segments(paths, archive)? {
        if header.run > found.run {
            // A run's first batch is durable before it creates a segment.
            return Ok(Some((CatalogAge { run: header.run, commits: 1 }, path)));
        }
        let is_later = |(known, _): &(SegmentHeader, PathBuf)| known.number < header.number;
        if header.run == found.run
            && header.kind.is_framed()
            && last.get(&header.kind).is_none_or(is_later)
        {
            last.insert(header.kind, (header, path));
        }
    }
    // After a clean shutdown the mark has the run's final count.
    if mark.is_some_and(|mark| mark.age.run == found.run && mark.is_last) {
        return Ok(None);
    }
    for (header, path) in last.into_values() {
        if let Some(commits) = commits_above(&header, &path, found.commits) {
            return Ok(Some((CatalogAge { commits, ..found }, path)));
        }
    }
    Ok(None)
}

/// Returns every segment of the archive with a readable header, in its log or among the orphans.
/// One that cannot be read proves nothing; one of a newer program is refused.
fn segments(paths: &Paths, archive: ArchiveId) -> Result<Vec<(SegmentHeader, PathBuf)>> {
    let mut found = Vec::new();
    for kind in LogKind::ALL {
        let dir = paths.log(kind);
        let numbers = if dir.is_dir() { list_segments(&dir)? } else { Vec::new() };
        found.extend(numbers.into_iter().map(|n| (kind, n, segment_path(&dir, n))));
    }
    let orphans = Orphans::new(paths.root()).list()?;
    found.extend(orphans.into_iter().map(|orphan| (orphan.kind, orphan.number, orphan.path)));
    let with_header = |(kind, number, path): (LogKind, u32, PathBuf)| {
        let header = match read_segment_header(&path) {
            Err(error @ ArchiveError::Newer { .. }) => return Some(Err(error)),
            read => read.ok().flatten()?,
        };
        let is_it = (header.archive, header.kind, header.number) == (archive, kind, number);
        is_it.then_some(Ok((header, path)))
    };
    found.into_iter().filter_map(with_header).collect()
}

/// Returns the first count of durable batches above `known` in the records at the end of the
/// segment.
fn commits_above(segment: &SegmentHeader, path: &Path, known: u64) -> Option<u64> {
    let mut scan = SegmentScan::open(path, segment.kind, segment.number).ok()?;
    scan.skip_to_last(MARK_SCAN_BYTES);
    while let Some(record) = scan.next_record().ok()? {
        let header = record.header();
        if let RecordKind::Data { commits, .. } = header.kind
            && header.run == segment.run
            && u64::from(commits) > known
        {
            return Some(u64::from(commits));
        }
    }
    None
}

#[cfg(test)]
mod tests;
