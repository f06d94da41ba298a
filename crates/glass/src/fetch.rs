//! Reads shards from glass: per platter, each track once, with a degraded read from the platter-set
//! where a platter fails.
//!
//! ```text
//! fetch      library -> drive: tracks of the platter itself  --> completed, remaining
//! bring_set  library: all other platters of its set          --> those that came
//! recover_shards  own tracks that are not lost, the others of the set --> completed, failed
//! ```
//!
//! Between the steps the caller decides what is still wanted, and where work that needs no drive
//! runs. What a shard means to the caller does not matter here: `P` is the caller's name for it.

mod runs;
#[cfg(test)]
mod tests;
mod tracks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_platter::{Medium, Member, PlatterReader, SetDecoder};
use fulgurite_units::{PlatterId, SlotIndex, UnixTime, error_chain};

use self::runs::TrackPositions;
use self::tracks::{DegradedPlatter, OwnPlatter, Reader, TrackCache};
use crate::context::Context;
use crate::far::OpenPlatter;
use crate::library_driver::{LiveLibrary, ReadDeadline};
use crate::medium::MediumHandle;
use crate::repairs::Repairs;
use crate::rows::{self, PLATTERS, PlatterRow, SETS, SetRow};
use crate::{GlassError, Result, Shard, WriteAt};

/// A wanted shard, and the destination of its body.
#[derive(Clone, Debug)]
pub struct ShardRequest<P> {
    /// The caller's name for it.
    pub piece: P,
    /// Where it lies on glass.
    pub shard: Shard,
    /// Where it goes, at its offset in its body.
    pub room: Arc<dyn WriteAt>,
    /// Its deadline.
    pub due: UnixTime,
}

/// The outcome of shards.
#[derive(Debug)]
pub struct Fetched<P> {
    /// Shards that were read, with their CRCs.
    pub completed: Vec<(P, u64)>,
    /// The others, with the reason. Shards of one track share it.
    pub failed: Vec<(P, Arc<GlassError>)>,
}

/// What a drive read of a platter.
#[derive(Debug)]
pub struct PlatterVisit<P> {
    platter: PlatterId,
    /// Whether the platter itself is available, for those of its tracks that can be read.
    brought: bool,
    /// Its lost tracks, which need not be tried again.
    lost: BTreeSet<u32>,
    /// Shards that were read, with their CRCs.
    pub completed: Vec<(P, u64)>,
    /// Shards that were not read, in order of position.
    pub remaining: Vec<ShardRequest<P>>,
}

/// The shards that a platter could not give, with the members of its set that were brought.
#[derive(Debug)]
pub struct SetRecovery<P> {
    platter: PlatterId,
    brought: bool,
    lost: BTreeSet<u32>,
    /// The wanted shards.
    pub requests: Vec<ShardRequest<P>>,
    row: PlatterRow,
    set: SetRow,
    members: Vec<PlatterId>,
}

impl<P> SetRecovery<P> {
    /// Returns the earliest deadline of the shards to recover.
    #[must_use]
    pub fn due(&self) -> Option<UnixTime> {
        self.requests.iter().map(|request| request.due).min()
    }
}

/// Reads shards from the platters of an archive.
#[derive(Clone, Debug)]
pub(crate) struct Fetcher {
    context: Arc<Context>,
    library: LiveLibrary,
    medium: MediumHandle,
    /// The runtime that waits for the library's answers.
    runtime: tokio::runtime::Handle,
}

impl Fetcher {
    /// Creates a fetcher for this library.
    pub(crate) fn new(
        context: &Arc<Context>,
        library: &LiveLibrary,
        runtime: tokio::runtime::Handle,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            library: library.clone(),
            medium: MediumHandle::urgent(&context.medium),
            runtime,
        }
    }

    /// Has the library mount a platter and read the wanted shards. Calls `then` with the result of
    /// each run of neighboring tracks, as soon as that ends.
    pub(crate) fn fetch<P: Copy + Send + Sync + 'static>(
        &self,
        platter: PlatterId,
        requests: Vec<ShardRequest<P>>,
        then: impl FnOnce(PlatterVisit<P>) + Clone + Send + 'static,
    ) -> Result<()> {
        let places = match self.rows(platter) {
            Ok((row, set)) => Some((row.slot, TrackPositions::new(&set, &row))),
            Err(error) => {
                tracing::warn!(%platter, %error, "a platter cannot be looked up");
                None
            }
        };
        let Some((Some(slot), positions)) = places else {
            tracing::warn!(%platter, "platter has no slot in the library; reading its set");
            then(PlatterVisit::nothing(platter, false, requests));
            return Ok(());
        };
        for (span, requests) in positions.runs(requests) {
            let (requests, then) = (Arc::new(requests), then.clone());
            let outcome: Arc<Mutex<Option<PlatterReads>>> = Arc::default();
            let (fetcher, shared) = (self.clone(), Arc::clone(&outcome));
            let shared_requests = Arc::clone(&requests);
            let work = Box::new(move || {
                fetcher.context.fail.pass("read-platter");
                let read = fetcher.read_platter(platter, &shared_requests);
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
            });
            let due = self.due(&requests);
            let answer = self.library.read(platter, SlotIndex::new(slot), span, due, work)?;
            self.runtime.spawn(async move {
                let brought = answer.ended().await;
                if let Err(error) = &brought {
                    tracing::warn!(%platter, %error, "the library did not bring a platter");
                }
                let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
                then(PlatterVisit::new(platter, brought.is_ok(), &requests, outcome));
            });
        }
        Ok(())
    }

    /// Returns the earliest deadline of the requests.
    fn due<P>(&self, requests: &[ShardRequest<P>]) -> ReadDeadline {
        let first = requests.iter().map(|request| request.due).min();
        first.map_or(ReadDeadline::OBJECTIVE, |first| ReadDeadline::new(first, self.context.now()))
    }

    fn rows(&self, platter: PlatterId) -> Result<(PlatterRow, SetRow)> {
        let missing =
            || GlassError::Corrupt { what: format!("platter {platter} is not in the catalog") };
        let catalog = &*self.context.catalog;
        let row: Option<PlatterRow> = rows::get(catalog, PLATTERS, &platter.to_bytes())?;
        let row = row.ok_or_else(missing)?;
        let set: Option<SetRow> = rows::get(catalog, SETS, &row.set.to_bytes())?;
        Ok((row, set.ok_or_else(missing)?))
    }

    fn open(&self, platter: PlatterId) -> Result<Reader> {
        let source = self.context.open(platter)?;
        let expected = Some((self.context.archive, platter));
        Ok(PlatterReader::open(source, expected, &self.medium)?)
    }

    /// Reads the requested shards, which are in order of position, from the platter alone.
    fn read_platter<P>(&self, platter: PlatterId, requests: &[ShardRequest<P>]) -> PlatterReads {
        match self.open(platter) {
            Ok(reader) => {
                PlatterReads::read(&reader, &self.medium, &self.context.repairs, requests)
            }
            Err(error) => {
                let reason = error_chain(&error);
                tracing::warn!(%platter, reason, "platter cannot be opened; reading its set");
                PlatterReads { remaining: (0..requests.len()).collect(), ..PlatterReads::default() }
            }
        }
    }

    /// Asks the library for all other platters of a set at once, for what a visit left. Calls
    /// `then` when the last of them was brought, or could not be.
    pub(crate) fn bring_set<P: Send + 'static>(
        &self,
        visited: PlatterVisit<P>,
        then: impl FnOnce(SetRecovery<P>) + Send + 'static,
    ) -> Result<()> {
        let PlatterVisit { platter, brought, lost, remaining: requests, .. } = visited;
        let (row, set) = self.rows(platter)?;
        let (span, due) = (TrackPositions::new(&set, &row).span(&requests), self.due(&requests));
        let mut pending = Vec::new();
        for (_, member) in set.platters().filter(|&(_, member)| member != platter) {
            let slot = self.rows(member)?.0.slot.filter(|_| self.context.files.exists(member));
            let answer = match slot.map(SlotIndex::new) {
                Some(slot) => Some(self.library.read(member, slot, span, due, Box::new(|| {}))?),
                None => None,
            };
            pending.push((member, answer));
        }
        self.runtime.spawn(async move {
            let mut members = Vec::new();
            for (member, answer) in pending {
                // Members without a slot or a file need no drive to find that out.
                let ended = match answer {
                    Some(answer) => answer.ended().await,
                    None => Ok(()),
                };
                match ended {
                    Ok(()) => members.push(member),
                    Err(error) => {
                        tracing::warn!(platter = %member, %error, "the library brings no platter");
                    }
                }
            }
            then(SetRecovery { platter, brought, lost, requests, row, set, members });
        });
        Ok(())
    }

    /// Recovers shards of a platter that could not give them from the other platters of its set.
    /// Platters that the library did not bring are not read, even if their files exist. Other sites
    /// are only asked for what those at home do not give.
    pub(crate) fn recover_shards<P: Copy>(&self, recovery: &SetRecovery<P>) -> Fetched<P> {
        let own = if recovery.brought { self.open(recovery.platter).ok() } else { None };
        let is_home = |member: &PlatterId| self.context.files.exists(*member);
        let (home, elsewhere): (Vec<PlatterId>, Vec<PlatterId>) =
            recovery.members.iter().copied().partition(is_home);
        let (home, elsewhere) = (self.open_members(&home), || self.open_members(&elsewhere));
        let medium = (&self.medium as &dyn Medium, &self.context.repairs);
        recover_from_sets(recovery, own.as_ref(), home, elsewhere, medium)
    }

    /// Opens the members of a set that the library brought.
    fn open_members(&self, members: &[PlatterId]) -> BTreeMap<PlatterId, Reader> {
        let mut opened = BTreeMap::new();
        for &member in members {
            match self.open(member) {
                Ok(reader) => {
                    opened.insert(member, reader);
                }
                Err(error) => {
                    let reason = error_chain(&error);
                    tracing::warn!(platter = %member, reason, "platter counts as lost");
                }
            }
        }
        opened
    }
}

/// Recovers wanted shards from a platter, from the others of its set at home, and only then from
/// those `elsewhere`.
fn recover_from_sets<P: Copy>(
    recovery: &SetRecovery<P>,
    own: Option<&Reader>,
    mut other_readers: BTreeMap<PlatterId, Reader>,
    elsewhere: impl FnOnce() -> BTreeMap<PlatterId, Reader>,
    (medium, repairs): (&dyn Medium, &Repairs),
) -> Fetched<P> {
    let all: Vec<&ShardRequest<P>> = recovery.requests.iter().collect();
    let mut fetched = recover_from_set(recovery, &all, own, &other_readers, (medium, repairs));
    if !fetched.failed.is_empty() {
        let more = elsewhere();
        if !more.is_empty() {
            other_readers.extend(more);
            let remaining: Vec<&ShardRequest<P>> =
                fetched.failed.iter().map(|(request, _)| *request).collect();
            let more =
                recover_from_set(recovery, &remaining, own, &other_readers, (medium, repairs));
            fetched.completed.extend(more.completed);
            fetched.failed = more.failed;
        }
    }
    Fetched {
        completed: fetched
            .completed
            .into_iter()
            .map(|(request, crc)| (request.piece, crc))
            .collect(),
        failed: fetched
            .failed
            .into_iter()
            .map(|(request, reason)| (request.piece, reason))
            .collect(),
    }
}

/// Recovers the `wanted` shards from a platter and the others of its set.
fn recover_from_set<'w, P: Copy>(
    recovery: &SetRecovery<P>,
    wanted: &[&'w ShardRequest<P>],
    own: Option<&Reader>,
    other_readers: &BTreeMap<PlatterId, Reader>,
    (medium, repairs): (&dyn Medium, &Repairs),
) -> Fetched<&'w ShardRequest<P>> {
    let SetRecovery { platter, lost, row, set, .. } = recovery;
    let mut all = Fetched { completed: Vec::new(), failed: Vec::new() };
    let Some(some) = own.or_else(|| other_readers.values().next()) else {
        let reason = Arc::new(GlassError::SetMissing { platter: *platter });
        all.failed.extend(wanted.iter().map(|request| (*request, Arc::clone(&reason))));
        return all;
    };
    let mut members: Vec<Member<'_, OpenPlatter>> = Vec::new();
    members.resize_with(usize::from(set.geometry.set_platters()), || Member::NotWritten);
    for (position, member) in set.platters() {
        members[usize::from(position)] =
            other_readers.get(&member).map_or(Member::Lost, Member::Platter);
    }
    let mut tracks = DegradedPlatter {
        own: own.map(|reader| OwnPlatter { reader, medium, repairs }),
        lost,
        members: &members,
        position: usize::from(row.position),
        decoder: SetDecoder::new(some.header()),
        medium,
        repairs,
    };
    let mut track_cache = TrackCache::default();
    for &request in wanted {
        match track_cache.read_shard(&some.header().geometry, &mut tracks, request) {
            Ok(crc) => all.completed.push((request, crc)),
            Err(reason) => all.failed.push((request, reason)),
        }
    }
    all
}

impl<P> PlatterVisit<P> {
    /// Returns a visit in which nothing was read.
    fn nothing(platter: PlatterId, brought: bool, remaining: Vec<ShardRequest<P>>) -> Self {
        Self { platter, brought, lost: BTreeSet::new(), completed: Vec::new(), remaining }
    }
}

impl<P: Copy> PlatterVisit<P> {
    fn new(
        platter: PlatterId,
        brought: bool,
        requests: &[ShardRequest<P>],
        outcome: Option<PlatterReads>,
    ) -> Self {
        let Some(PlatterReads { completed, remaining, lost }) = outcome.filter(|_| brought) else {
            return Self::nothing(platter, brought, requests.to_vec());
        };
        let completed =
            completed.into_iter().map(|(index, crc)| (requests[index].piece, crc)).collect();
        let remaining = remaining.into_iter().map(|index| requests[index].clone()).collect();
        Self { platter, brought, lost, completed, remaining }
    }
}

/// Which requests were read from their own platter, with their CRCs, which were not, and which
/// tracks are lost.
#[derive(Debug, Default)]
struct PlatterReads {
    completed: Vec<(usize, u64)>,
    remaining: Vec<usize>,
    lost: BTreeSet<u32>,
}

impl PlatterReads {
    /// Reads the requested shards, which are in order of position.
    fn read<P>(
        reader: &Reader,
        medium: &dyn Medium,
        repairs: &Repairs,
        requests: &[ShardRequest<P>],
    ) -> Self {
        let header = reader.header();
        let mut read = Self::default();
        let (mut track_cache, mut own) =
            (TrackCache::default(), OwnPlatter { reader, medium, repairs });
        for (index, request) in requests.iter().enumerate() {
            match track_cache.read_shard(&header.geometry, &mut own, request) {
                Ok(crc) => read.completed.push((index, crc)),
                Err(error) => {
                    let reason = error_chain(&*error);
                    let platter = header.platter;
                    tracing::warn!(%platter, reason, "a track needs the platter's set");
                    read.remaining.push(index);
                }
            }
        }
        read.lost = track_cache.lost();
        read
    }
}
