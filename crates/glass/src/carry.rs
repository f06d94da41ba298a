//! Carries redundancy platters to far libraries, once their set is stored at home.
//!
//! ```text
//! set stored --assigned--> at home --put, read back--> in both --row says so--> away, file removed
//! ```
//!
//! Every step is idempotent: a crash leaves a platter at home, or in both places. Until its row
//! says that it is away, it is read at home.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fulgurite_catalog::Transaction;
use fulgurite_glass_core::plan::choose_far;
use fulgurite_platter::PlatterSource as _;
use fulgurite_units::{PlatterId, SetId, SlotIndex};

use crate::context::Context;
use crate::far::{FarLibrary, places};
use crate::limits::{FAR_COMPARE_BYTES, ROWS_PER_TRANSACTION_MAX};
use crate::rows::{self, FAR, FarRow, PLATTERS, PlatterRow, SETS, SLOTS, SetRow, SetState};
use crate::{GlassError, PlatterFileSource, Result};

/// Carries platters to far libraries.
#[derive(Debug)]
pub struct Carrier {
    context: Arc<Context>,
    /// Whether the cleanup after a start is done.
    has_begun: bool,
}

impl Carrier {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self { context: Arc::clone(context), has_begun: false }
    }

    /// Carries all platters that belong to far libraries and are at home. A library that does not
    /// answer does not delay the others. `on_progress` receives progress messages.
    ///
    /// # Errors
    /// The first failure; what could be carried was.
    pub fn run(&mut self, on_progress: &dyn Fn(String)) -> Result<()> {
        if self.context.far.is_empty() {
            return Ok(());
        }
        let mut failures = Vec::new();
        if !self.has_begun {
            failures.extend(self.begin()?);
            self.has_begun = failures.is_empty();
        }
        self.assign()?;
        let waiting = places(&*self.context.catalog)?;
        for library in &self.context.far {
            let is_for = |row: &FarRow| !row.is_there && row.library == library.name();
            let platters = waiting.iter().filter(|(_, row)| is_for(row));
            for (at, (platter, row)) in platters.enumerate() {
                self.context.check_stopping()?;
                on_progress(format!("carrying platter {} to {}", at + 1, library.name()));
                match self.carry(&**library, *platter, row) {
                    Ok(()) => {}
                    Err(GlassError::Stopping) => return Err(GlassError::Stopping),
                    Err(error @ GlassError::FarUnavailable { .. }) => {
                        failures.push(error);
                        break;
                    }
                    // The failure concerns one platter; the others can go.
                    Err(error) => failures.push(error),
                }
            }
        }
        failures.into_iter().next().map_or(Ok(()), Err)
    }

    /// Cleans up after a crash, or after a recovery that did not reach a far library: files of
    /// platters that are away, and platters whose location no row records.
    fn begin(&self) -> Result<Option<GlassError>> {
        let mut failure = None;
        let mut is_known = BTreeSet::new();
        for (platter, row) in places(&*self.context.catalog)? {
            is_known.insert(platter);
            if row.is_there && self.context.files.exists(platter) {
                match self.is_away(platter, &row) {
                    Ok(true) => self.context.files.remove(platter)?,
                    // The library does not have what it acknowledged: the copy at home is sent
                    // again.
                    Ok(false) => self.record(platter, FarRow { is_there: false, ..row })?,
                    Err(GlassError::Stopping) => return Err(GlassError::Stopping),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
        }
        for (set, row) in self.stored_sets()? {
            let missing = |platter: &PlatterId| {
                !is_known.contains(platter) && !self.context.files.exists(*platter)
            };
            for platter in row.redundancy.iter().copied().filter(missing) {
                if let Err(error) = self.search_far(set, platter) {
                    failure = failure.or(Some(error));
                }
            }
        }
        Ok(failure)
    }

    /// Whether the library of a platter has the same bytes as the copy at home: no copy at home is
    /// removed on the word of a row alone.
    fn is_away(&self, platter: PlatterId, row: &FarRow) -> Result<bool> {
        let library = crate::far::named(&self.context.far, &row.library)?;
        self.is_same(&**library, platter, &self.context.files.open(platter)?)
    }

    /// Searches the far libraries for a platter that is not at home and that no row locates.
    fn search_far(&self, set: SetId, platter: PlatterId) -> Result<()> {
        for library in &self.context.far {
            if let Some(bytes) = library.bytes(platter)? {
                tracing::info!(%set, %platter, library = library.name(), "a platter was found");
                let library = library.name().to_owned();
                return self.record_away(platter, FarRow { library, is_there: true, bytes });
            }
        }
        Ok(())
    }

    fn stored_sets(&self) -> Result<Vec<(SetId, SetRow)>> {
        let sets = rows::readable::<SetRow>(&*self.context.catalog, SETS)?.rows;
        let stored = sets.into_iter().filter(|(_, row)| row.state >= SetState::Stored);
        stored.map(|(key, row)| Ok((SetId::from_bytes(rows::id(&key)?), row))).collect()
    }

    /// Assigns each platter of newly stored sets to a library.
    fn assign(&self) -> Result<()> {
        let known: BTreeMap<PlatterId, FarRow> =
            places(&*self.context.catalog)?.into_iter().collect();
        let libraries = &self.context.far;
        let index = |name: &str| {
            libraries.iter().position(|library| library.name() == name).unwrap_or(usize::MAX)
        };
        let mut counts = vec![0_u64; libraries.len()];
        for row in known.values() {
            if let Some(count) = counts.get_mut(index(&row.library)) {
                *count += 1;
            }
        }
        let mut assigned = Vec::new();
        for (_, row) in self.stored_sets()? {
            let library_index = |platter| known.get(platter).map(|row| index(&row.library));
            let placed: Vec<Option<usize>> = row.redundancy.iter().map(library_index).collect();
            let away = usize::from(self.context.far_redundancy);
            let places = choose_far(&placed, away, &counts);
            for ((platter, before), place) in row.redundancy.iter().zip(placed).zip(places) {
                let is_new = before.is_none() && self.context.files.exists(*platter);
                let Some(at) = place.filter(|_| is_new) else { continue };
                counts[at] += 1;
                let library = libraries[at].name().to_owned();
                let bytes = self.context.files.open(*platter)?.bytes();
                assigned.push((*platter, FarRow { library, is_there: false, bytes }));
            }
        }
        for batch in assigned.chunks(ROWS_PER_TRANSACTION_MAX) {
            let batch = batch.to_vec();
            self.context.committer.commit_blocking(
                move |tx: &mut Transaction<'_>| -> Result<()> {
                    for (platter, row) in &batch {
                        rows::put(tx, FAR, platter.to_bytes().to_vec(), row)?;
                    }
                    Ok(())
                },
            )?;
        }
        Ok(())
    }

    /// Carries one platter to its library.
    fn carry(&self, library: &dyn FarLibrary, platter: PlatterId, row: &FarRow) -> Result<()> {
        let file = match self.context.files.open(platter) {
            Ok(file) => file,
            // Lost at home. Only the library can tell whether it was there before. A platter that
            // merely could not be opened is not lost.
            Err(error) => {
                if !is_lost(&error) || library.bytes(platter)? != Some(row.bytes) {
                    return Err(error);
                }
                return self.record_away(platter, FarRow { is_there: true, ..row.clone() });
            }
        };
        let bytes = file.bytes();
        if !self.is_same(library, platter, &file)? {
            self.put(library, platter, &file)?;
            if !self.is_same(library, platter, &file)? {
                return Err(GlassError::FarUnavailable {
                    library: library.name().to_owned(),
                    what: format!("it returns platter {platter} with other bytes than were sent"),
                });
            }
        }
        self.context.fail.pass("far-carried");
        self.record_away(platter, FarRow { is_there: true, bytes, ..row.clone() })?;
        self.context.fail.pass("far-recorded");
        self.context.files.remove(platter)
    }

    fn put(
        &self,
        library: &dyn FarLibrary,
        platter: PlatterId,
        file: &PlatterFileSource,
    ) -> Result<()> {
        let path = self.context.files.path(platter);
        let mut read = |offset: u64, buffer: &mut [u8]| {
            self.context.check_stopping()?;
            file.read_at(offset, buffer).map_err(GlassError::io("read", &path))
        };
        library.put(platter, file.bytes(), &mut read)
    }

    /// Whether the library returns the same bytes as the copy at home.
    fn is_same(
        &self,
        library: &dyn FarLibrary,
        platter: PlatterId,
        file: &PlatterFileSource,
    ) -> Result<bool> {
        if library.bytes(platter)? != Some(file.bytes()) {
            return Ok(false);
        }
        let path = self.context.files.path(platter);
        let (mut here, mut there) = (Vec::new(), Vec::new());
        let mut offset = 0;
        while offset < file.bytes() {
            self.context.check_stopping()?;
            let count = FAR_COMPARE_BYTES.min(file.bytes() - offset);
            here.resize(usize::try_from(count).unwrap_or(usize::MAX), 0);
            there.resize(here.len(), 0);
            file.read_at(offset, &mut here).map_err(GlassError::io("read", &path))?;
            library.read_at(platter, offset, &mut there)?;
            if here != there {
                return Ok(false);
            }
            offset += count;
        }
        Ok(true)
    }

    fn record(&self, platter: PlatterId, far: FarRow) -> Result<()> {
        let record =
            move |tx: &mut Transaction<'_>| rows::put(tx, FAR, platter.to_bytes().to_vec(), &far);
        self.context.committer.commit_blocking(record)
    }

    /// Records that a platter is away; its slot at home becomes free.
    fn record_away(&self, platter: PlatterId, far: FarRow) -> Result<()> {
        self.context.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            let key = platter.to_bytes().to_vec();
            if let Some(mut row) = rows::get::<PlatterRow>(tx, PLATTERS, &key)?
                && let Some(slot) = row.slot.take().map(SlotIndex::new)
            {
                tx.delete(SLOTS, rows::slot_key(slot.get()))?;
                rows::put(tx, PLATTERS, key.clone(), &row)?;
            }
            rows::put(tx, FAR, key, &far)
        })
    }
}

/// Whether a platter could not be opened because it does not exist.
fn is_lost(error: &GlassError) -> bool {
    use std::io::ErrorKind::NotFound;
    matches!(error, GlassError::Io { source, .. } if source.kind() == NotFound)
}

/// The status of a far library.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FarStatus {
    /// Its name.
    pub library: String,
    /// Platters that are there.
    pub platters: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Platters that belong there and are still at home.
    pub waiting: u64,
}

/// Returns the status of all configured libraries, and of those that hold platters.
pub(crate) fn status(context: &Context) -> Result<Vec<FarStatus>> {
    let mut all: BTreeMap<String, FarStatus> = BTreeMap::new();
    for library in &context.far {
        all.entry(library.name().to_owned()).or_default();
    }
    for (_, row) in places(&*context.catalog)? {
        let status = all.entry(row.library).or_default();
        if row.is_there {
            status.platters += 1;
            status.bytes += row.bytes;
        } else {
            status.waiting += 1;
        }
    }
    let named = |(library, status)| FarStatus { library, ..status };
    Ok(all.into_iter().map(named).collect())
}

#[cfg(test)]
mod tests;
