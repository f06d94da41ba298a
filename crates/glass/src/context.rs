//! The context of the glass tier: what its archive shares with it, and what it builds from its own
//! configuration.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fulgurite_catalog::{Committer, KeyValue};
use fulgurite_glass_core::control::LibraryShape;
use fulgurite_platter::Geometry;
use fulgurite_tier::FailPoints;
use fulgurite_units::{ArchiveId, ByteCount, Clock, Instant, PlatterId, UnixTime};

use crate::config::GlassConfig;
use crate::far::{self, FarLibrary, FarSource, OpenPlatter};
use crate::medium::SimulatedMedium;
use crate::platter_files::PlatterFiles;
use crate::repairs::Repairs;
use crate::rows::{self, PLATTERS, PlatterRow};
use crate::{GlassError, Panics, PlatterFileSource, Result};

/// What an archive shares with its glass tier.
pub struct Shared {
    /// The archive that the platters belong to.
    pub archive: ArchiveId,
    /// The catalog with the rows of the tier, among others: it was opened with its
    /// [`crate::SPACES`], too.
    pub catalog: Arc<dyn KeyValue>,
    /// The only writer of the catalog.
    pub committer: Arc<Committer>,
    /// The folder of the platters, which only this tier writes to.
    pub folder: PathBuf,
    /// The one clock of the archive.
    pub clock: Clock,
    /// Counts caught panics.
    pub panics: Arc<Panics>,
    /// Fail points, for tests.
    pub fail: Arc<FailPoints>,
    /// Set when long work has to end at its next safe point.
    pub stopping: Arc<AtomicBool>,
    /// Libraries at other sites.
    pub far: Vec<Arc<dyn FarLibrary>>,
}

impl Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (archive, folder) = (&self.archive, &self.folder);
        f.debug_struct("Shared")
            .field("archive", archive)
            .field("folder", folder)
            .finish_non_exhaustive()
    }
}

/// The context of the glass tier.
pub(crate) struct Context {
    pub(crate) archive: ArchiveId,
    pub(crate) catalog: Arc<dyn KeyValue>,
    pub(crate) committer: Arc<Committer>,
    /// The platter files.
    pub(crate) files: PlatterFiles,
    /// The simulated medium of the platters.
    pub(crate) medium: Arc<SimulatedMedium>,
    /// Geometry of new sets.
    pub(crate) geometry: Geometry,
    pub(crate) shard_size: ByteCount,
    /// The shape of the library in which platters are kept.
    pub(crate) shape: LibraryShape,
    clock: Clock,
    pub(crate) panics: Arc<Panics>,
    pub(crate) fail: Arc<FailPoints>,
    /// Counts of repairs.
    pub(crate) repairs: Repairs,
    /// Libraries at other sites.
    pub(crate) far: Vec<Arc<dyn FarLibrary>>,
    /// Redundancy platters of each set that go to other sites.
    pub(crate) far_redundancy: u16,
    stopping: Arc<AtomicBool>,
}

impl Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("archive", &self.archive).finish_non_exhaustive()
    }
}

impl Context {
    /// Creates the context from what is shared and from `config`.
    pub(crate) fn new(shared: Shared, config: &GlassConfig) -> Result<Self> {
        let Shared { archive, catalog, committer, folder, clock, panics, fail, .. } = shared;
        let (stopping, far) = (shared.stopping, shared.far);
        let medium = SimulatedMedium::new(&config.medium, config.library.read_drives())?;
        Ok(Self {
            archive,
            catalog,
            committer,
            files: PlatterFiles::new(folder),
            medium: Arc::new(medium),
            geometry: config.geometry.clone(),
            shard_size: config.shard_size,
            shape: config.library.shape.clone(),
            clock,
            panics,
            fail,
            repairs: Repairs::default(),
            far,
            far_redundancy: config.far_redundancy,
            stopping,
        })
    }

    /// Returns the wall-clock time.
    pub(crate) fn now(&self) -> UnixTime {
        self.clock.now()
    }

    /// Returns the elapsed time.
    pub(crate) fn passed(&self) -> Instant {
        self.clock.passed()
    }

    /// Returns `Stopping` when the archive is being stopped; called between the steps of long work.
    pub(crate) fn check_stopping(&self) -> Result<()> {
        if self.stopping.load(Ordering::SeqCst) { Err(GlassError::Stopping) } else { Ok(()) }
    }

    /// Opens a platter for reading, wherever it is: at home if it is there.
    pub(crate) fn open(&self, platter: PlatterId) -> Result<OpenPlatter> {
        self.home_or_far(platter, self.files.open(platter))
    }

    /// Opens a platter for verification: bytes at home come from the disk, not from the page cache.
    pub(crate) fn open_to_verify(&self, platter: PlatterId) -> Result<OpenPlatter> {
        self.home_or_far(platter, self.files.open_to_verify(platter))
    }

    fn home_or_far(
        &self,
        platter: PlatterId,
        home: Result<PlatterFileSource>,
    ) -> Result<OpenPlatter> {
        let error = match home {
            Ok(file) => return Ok(OpenPlatter::Home(file)),
            Err(error) => error,
        };
        // Its row said that it is away before its file was removed.
        match far::place(&*self.catalog, platter)?.filter(|row| row.is_there) {
            Some(row) => {
                let library = far::named(&self.far, &row.library)?;
                Ok(OpenPlatter::Far(FarSource::open(library, platter)?))
            }
            None => Err(error),
        }
    }

    /// Returns the platters that are stored here according to their rows, but have no file.
    pub(crate) fn missing(&self) -> Result<Vec<PlatterId>> {
        let files: BTreeSet<PathBuf> = self.files.all()?.into_iter().collect();
        let mut missing = Vec::new();
        for (key, row) in rows::readable::<PlatterRow>(&*self.catalog, PLATTERS)?.rows {
            let platter = PlatterId::from_bytes(rows::id(&key)?);
            if row.slot.is_some() && !files.contains(&self.files.path(platter)) {
                missing.push(platter);
            }
        }
        Ok(missing)
    }

    /// Returns a platter file that no row names, if there is one.
    pub(crate) fn find_unknown(&self) -> Result<Option<PlatterId>> {
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
