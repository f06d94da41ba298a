//! Seats of a lost tome that move to others: planned, kept, followed to their end.
//!
//! ```text
//! rebuild(tome)   its seats are planned, and the plan is kept
//! each look       a region that is not begun is told to; one that is a member is told its objects
//!                 then names are those of the new tome, then the group is kept with its new seat
//! ```
//!
//! Every step may be done twice, and a start goes on wherever the one before ended. One seat of a
//! group moves at a time. A tome that comes back while a seat of it is made anew keeps it: the
//! region that was to have it says so, and the plan is dropped. Not here: how a region is made anew
//! (`fulgurite_tome`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fulgurite_tome::awake::Object;
use fulgurite_tome::group::{Group, Move};
use fulgurite_tome::{RegionIndex, TomeId};
use fulgurite_units::{Ratio, error_chain};
use tokio::sync::oneshot;

use super::Seat;
use super::choice::Choice;
use super::names::Names;
use crate::driver::{Ask, Reply, Seated};
use crate::fail_point::FailPoints;
use crate::limits::NAMES_TOLD;
use crate::piece_store::{PieceStore, Placed};
use crate::set_store::{SetRow, SetStore};
use crate::watch::{Happening, Watched};
use crate::{Result, TomesError};

/// How often tomes are asked how far they are: nothing is told of itself.
const LOOK: Duration = Duration::from_millis(200);
/// What could not be kept or read is tried again after so long.
const FAILED_REST: Duration = Duration::from_secs(10);
/// Notes that wait.
const INBOX_MAX: usize = 16;

/// A seat that moves, and how far that is.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveStatus {
    /// Which seat, and whose it is to be.
    pub planned: Move,
    /// How much of what is to be read was.
    pub done: Ratio,
    /// Why it does not go on, where it is known.
    pub trouble: Option<String>,
}

/// What becomes of the seats of lost tomes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moves {
    /// Seats that move now.
    pub under_way: Vec<MoveStatus>,
    /// Tomes whose seats go to others.
    pub leaving: BTreeSet<TomeId>,
    /// Tomes that have no seat any more: their disks may be taken away.
    pub out: BTreeSet<TomeId>,
    /// Seats of them that find no room with tomes that their groups do not have.
    pub waiting: BTreeMap<TomeId, u64>,
    /// What is waited for, or was lost: a line each.
    pub reasons: Vec<String>,
}

/// What the thread works with.
pub(super) struct Shared {
    pub(super) row: SetRow,
    pub(super) store: Arc<SetStore>,
    pub(super) pieces: Arc<PieceStore>,
    pub(super) tomes: Arc<BTreeMap<TomeId, Seat>>,
    pub(super) names: Arc<Mutex<Names>>,
    pub(super) watched: Watched,
    pub(super) choice: Arc<Choice>,
    pub(super) fail: Arc<FailPoints>,
}

impl Shared {
    /// Whether a tome is here and does what it is asked for.
    pub(super) fn is_usable(&self, tome: TomeId) -> bool {
        match self.tomes.get(&tome) {
            Some(Seat::Live(driver)) => !driver.is_given_up(),
            Some(Seat::Remote(remote)) => remote.0.away().is_none(),
            Some(Seat::Lost(_)) | None => false,
        }
    }
}

/// The thread that has seats move.
pub(super) struct Mover {
    inbox: SyncSender<Note>,
    moves: Arc<Mutex<Moves>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Mover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mover").field("moves", &self.moves).finish_non_exhaustive()
    }
}

enum Note {
    Retire(TomeId, Reply<Moves>),
    /// Something was put off until a tome answers.
    PutOff,
    Stop,
}

pub(super) struct Loop {
    pub(super) shared: Shared,
    moves: Arc<Mutex<Moves>>,
    /// How many objects were lost with a tome since this start, and names of the first.
    lost: (usize, Vec<String>),
}

impl Mover {
    /// Starts it; what was under way goes on.
    pub(super) fn start(shared: Shared) -> Result<Self> {
        let (inbox, notes) = sync_channel(INBOX_MAX);
        let moves = Arc::<Mutex<Moves>>::default();
        let mut moving = Loop { shared, moves: Arc::clone(&moves), lost: Default::default() };
        moving.tell(Vec::new(), BTreeMap::new(), Vec::new())?;
        let thread = std::thread::Builder::new()
            .name("seats".to_owned())
            .spawn(move || moving.run(&notes))
            .map_err(|error| TomesError::Invalid { what: format!("no thread: {error}") })?;
        Ok(Self { inbox, moves, thread: Mutex::new(Some(thread)) })
    }

    /// Has all seats of a tome move, and says what is planned. Done already where they do.
    pub(super) async fn retire(&self, tome: TomeId) -> Result<Moves> {
        let (reply, answer) = oneshot::channel();
        match self.inbox.try_send(Note::Retire(tome, reply)) {
            Ok(()) => answer.await.unwrap_or(Err(TomesError::Stopped)),
            Err(TrySendError::Full(_)) => Err(TomesError::Busy { tome }),
            Err(TrySendError::Disconnected(_)) => Err(TomesError::Stopped),
        }
    }

    pub(super) fn moves(&self) -> Moves {
        lock(&self.moves).clone()
    }

    /// A removal waits for a tome in another process.
    pub(super) fn put_off(&self) {
        // Whatever else it is told has it look as well.
        let _ = self.inbox.try_send(Note::PutOff);
    }

    pub(super) fn stop(&self) {
        // It may be gone already.
        let _ = self.inbox.send(Note::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that moves seats panicked");
        }
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Loop {
    fn run(mut self, notes: &Receiver<Note>) {
        let mut rest = LOOK;
        loop {
            let waits = super::lock(&self.shared.names).has_put_off();
            let is_idle = lock(&self.moves).leaving.is_empty() && !waits;
            let note = if is_idle {
                notes.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                notes.recv_timeout(rest)
            };
            let reply = match note {
                Ok(Note::Retire(tome, reply)) => match self.shared.store.leave(tome) {
                    Ok(()) => Some(reply),
                    Err(error) => {
                        // Who asked may have gone.
                        let _ = reply.send(Err(error));
                        continue;
                    }
                },
                Ok(Note::PutOff) | Err(RecvTimeoutError::Timeout) => None,
                Ok(Note::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            };
            let removed = self.remove_put_off();
            let gone_on = removed.and_then(|()| self.go_on()).map(|()| lock(&self.moves).clone());
            rest = if gone_on.is_ok() { LOOK } else { FAILED_REST };
            if let Err(error) = &gone_on {
                let why = vec![format!("seats do not move: {}", error_chain(error))];
                let mut moves = lock(&self.moves);
                // It is tried again, and reported once.
                if moves.reasons != why {
                    tracing::error!("{}", why[0]);
                    moves.reasons = why;
                }
            }
            if let Some(reply) = reply {
                let _ = reply.send(gone_on);
            }
        }
    }

    /// Looks at every seat that moves.
    fn go_on(&mut self) -> Result<()> {
        let store = Arc::clone(&self.shared.store);
        let (mut under_way, leaving) = (Vec::new(), store.leaving()?);
        for planned in store.moves()? {
            let to = planned.to.tome;
            if leaving.contains(&to) && !self.shared.is_usable(to) {
                // Who was to have the seat is lost itself: it is planned anew below.
                self.stays(&planned)?;
                continue;
            }
            let (done, trouble) = match self.follow(&planned) {
                Ok(None) => continue,
                Ok(Some(done)) => (done, None),
                Err(error) => (Ratio::ZERO, Some(error_chain(&error))),
            };
            under_way.push(MoveStatus { planned, done, trouble });
        }
        let targets = self.targets()?;
        let (mut reasons, mut waiting) = (Vec::new(), BTreeMap::new());
        for tome in store.leaving()? {
            if self.shared.is_usable(tome) {
                if under_way.iter().all(|moving| moving.planned.from.tome != tome) {
                    store.is_back(tome)?;
                }
                continue;
            }
            let retirement = store.retire(&self.shared.row, tome, &targets)?;
            self.shared.fail.pass("tomes-moves-planned");
            let status = |planned| MoveStatus { planned, done: Ratio::ZERO, trouble: None };
            under_way.extend(retirement.moves.into_iter().map(status));
            let count = retirement.without_room.len();
            if count > 0 {
                waiting.insert(tome, count as u64);
                reasons.push(format!(
                    "tome {tome}: {count} of its seats find no room with tomes that their \
                     groups do not have: add a tome"
                ));
            }
        }
        self.tell(under_way, waiting, reasons)
    }

    /// Tomes that seats can go to: those that are here and have no region that lost its seat while
    /// they were away, which is free when they are opened anew.
    fn targets(&self) -> Result<BTreeSet<TomeId>> {
        let mut seats: BTreeMap<TomeId, usize> = BTreeMap::new();
        let groups = self.shared.store.groups()?;
        let of_groups = groups.iter().flat_map(|group| group.seats()).map(|seat| seat.tome);
        let planned = self.shared.store.moves()?;
        for tome in of_groups.chain(planned.iter().map(|planned| planned.to.tome)) {
            *seats.entry(tome).or_default() += 1;
        }
        let mut targets = BTreeSet::new();
        for tome in self.shared.tomes.keys().filter(|tome| self.shared.is_usable(**tome)) {
            let look = self.ask(*tome, |reply| Ask::Look { after: None, max: 0, reply });
            let own = seats.get(tome).copied().unwrap_or(0);
            // One that is given up meanwhile is no target.
            if look.is_ok_and(|look| look.regions <= own) {
                targets.insert(*tome);
            }
        }
        Ok(targets)
    }

    /// Says what is known now.
    fn tell(
        &mut self,
        under_way: Vec<MoveStatus>,
        waiting: BTreeMap<TomeId, u64>,
        mut reasons: Vec<String>,
    ) -> Result<()> {
        let store = &self.shared.store;
        let out = store.out()?;
        let leaving = store.leaving()?.difference(&out).copied().collect();
        let (count, some) = &self.lost;
        if *count > 0 {
            let some = some.join(", ");
            reasons.push(format!(
                "{count} objects were not in every parity when their tome was lost, and are gone: \
                 {some}"
            ));
        }
        let now = Moves { under_way, leaving, out, waiting, reasons };
        let mut moves = lock(&self.moves);
        tell_of(&moves, &now, &self.shared.watched);
        *moves = now;
        Ok(())
    }

    /// A seat does not move.
    fn stays(&self, planned: &Move) -> Result<()> {
        self.shared.store.stays(planned)?;
        self.shared.watched.tell(|| Happening::stays(planned));
        Ok(())
    }

    /// Goes on with one seat; says how much is done, or nothing when it is over.
    fn follow(&mut self, planned: &Move) -> Result<Option<Ratio>> {
        let (to, group) = (planned.to, planned.group);
        let seat = |reply| Ask::Seat { region: to.index, group, reply };
        match self.ask(to.tome, seat)? {
            Seated::Building(done) => {
                self.tell_absent(planned)?;
                Ok(Some(done))
            }
            Seated::Member => {
                self.conclude(planned)?;
                Ok(None)
            }
            Seated::Left => Err(TomesError::Invalid {
                what: format!("region {} of tome {} lost its seat", to.index, to.tome),
            }),
            Seated::Not if self.shared.is_usable(planned.from.tome) => {
                // It was only away, and the region that was to have its seat knows.
                self.stays(planned)?;
                Ok(None)
            }
            Seated::Not => {
                let groups = self.shared.store.groups()?;
                let found = groups.into_iter().find(|group| group.id() == planned.group);
                if let Some(group) = found {
                    let planned = *planned;
                    self.ask(to.tome, |reply| Ask::Rebuild { planned, group, reply })?;
                }
                Ok(Some(Ratio::ZERO))
            }
        }
    }

    /// Tells the tome that is to have a seat which others of its group are lost: it would wait for
    /// them. One that only does not answer is waited for.
    fn tell_absent(&self, planned: &Move) -> Result<()> {
        let Shared { store, tomes, .. } = &self.shared;
        let (groups, leaving) = (store.groups()?, store.leaving()?);
        let group = groups.iter().find(|group| group.id() == planned.group);
        let seats = group.into_iter().flat_map(Group::seats).map(|seat| seat.tome);
        let is_lost = |tome: &TomeId| match tomes.get(tome) {
            Some(Seat::Lost(_)) | None => true,
            Some(Seat::Live(_) | Seat::Remote(_)) => {
                leaving.contains(tome) && !self.shared.is_usable(*tome)
            }
        };
        let absent = seats.filter(is_lost).collect();
        // One of an earlier version waits.
        drop(self.ask(planned.to.tome, |reply| Ask::Absent { tomes: absent, reply }));
        Ok(())
    }

    /// A region has its seat: it is told its objects, and the set that it has them.
    fn conclude(&mut self, planned: &Move) -> Result<()> {
        let Shared { store, pieces, names, choice, fail, .. } = &self.shared;
        let (from, to) = (planned.from, planned.to);
        // What is removed meanwhile is removed of the one or of the other.
        let _still = choice.still.blocking_lock();
        let mut own = Vec::new();
        pieces.each(from.tome, |name, placed| {
            if let Some(placed) = moved(&placed, from.index, to.index) {
                own.push((name, placed));
            }
        })?;
        let objects = own.clone();
        let lost = self.ask(to.tome, |reply| Ask::Adopt { region: to.index, objects, reply })?;
        fail.pass("tomes-adopted");
        let lost: BTreeSet<String> = lost.into_iter().collect();
        let mut changes = Vec::new();
        for (name, placed) in &own {
            changes.push((from.tome, name.clone(), None));
            if !lost.contains(name) {
                changes.push((to.tome, name.clone(), Some(placed.clone())));
            }
        }
        pieces.change(changes)?;
        fail.pass("tomes-names-moved");
        let look = |reply| Ask::Look { after: None, max: 0, reply };
        let room = self.ask(to.tome, look)?.data_blocks;
        let mut names = super::lock(names);
        names.region_moved((from.tome, to.tome), &own, &lost);
        names.has_room(to.tome, room);
        drop(names);
        store.moved(planned)?;
        choice.seat_moved(planned);
        fail.pass("tomes-seat-kept");
        self.shared.watched.tell(|| Happening::moved(planned));
        for name in lost {
            tracing::error!(tome = %from.tome, name, "lost with its tome: not every parity had it");
            self.lost.0 += 1;
            if self.lost.1.len() < NAMES_TOLD {
                self.lost.1.push(name);
            }
        }
        tracing::info!(group = %planned.group, from = %from, to = %to, "a seat has moved");
        Ok(())
    }

    pub(super) fn ask<T>(&self, tome: TomeId, ask: impl FnOnce(Reply<T>) -> Ask) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        match self.shared.tomes.get(&tome) {
            Some(Seat::Live(driver)) => {
                driver.ask(ask(reply))?;
                answer.blocking_recv().unwrap_or_else(|_| Err(driver.gone()))
            }
            Some(Seat::Remote(remote)) => {
                remote.0.ask(ask(reply));
                answer.blocking_recv().unwrap_or(Err(TomesError::Stopped))
            }
            Some(Seat::Lost(_)) | None => {
                let why = "its region was to take a seat, and it is not here".to_owned();
                Err(TomesError::Away { tome, why })
            }
        }
    }
}

/// Tells whoever watches what is another than before, to the hundredth.
fn tell_of(before: &Moves, now: &Moves, watched: &Watched) {
    let hundredths =
        |done: Ratio| (1..=100).filter(|at| f64::from(*at) <= done.get() * 100.0).count();
    for MoveStatus { planned, done, trouble } in &now.under_way {
        let mut known = before.under_way.iter().filter(|known| known.planned == *planned);
        let is_known = |known: &MoveStatus| {
            hundredths(known.done) == hundredths(*done) && known.trouble == *trouble
        };
        if !known.next().is_some_and(is_known) {
            watched.tell(|| Happening::Seat {
                group: planned.group,
                from: planned.from.tome,
                to: planned.to.tome,
                done: done.get(),
                trouble: trouble.clone(),
            });
        }
    }
    if (&before.leaving, &before.out) != (&now.leaving, &now.out) {
        watched.tell(|| Happening::Leaving {
            leaving: now.leaving.iter().copied().collect(),
            out: now.out.iter().copied().collect(),
        });
    }
}

/// An object of a region, as it lies where that was made anew; none of another region.
pub(super) fn moved(placed: &Placed, from: RegionIndex, to: RegionIndex) -> Option<Placed> {
    let Placed { object, signatures } = placed;
    let all =
        object.blocks.iter().map(|(region, offset)| (*region == from).then_some((to, *offset)));
    let blocks = all.collect::<Option<Vec<_>>>()?;
    Some(Placed { object: Object { blocks, ..object.clone() }, signatures: signatures.clone() })
}

fn lock(moves: &Mutex<Moves>) -> MutexGuard<'_, Moves> {
    moves.lock().unwrap_or_else(PoisonError::into_inner)
}
