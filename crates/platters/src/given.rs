//! What the glass tier is given to work with, by whoever opens the archive: the catalog that has
//! its rows, the folder of its platters, and what it shares with all other work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fulgurite_catalog::{Committer, FjallStore, ReadView as _};
use fulgurite_glass::Geometry;
use fulgurite_library::LibraryShape;
use fulgurite_units::{ArchiveId, ByteCount, Clock, PlatterId, UnixTime};

use crate::rows::PLATTERS;
use crate::{FailPoints, Panics, PlatterFiles, PlattersError, Repairs, Result, SimulatedMedium};

/// What the glass tier works with.
#[derive(Debug)]
pub struct Given {
    /// The archive that platters are of.
    pub archive: ArchiveId,
    /// Where its rows are, among others.
    pub catalog: Arc<FjallStore>,
    /// The only writer of the catalog.
    pub committer: Arc<Committer>,
    /// The platters.
    pub files: PlatterFiles,
    /// What they are of.
    pub medium: Arc<SimulatedMedium>,
    /// Geometry of new sets.
    pub geometry: Geometry,
    /// A larger body is shared out to several platters of its set.
    pub shard_size: ByteCount,
    /// Where platters are kept.
    pub shape: LibraryShape,
    /// The time of day.
    pub clock: Clock,
    /// Panics that were caught.
    pub panics: Arc<Panics>,
    /// Where a test may end it.
    pub fail: Arc<FailPoints>,
    /// What was repaired.
    pub repairs: Repairs,
    /// Set when long work shall end at its next safe point.
    pub stopping: Arc<AtomicBool>,
}

impl Given {
    /// The time of day.
    #[must_use]
    pub fn now(&self) -> UnixTime {
        self.clock.now()
    }

    /// `Stopping` when the archive is being stopped; asked between the steps of long work.
    ///
    /// # Errors
    /// When it is.
    pub fn check_stopping(&self) -> Result<()> {
        if self.stopping.load(Ordering::SeqCst) { Err(PlattersError::Stopping) } else { Ok(()) }
    }

    /// A platter file that no row names, if there is one: the catalog may be older than it.
    ///
    /// # Errors
    /// When the disk or the catalog fails.
    pub fn unknown(&self) -> Result<Option<PlatterId>> {
        for path in self.files.all()? {
            let id = path.file_stem().and_then(|stem| stem.to_str()).map(str::parse);
            let Some(Ok(platter)) = id else { continue };
            let platter: PlatterId = platter;
            if self.catalog.get(PLATTERS, &platter.to_bytes())?.is_none() {
                return Ok(Some(platter));
            }
        }
        Ok(None)
    }
}
