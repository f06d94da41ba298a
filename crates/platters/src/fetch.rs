//! Reads shards from glass: per platter, each track once, with a degraded read from the platter-set
//! where a platter fails.
//!
//! ```text
//! fetch      library -> drive: tracks of the platter itself  --> came, left
//! bring_set  library: all other platters of its set          --> those that came
//! put_together  own tracks that are not lost, the others of the set --> came, failed
//! ```
//!
//! Between the steps the caller decides what is still wanted, and where work that needs no drive
//! runs. What a shard means to the caller does not matter here: `P` is the caller's name for it.

mod stretches;
#[cfg(test)]
mod tests;
mod tracks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_glass::{Medium, Member, PlatterReader, SetDecoder};
use fulgurite_units::{PlatterId, SlotIndex, UnixTime, error_chain};

use self::stretches::Tracked;
use self::tracks::{AtHand, Own, Reader, WithSet};
use crate::far::OpenPlatter;
use crate::given::Given;
use crate::library_driver::{Due, LiveLibrary};
use crate::medium::MediumHandle;
use crate::repairs::Repairs;
use crate::rows::{self, PLATTERS, PlatterRow, SETS, SetRow};
use crate::{PlattersError, Result, Shard, WriteAt};

/// A wanted shard, and the destination of its body.
#[derive(Clone, Debug)]
pub struct Wish<P> {
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
    pub came: Vec<(P, u64)>,
    /// The others, with the reason. Shards of one track share it.
    pub failed: Vec<(P, Arc<PlattersError>)>,
}

/// What a drive read of a platter.
#[derive(Debug)]
pub struct Visited<P> {
    platter: PlatterId,
    /// Whether the platter itself is available, for those of its tracks that can be read.
    brought: bool,
    /// Its lost tracks, which need not be tried again.
    lost: BTreeSet<u32>,
    /// Shards that were read, with their CRCs.
    pub came: Vec<(P, u64)>,
    /// Shards that were not read, in order of position.
    pub left: Vec<Wish<P>>,
}

/// The shards that a platter could not give, with the members of its set that were brought.
#[derive(Debug)]
pub struct SetBrought<P> {
    platter: PlatterId,
    brought: bool,
    lost: BTreeSet<u32>,
    /// The wanted shards.
    pub wishes: Vec<Wish<P>>,
    row: PlatterRow,
    set: SetRow,
    members: Vec<PlatterId>,
}

impl<P> SetBrought<P> {
    /// Returns the earliest deadline of the shards to recover.
    #[must_use]
    pub fn due(&self) -> Option<UnixTime> {
        self.wishes.iter().map(|wish| wish.due).min()
    }
}

/// Reads shards from the platters of an archive.
#[derive(Clone, Debug)]
pub(crate) struct Fetcher {
    given: Arc<Given>,
    library: LiveLibrary,
    medium: MediumHandle,
    /// The runtime that waits for the library's answers.
    answers: tokio::runtime::Handle,
}

impl Fetcher {
    /// Creates a fetcher for this library.
    pub(crate) fn new(
        given: &Arc<Given>,
        library: &LiveLibrary,
        answers: tokio::runtime::Handle,
    ) -> Self {
        Self {
            given: Arc::clone(given),
            library: library.clone(),
            medium: MediumHandle::urgent(&given.medium),
            answers,
        }
    }

    /// Has the library mount a platter and read the wanted shards. Calls `then` with the result of
    /// each run of neighboring tracks, as soon as that ends.
    pub(crate) fn fetch<P: Copy + Send + Sync + 'static>(
        &self,
        platter: PlatterId,
        wishes: Vec<Wish<P>>,
        then: impl FnOnce(Visited<P>) + Clone + Send + 'static,
    ) -> Result<()> {
        let places = match self.rows(platter) {
            Ok((row, set)) => Some((row.slot, Tracked::new(&set, &row))),
            Err(error) => {
                tracing::warn!(%platter, %error, "a platter cannot be looked up");
                None
            }
        };
        let Some((Some(slot), tracked)) = places else {
            tracing::warn!(%platter, "a platter has no slot in the library; its set is asked");
            then(Visited::nothing(platter, false, wishes));
            return Ok(());
        };
        for (span, wishes) in tracked.stretches(wishes) {
            let (wishes, then) = (Arc::new(wishes), then.clone());
            let outcome: Arc<Mutex<Option<OfPlatter>>> = Arc::default();
            let (fetcher, shared) = (self.clone(), Arc::clone(&outcome));
            let wished = Arc::clone(&wishes);
            let work = Box::new(move || {
                fetcher.given.fail.pass("read-platter");
                let read = fetcher.read_platter(platter, &wished);
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
            });
            let due = self.due(&wishes);
            let answer = self.library.read(platter, SlotIndex::new(slot), span, due, work)?;
            self.answers.spawn(async move {
                let brought = answer.ended().await;
                if let Err(error) = &brought {
                    tracing::warn!(%platter, %error, "the library did not bring a platter");
                }
                let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
                then(Visited::new(platter, brought.is_ok(), &wishes, outcome));
            });
        }
        Ok(())
    }

    /// Returns the earliest deadline of the wishes.
    fn due<P>(&self, wishes: &[Wish<P>]) -> Due {
        let first = wishes.iter().map(|wish| wish.due).min();
        first.map_or(Due::OBJECTIVE, |first| Due::new(first, self.given.now()))
    }

    fn rows(&self, platter: PlatterId) -> Result<(PlatterRow, SetRow)> {
        let missing =
            || PlattersError::Corrupt { what: format!("platter {platter} is not in the catalog") };
        let catalog = &*self.given.catalog;
        let row: Option<PlatterRow> = rows::get(catalog, PLATTERS, &platter.to_bytes())?;
        let row = row.ok_or_else(missing)?;
        let set: Option<SetRow> = rows::get(catalog, SETS, &row.set.to_bytes())?;
        Ok((row, set.ok_or_else(missing)?))
    }

    fn open(&self, platter: PlatterId) -> Result<Reader> {
        let source = self.given.open(platter)?;
        let expected = Some((self.given.archive, platter));
        Ok(PlatterReader::open(source, expected, &self.medium)?)
    }

    /// Reads the wishes, which are in order of position, from the platter alone.
    fn read_platter<P>(&self, platter: PlatterId, wishes: &[Wish<P>]) -> OfPlatter {
        match self.open(platter) {
            Ok(reader) => OfPlatter::read(&reader, &self.medium, &self.given.repairs, wishes),
            Err(error) => {
                let reason = error_chain(&error);
                tracing::warn!(%platter, reason, "platter cannot be opened; its set is asked");
                OfPlatter { left: (0..wishes.len()).collect(), ..OfPlatter::default() }
            }
        }
    }

    /// Asks the library for all other platters of a set at once, for what a visit left. Calls
    /// `then` when the last of them was brought, or could not be.
    pub(crate) fn bring_set<P: Send + 'static>(
        &self,
        visited: Visited<P>,
        then: impl FnOnce(SetBrought<P>) + Send + 'static,
    ) -> Result<()> {
        let Visited { platter, brought, lost, left: wishes, .. } = visited;
        let (row, set) = self.rows(platter)?;
        let (span, due) = (Tracked::new(&set, &row).span(&wishes), self.due(&wishes));
        let mut asked = Vec::new();
        for (_, member) in set.platters().filter(|&(_, member)| member != platter) {
            let slot = self.rows(member)?.0.slot.filter(|_| self.given.files.exists(member));
            let answer = match slot.map(SlotIndex::new) {
                Some(slot) => Some(self.library.read(member, slot, span, due, Box::new(|| {}))?),
                None => None,
            };
            asked.push((member, answer));
        }
        self.answers.spawn(async move {
            let mut members = Vec::new();
            for (member, answer) in asked {
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
            then(SetBrought { platter, brought, lost, wishes, row, set, members });
        });
        Ok(())
    }

    /// Recovers shards of a platter that could not give them from the other platters of its set.
    /// Platters that the library did not bring are not read, even if their files exist. Other sites
    /// are only asked for what those at home do not give.
    pub(crate) fn put_together<P: Copy>(&self, recovery: &SetBrought<P>) -> Fetched<P> {
        let own = if recovery.brought { self.open(recovery.platter).ok() } else { None };
        let is_home = |member: &PlatterId| self.given.files.exists(*member);
        let (home, elsewhere): (Vec<PlatterId>, Vec<PlatterId>) =
            recovery.members.iter().copied().partition(is_home);
        let (home, elsewhere) = (self.open_members(&home), || self.open_members(&elsewhere));
        let medium = (&self.medium as &dyn Medium, &self.given.repairs);
        from_sets(recovery, own.as_ref(), home, elsewhere, medium)
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
fn from_sets<P: Copy>(
    recovery: &SetBrought<P>,
    own: Option<&Reader>,
    mut others: BTreeMap<PlatterId, Reader>,
    elsewhere: impl FnOnce() -> BTreeMap<PlatterId, Reader>,
    (medium, repairs): (&dyn Medium, &Repairs),
) -> Fetched<P> {
    let all: Vec<&Wish<P>> = recovery.wishes.iter().collect();
    let mut fetched = from_set(recovery, &all, own, &others, (medium, repairs));
    if !fetched.failed.is_empty() {
        let more = elsewhere();
        if !more.is_empty() {
            others.extend(more);
            let left: Vec<&Wish<P>> = fetched.failed.iter().map(|(wish, _)| *wish).collect();
            let more = from_set(recovery, &left, own, &others, (medium, repairs));
            fetched.came.extend(more.came);
            fetched.failed = more.failed;
        }
    }
    Fetched {
        came: fetched.came.into_iter().map(|(wish, crc)| (wish.piece, crc)).collect(),
        failed: fetched.failed.into_iter().map(|(wish, why)| (wish.piece, why)).collect(),
    }
}

/// Recovers the `wanted` shards from a platter and the others of its set.
fn from_set<'w, P: Copy>(
    recovery: &SetBrought<P>,
    wanted: &[&'w Wish<P>],
    own: Option<&Reader>,
    others: &BTreeMap<PlatterId, Reader>,
    (medium, repairs): (&dyn Medium, &Repairs),
) -> Fetched<&'w Wish<P>> {
    let SetBrought { platter, lost, row, set, .. } = recovery;
    let mut all = Fetched { came: Vec::new(), failed: Vec::new() };
    let Some(some) = own.or_else(|| others.values().next()) else {
        let reason = Arc::new(PlattersError::SetMissing { platter: *platter });
        all.failed.extend(wanted.iter().map(|wish| (*wish, Arc::clone(&reason))));
        return all;
    };
    let mut members: Vec<Member<'_, OpenPlatter>> = Vec::new();
    members.resize_with(usize::from(set.geometry.set_platters()), || Member::NotWritten);
    for (position, member) in set.platters() {
        members[usize::from(position)] = others.get(&member).map_or(Member::Lost, Member::Platter);
    }
    let mut tracks = WithSet {
        own: own.map(|reader| Own { reader, medium, repairs }),
        lost,
        members: &members,
        position: usize::from(row.position),
        decoder: SetDecoder::new(some.header()),
        medium,
        repairs,
    };
    let mut at_hand = AtHand::default();
    for &wish in wanted {
        match at_hand.read_shard(&some.header().geometry, &mut tracks, wish) {
            Ok(crc) => all.came.push((wish, crc)),
            Err(reason) => all.failed.push((wish, reason)),
        }
    }
    all
}

impl<P> Visited<P> {
    /// Returns a visit in which nothing was read.
    fn nothing(platter: PlatterId, brought: bool, left: Vec<Wish<P>>) -> Self {
        Self { platter, brought, lost: BTreeSet::new(), came: Vec::new(), left }
    }
}

impl<P: Copy> Visited<P> {
    fn new(
        platter: PlatterId,
        brought: bool,
        wishes: &[Wish<P>],
        outcome: Option<OfPlatter>,
    ) -> Self {
        let Some(OfPlatter { came, left, lost }) = outcome.filter(|_| brought) else {
            return Self::nothing(platter, brought, wishes.to_vec());
        };
        let came = came.into_iter().map(|(index, crc)| (wishes[index].piece, crc)).collect();
        let left = left.into_iter().map(|index| wishes[index].clone()).collect();
        Self { platter, brought, lost, came, left }
    }
}

/// Which wishes were read from their own platter, with their CRCs, which were not, and which tracks
/// are lost.
#[derive(Debug, Default)]
struct OfPlatter {
    came: Vec<(usize, u64)>,
    left: Vec<usize>,
    lost: BTreeSet<u32>,
}

impl OfPlatter {
    /// Reads the wishes, which are in order of position.
    fn read<P>(
        reader: &Reader,
        medium: &dyn Medium,
        repairs: &Repairs,
        wishes: &[Wish<P>],
    ) -> Self {
        let header = reader.header();
        let mut read = Self::default();
        let (mut at_hand, mut own) = (AtHand::default(), Own { reader, medium, repairs });
        for (index, wish) in wishes.iter().enumerate() {
            match at_hand.read_shard(&header.geometry, &mut own, wish) {
                Ok(crc) => read.came.push((index, crc)),
                Err(error) => {
                    let reason = error_chain(&*error);
                    let platter = header.platter;
                    tracing::warn!(%platter, reason, "a track needs the platter's set");
                    read.left.push(index);
                }
            }
        }
        read.lost = at_hand.lost();
        read
    }
}
