//! Libraries at other sites, which keep redundancy platters of this archive's sets.
//!
//! ```text
//! home library --carried--> far library        each platter is in one of both, or in both
//! platter lost at home: its set at home, and only if that is not enough the far ones
//! ```
//!
//! The implementation of a far library is passed in. Its machines are not simulated: a platter
//! there is bytes that can be read from any offset at once. They are decoded here.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_catalog::{KeyRange, ReadView};
use fulgurite_platter::PlatterSource;
use fulgurite_units::{PlatterId, error_chain};

use crate::limits::FAR_WINDOW_BYTES;
use crate::rows::{self, FAR, FarRow};
use crate::{GlassError, PlatterFileSource, Result};

/// A library at another site. Its calls block for as long as the network takes.
pub trait FarLibrary: Debug + Send + Sync {
    /// Its name, by which rows refer to it.
    fn name(&self) -> &str;

    /// Stores a platter of this many bytes, which `read` returns from any offset. When this
    /// returns, the platter is complete there and on stable storage. Storing it again replaces it.
    ///
    /// # Errors
    /// `FarUnavailable` when it is not stored, and those of `read`.
    fn put(&self, platter: PlatterId, bytes: u64, read: ReadPlatter<'_>) -> Result<()>;

    /// Returns the bytes of a platter; `None` when it is certainly not there.
    ///
    /// # Errors
    /// `FarUnavailable` when that cannot be determined.
    fn bytes(&self, platter: PlatterId) -> Result<Option<u64>>;

    /// Fills `buffer` from byte `offset` of a platter.
    ///
    /// # Errors
    /// `FarUnavailable` when it cannot be read now, or is not there.
    fn read_at(&self, platter: PlatterId, offset: u64, buffer: &mut [u8]) -> Result<()>;

    /// Lists all platters that are there.
    ///
    /// # Errors
    /// `FarUnavailable` when that cannot be determined.
    fn platters(&self) -> Result<Vec<PlatterId>>;
}

/// Fills a buffer from an offset of a platter.
pub type ReadPlatter<'a> = &'a mut (dyn FnMut(u64, &mut [u8]) -> Result<()> + Send);

/// The far libraries of an archive.
pub(crate) type FarLibraries = [Arc<dyn FarLibrary>];

/// Returns where a platter belongs, if that is another site.
pub(crate) fn place(view: &dyn ReadView, platter: PlatterId) -> Result<Option<FarRow>> {
    rows::get(view, FAR, &platter.to_bytes())
}

/// Returns all platters that belong to other sites.
pub(crate) fn places(view: &dyn ReadView) -> Result<Vec<(PlatterId, FarRow)>> {
    let all: Vec<(Vec<u8>, FarRow)> = rows::rows_in(view, FAR, &KeyRange::prefix(b""), usize::MAX)?;
    all.into_iter().map(|(key, row)| Ok((PlatterId::from_bytes(rows::id(&key)?), row))).collect()
}

/// Returns the library of this name.
pub(crate) fn named<'a>(
    libraries: &'a FarLibraries,
    name: &str,
) -> Result<&'a Arc<dyn FarLibrary>> {
    libraries.iter().find(|library| library.name() == name).ok_or_else(|| {
        let what = "the configuration no longer has a far library of this name".to_owned();
        GlassError::FarUnavailable { library: name.to_owned(), what }
    })
}

/// An open platter, wherever it is.
#[derive(Debug)]
pub(crate) enum OpenPlatter {
    Home(PlatterFileSource),
    Far(FarSource),
}

impl PlatterSource for OpenPlatter {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        match self {
            Self::Home(file) => file.read_at(offset, buffer),
            Self::Far(far) => far.read_at(offset, buffer),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Home(file) => file.bytes(),
            Self::Far(far) => far.bytes,
        }
    }
}

/// A platter at another site, read through a window.
#[derive(Debug)]
pub(crate) struct FarSource {
    library: Arc<dyn FarLibrary>,
    platter: PlatterId,
    bytes: u64,
    /// The bytes read last, and their offset.
    window: Mutex<(u64, Vec<u8>)>,
}

impl FarSource {
    /// Opens the platter there.
    ///
    /// # Errors
    /// When it is not there, or that cannot be determined.
    pub(crate) fn open(library: &Arc<dyn FarLibrary>, platter: PlatterId) -> Result<Self> {
        let bytes = library.bytes(platter)?.ok_or_else(|| GlassError::PlatterUnreadable {
            platter,
            reason: format!("it is not in far library \"{}\"", library.name()),
        })?;
        Ok(Self { library: Arc::clone(library), platter, bytes, window: Mutex::default() })
    }

    fn fill(&self, window: &mut (u64, Vec<u8>), offset: u64, bytes: u64) -> Result<()> {
        let until = (offset + bytes.max(FAR_WINDOW_BYTES)).min(self.bytes.max(offset + bytes));
        let mut fetched = vec![0; usize::try_from(until - offset).unwrap_or(usize::MAX)];
        self.library.read_at(self.platter, offset, &mut fetched)?;
        *window = (offset, fetched);
        Ok(())
    }
}

impl PlatterSource for FarSource {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        let wanted = buffer.len() as u64;
        if offset.checked_add(wanted).is_none_or(|end| end > self.bytes) {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = |window: &(u64, Vec<u8>)| {
            window.0 <= offset && offset + wanted <= window.0 + window.1.len() as u64
        };
        if !holds(&window) {
            let filled = self.fill(&mut window, offset, wanted);
            filled.map_err(|error| std::io::Error::other(error_chain(&error)))?;
        }
        let from = usize::try_from(offset - window.0).unwrap_or(usize::MAX);
        buffer.copy_from_slice(&window.1[from..from + buffer.len()]);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
pub(crate) mod tests;
