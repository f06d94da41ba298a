//! Moves the member slots of a lost tome to others: plans them, persists the plan, and follows it
//! to its end.
//!
//! ```text
//! rebuild(tome)   its moves are planned, and the plan is persisted
//! each poll       a region that has not begun is started; one that is a member gets its objects
//!                 then its names move to the new tome, then the group is stored with that
//! ```
//!
//! Every step is idempotent, and a start continues where the previous one ended. One member slot of
//! a group moves at a time. A tome that comes back while its member slot is being rebuilt keeps it:
//! the target drops the rebuild and reports it, and the plan is dropped. Not here: how a region is
//! rebuilt (`fulgurite_tome_core`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fulgurite_tome_core::group::{Group, Move};
use fulgurite_tome_core::metadata::Object;
use fulgurite_tome_core::{RegionIndex, TomeId};
use fulgurite_units::{Ratio, error_chain};
use tokio::sync::oneshot;

use super::TomeHandle;
use super::choice::Choice;
use super::names::Names;
use crate::FailPoints;
use crate::driver::{MembershipStatus, Reply, TomeRequest};
use crate::limits::NAMES_LISTED_MAX;
use crate::piece_store::{ObjectLocation, PieceStore};
use crate::set_store::{SetRow, SetStore};
use crate::watch::{EventPublisher, TomeEvent};
use crate::{Result, TomesError};

/// Poll interval for progress: tomes do not report it by themselves.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Backoff after a failed read or write.
const FAILURE_BACKOFF: Duration = Duration::from_secs(10);
/// Messages that wait.
const INBOX_MAX: usize = 16;

/// A move of a member slot, and its progress.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveStatus {
    /// The move.
    pub planned: Move,
    /// Fraction of the sources read.
    pub done: Ratio,
    /// Why it is stuck, if known.
    pub failure: Option<String>,
}

/// State of the member slots of lost tomes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moves {
    /// Moves in progress.
    pub under_way: Vec<MoveStatus>,
    /// Tomes whose member slots move to others.
    pub leaving: BTreeSet<TomeId>,
    /// Tomes without member slots: their disks may be removed.
    pub out: BTreeSet<TomeId>,
    /// Their member slots for which no tome outside the group has room, by tome.
    pub waiting: BTreeMap<TomeId, u64>,
    /// What is waited for, or was lost: a line each.
    pub reasons: Vec<String>,
}

/// State that the thread shares with the set.
pub(super) struct Shared {
    pub(super) row: SetRow,
    pub(super) store: Arc<SetStore>,
    pub(super) pieces: Arc<PieceStore>,
    pub(super) tomes: Arc<BTreeMap<TomeId, TomeHandle>>,
    pub(super) names: Arc<Mutex<Names>>,
    pub(super) events: EventPublisher,
    pub(super) choice: Arc<Choice>,
    pub(super) fail: Arc<FailPoints>,
}

impl Shared {
    /// Whether a tome is here and serves requests.
    pub(super) fn is_usable(&self, tome: TomeId) -> bool {
        match self.tomes.get(&tome) {
            Some(TomeHandle::Live(driver)) => !driver.is_given_up(),
            Some(TomeHandle::Remote(remote)) => remote.0.away().is_none(),
            Some(TomeHandle::Lost(_)) | None => false,
        }
    }
}

/// The thread that moves member slots.
pub(super) struct Mover {
    inbox: SyncSender<MoverMessage>,
    moves: Arc<Mutex<Moves>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Mover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mover").field("moves", &self.moves).finish_non_exhaustive()
    }
}

enum MoverMessage {
    Retire(TomeId, Reply<Moves>),
    /// A removal was deferred until a tome answers.
    RemovalDeferred,
    Stop,
}

pub(super) struct Loop {
    pub(super) shared: Shared,
    moves: Arc<Mutex<Moves>>,
    /// Number of objects lost with tomes since this start, and the first names.
    lost: (usize, Vec<String>),
}

impl Mover {
    /// Starts the thread; moves in progress continue.
    pub(super) fn start(shared: Shared) -> Result<Self> {
        let (inbox, messages) = sync_channel(INBOX_MAX);
        let moves = Arc::<Mutex<Moves>>::default();
        let mut mover = Loop { shared, moves: Arc::clone(&moves), lost: Default::default() };
        mover.publish(Vec::new(), BTreeMap::new(), Vec::new())?;
        let thread = std::thread::Builder::new()
            .name("slots".to_owned())
            .spawn(move || mover.run(&messages))
            .map_err(|error| TomesError::Invalid { what: format!("no thread: {error}") })?;
        Ok(Self { inbox, moves, thread: Mutex::new(Some(thread)) })
    }

    /// Moves all member slots of a tome, and returns the plan. Idempotent.
    pub(super) async fn retire(&self, tome: TomeId) -> Result<Moves> {
        let (reply, answer) = oneshot::channel();
        match self.inbox.try_send(MoverMessage::Retire(tome, reply)) {
            Ok(()) => answer.await.unwrap_or(Err(TomesError::Stopped)),
            Err(TrySendError::Full(_)) => Err(TomesError::Busy { tome }),
            Err(TrySendError::Disconnected(_)) => Err(TomesError::Stopped),
        }
    }

    pub(super) fn moves(&self) -> Moves {
        lock(&self.moves).clone()
    }

    /// Notifies the thread for a deferred removal on a tome in another process.
    pub(super) fn notify_removal(&self) {
        // If the inbox is full, another message does so as well.
        let _ = self.inbox.try_send(MoverMessage::RemovalDeferred);
    }

    pub(super) fn stop(&self) {
        // It may be gone already.
        let _ = self.inbox.send(MoverMessage::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that moves member slots panicked");
        }
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Loop {
    fn run(mut self, messages: &Receiver<MoverMessage>) {
        let mut backoff = POLL_INTERVAL;
        loop {
            let has_tombstones = super::lock(&self.shared.names).has_tombstones();
            let is_idle = lock(&self.moves).leaving.is_empty() && !has_tombstones;
            let message = if is_idle {
                messages.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                messages.recv_timeout(backoff)
            };
            let reply = match message {
                Ok(MoverMessage::Retire(tome, reply)) => match self.shared.store.leave(tome) {
                    Ok(()) => Some(reply),
                    Err(error) => {
                        // The requester may be gone.
                        let _ = reply.send(Err(error));
                        continue;
                    }
                },
                Ok(MoverMessage::RemovalDeferred) | Err(RecvTimeoutError::Timeout) => None,
                Ok(MoverMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            };
            let removed = self.apply_tombstones();
            let outcome =
                removed.and_then(|()| self.poll_moves()).map(|()| lock(&self.moves).clone());
            backoff = if outcome.is_ok() { POLL_INTERVAL } else { FAILURE_BACKOFF };
            if let Err(error) = &outcome {
                let why = vec![format!("member slots do not move: {}", error_chain(error))];
                let mut moves = lock(&self.moves);
                // It is retried, and logged once.
                if moves.reasons != why {
                    tracing::error!("{}", why[0]);
                    moves.reasons = why;
                }
            }
            if let Some(reply) = reply {
                let _ = reply.send(outcome);
            }
        }
    }

    /// Polls every move in progress.
    fn poll_moves(&mut self) -> Result<()> {
        let store = Arc::clone(&self.shared.store);
        let (mut under_way, leaving) = (Vec::new(), store.leaving()?);
        for planned in store.moves()? {
            let to = planned.to.tome;
            if leaving.contains(&to) && !self.shared.is_usable(to) {
                // The target is lost itself: the member slot is planned again below.
                self.drop_move(&planned)?;
                continue;
            }
            let (done, failure) = match self.poll_move(&planned) {
                Ok(None) => continue,
                Ok(Some(done)) => (done, None),
                Err(error) => (Ratio::ZERO, Some(error_chain(&error))),
            };
            under_way.push(MoveStatus { planned, done, failure });
        }
        let targets = self.targets()?;
        let (mut reasons, mut waiting) = (Vec::new(), BTreeMap::new());
        for tome in store.leaving()? {
            if self.shared.is_usable(tome) {
                if under_way.iter().all(|moving| moving.planned.from.tome != tome) {
                    store.unmark_leaving(tome)?;
                }
                continue;
            }
            let retirement = store.retire(&self.shared.row, tome, &targets)?;
            self.shared.fail.pass("tomes-moves-planned");
            let status = |planned| MoveStatus { planned, done: Ratio::ZERO, failure: None };
            under_way.extend(retirement.moves.into_iter().map(status));
            let count = retirement.unplaced.len();
            if count > 0 {
                waiting.insert(tome, count as u64);
                reasons.push(format!(
                    "tome {tome}: {count} of its member slots have no room on tomes outside \
                     their groups: add a tome"
                ));
            }
        }
        self.publish(under_way, waiting, reasons)
    }

    /// Returns the tomes that can take member slots: those present, without a region that lost its
    /// member slot while they were away. Such a region is free only after the tome is reopened.
    fn targets(&self) -> Result<BTreeSet<TomeId>> {
        let mut slots: BTreeMap<TomeId, usize> = BTreeMap::new();
        let groups = self.shared.store.groups()?;
        let holders = groups.iter().flat_map(|group| group.slots()).map(|slot| slot.tome);
        let planned = self.shared.store.moves()?;
        for tome in holders.chain(planned.iter().map(|planned| planned.to.tome)) {
            *slots.entry(tome).or_default() += 1;
        }
        let mut targets = BTreeSet::new();
        for tome in self.shared.tomes.keys().filter(|tome| self.shared.is_usable(**tome)) {
            let object_page =
                self.request(*tome, |reply| TomeRequest::ObjectPage { after: None, max: 0, reply });
            let own = slots.get(tome).copied().unwrap_or(0);
            // One that failed meanwhile is no target.
            if object_page.is_ok_and(|object_page| object_page.regions <= own) {
                targets.insert(*tome);
            }
        }
        Ok(targets)
    }

    /// Publishes the current state.
    fn publish(
        &mut self,
        under_way: Vec<MoveStatus>,
        waiting: BTreeMap<TomeId, u64>,
        mut reasons: Vec<String>,
    ) -> Result<()> {
        let store = &self.shared.store;
        let out = store.out()?;
        let leaving = store.leaving()?.difference(&out).copied().collect();
        let (count, names) = &self.lost;
        if *count > 0 {
            let names = names.join(", ");
            reasons.push(format!(
                "{count} objects were not in every parity when their tome was lost, and are gone: \
                 {names}"
            ));
        }
        let now = Moves { under_way, leaving, out, waiting, reasons };
        let mut moves = lock(&self.moves);
        publish_changes(&moves, &now, &self.shared.events);
        *moves = now;
        Ok(())
    }

    /// Drops a move.
    fn drop_move(&self, planned: &Move) -> Result<()> {
        self.shared.store.drop_move(planned)?;
        self.shared.events.send(|| TomeEvent::stays(planned));
        Ok(())
    }

    /// Polls one move; returns its progress, or `None` when it is over.
    fn poll_move(&mut self, planned: &Move) -> Result<Option<Ratio>> {
        let (to, group) = (planned.to, planned.group);
        let status = |reply| TomeRequest::MemberSlot { region: to.index, group, reply };
        match self.request(to.tome, status)? {
            MembershipStatus::Building(done) => {
                self.send_lost_tomes(planned)?;
                Ok(Some(done))
            }
            MembershipStatus::Member => {
                self.finish_move(planned)?;
                Ok(None)
            }
            MembershipStatus::Left => Err(TomesError::Invalid {
                what: format!("region {} of tome {} lost its member slot", to.index, to.tome),
            }),
            MembershipStatus::Not if self.shared.is_usable(planned.from.tome) => {
                // The tome was only away, and the target knows.
                self.drop_move(planned)?;
                Ok(None)
            }
            MembershipStatus::Not => {
                let groups = self.shared.store.groups()?;
                let found = groups.into_iter().find(|group| group.id() == planned.group);
                if let Some(group) = found {
                    let planned = *planned;
                    self.request(to.tome, |reply| TomeRequest::Rebuild { planned, group, reply })?;
                }
                Ok(Some(Ratio::ZERO))
            }
        }
    }

    /// Sends the target which members of its group are lost, since it would wait for them. A member
    /// that only does not answer is waited for.
    fn send_lost_tomes(&self, planned: &Move) -> Result<()> {
        let Shared { store, tomes, .. } = &self.shared;
        let (groups, leaving) = (store.groups()?, store.leaving()?);
        let group = groups.iter().find(|group| group.id() == planned.group);
        let members = group.into_iter().flat_map(Group::slots).map(|slot| slot.tome);
        let is_lost = |tome: &TomeId| match tomes.get(tome) {
            Some(TomeHandle::Lost(_)) | None => true,
            Some(TomeHandle::Live(_) | TomeHandle::Remote(_)) => {
                leaving.contains(tome) && !self.shared.is_usable(*tome)
            }
        };
        let absent = members.filter(is_lost).collect();
        // If it fails, the target waits for them until the next poll.
        drop(self.request(planned.to.tome, |reply| TomeRequest::Absent { tomes: absent, reply }));
        Ok(())
    }

    /// Completes a move: the region gets its objects, and the set records where they are.
    fn finish_move(&mut self, planned: &Move) -> Result<()> {
        let Shared { store, pieces, names, choice, fail, .. } = &self.shared;
        let (from, to) = (planned.from, planned.to);
        // A concurrent removal applies to the old tome or the new one.
        let _guard = choice.move_lock.blocking_lock();
        let mut own = Vec::new();
        pieces.for_each(from.tome, |name, placed| {
            if let Some(placed) = moved(&placed, from.index, to.index) {
                own.push((name, placed));
            }
        })?;
        let objects = own.clone();
        let lost =
            self.request(to.tome, |reply| TomeRequest::Adopt { region: to.index, objects, reply })?;
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
        let object_page = |reply| TomeRequest::ObjectPage { after: None, max: 0, reply };
        let room = self.request(to.tome, object_page)?.data_blocks;
        let mut names = super::lock(names);
        names.region_moved((from.tome, to.tome), &own, &lost);
        names.set_room(to.tome, room);
        drop(names);
        store.complete_move(planned)?;
        choice.member_slot_moved(planned);
        fail.pass("tomes-slot-recorded");
        self.shared.events.send(|| TomeEvent::moved(planned));
        for name in lost {
            tracing::error!(tome = %from.tome, name, "lost with its tome: not every parity had it");
            self.lost.0 += 1;
            if self.lost.1.len() < NAMES_LISTED_MAX {
                self.lost.1.push(name);
            }
        }
        tracing::info!(group = %planned.group, from = %from, to = %to, "a member slot has moved");
        Ok(())
    }

    pub(super) fn request<T>(
        &self,
        tome: TomeId,
        request: impl FnOnce(Reply<T>) -> TomeRequest,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        match self.shared.tomes.get(&tome) {
            Some(TomeHandle::Live(driver)) => {
                driver.send_request(request(reply))?;
                answer.blocking_recv().unwrap_or_else(|_| Err(driver.unavailable_error()))
            }
            Some(TomeHandle::Remote(remote)) => {
                remote.0.send_request(request(reply));
                answer.blocking_recv().unwrap_or(Err(TomesError::Stopped))
            }
            Some(TomeHandle::Lost(_)) | None => {
                let why =
                    "its region is to take over a member slot, but the tome is not here".to_owned();
                Err(TomesError::Away { tome, why })
            }
        }
    }
}

/// Reports what has changed to subscribers, in steps of a hundredth.
fn publish_changes(before: &Moves, now: &Moves, events: &EventPublisher) {
    let hundredths =
        |done: Ratio| (1..=100).filter(|percent| f64::from(*percent) <= done.get() * 100.0).count();
    for MoveStatus { planned, done, failure } in &now.under_way {
        let mut known = before.under_way.iter().filter(|known| known.planned == *planned);
        let is_known = |known: &MoveStatus| {
            hundredths(known.done) == hundredths(*done) && known.failure == *failure
        };
        if !known.next().is_some_and(is_known) {
            events.send(|| TomeEvent::SlotMove {
                group: planned.group,
                from: planned.from.tome,
                to: planned.to.tome,
                done: done.get(),
                failure: failure.clone(),
            });
        }
    }
    if (&before.leaving, &before.out) != (&now.leaving, &now.out) {
        events.send(|| TomeEvent::Leaving {
            leaving: now.leaving.iter().copied().collect(),
            out: now.out.iter().copied().collect(),
        });
    }
}

/// Returns an object of a region with its location in the rebuilt region; `None` if it is in
/// another region.
pub(super) fn moved(
    placed: &ObjectLocation,
    from: RegionIndex,
    to: RegionIndex,
) -> Option<ObjectLocation> {
    let ObjectLocation { object, signatures } = placed;
    let all =
        object.blocks.iter().map(|(region, offset)| (*region == from).then_some((to, *offset)));
    let blocks = all.collect::<Option<Vec<_>>>()?;
    Some(ObjectLocation {
        object: Object { blocks, ..object.clone() },
        signatures: signatures.clone(),
    })
}

fn lock(moves: &Mutex<Moves>) -> MutexGuard<'_, Moves> {
    moves.lock().unwrap_or_else(PoisonError::into_inner)
}
