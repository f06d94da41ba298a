//! Degraded reads: an object is read without its own tome, from the others of its group.
//!
//! ```text
//! its tome is lost         a request to as many members as the group has data, spinning first
//!                          the result does not match the recorded signatures --> to all
//! its tome sleeps, and     a request to those, without a spin-up; if the result does not match,
//! that many others spin    its own tome is spun up
//! ```
//!
//! Members answer at different times and may be written between: their in-flight deltas are applied
//! where they are missing ([`fulgurite_tome_core::offline_read`]), and nothing is returned that
//! does not match the signatures and the digest recorded when it was put. Not here: rebuilt regions
//! ([`super::slot_mover`]).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_codes::{sector_checksum, signature};
use fulgurite_disks::{PlaceId, Power};
use fulgurite_tome_core::group::Group;
use fulgurite_tome_core::offline_read::{self, Holding};
use fulgurite_tome_core::{Member, Offset, RegionId, RegionIndex, TomeError, TomeId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::TomeSet;
use super::operator::is_lost;
use crate::driver::TomeRequest;
use crate::limits::{DEGRADED_READ_BYTES_MAX, PUT_GRAIN_BYTES};
use crate::piece_store::ObjectLocation;
use crate::{Result, TomesError};

/// Memory limit and counters of degraded reads.
#[derive(Debug)]
pub(super) struct DegradedReads {
    /// Memory for members' holdings, in grains.
    room: Arc<Semaphore>,
    lost: AtomicU64,
    asleep: AtomicU64,
}

/// Degraded reads of objects since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DegradedReadCounts {
    /// Their tomes were lost.
    pub lost: u64,
    /// Their tomes slept, and enough others were spinning.
    pub asleep: u64,
}

/// Blocks of an object in one region.
struct Part {
    group: Group,
    member: Member,
    /// Positions of the blocks in the object, and their offsets.
    blocks: Vec<(usize, Offset)>,
}

/// Which members get the request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberSelection {
    /// Those whose disks spin.
    Spinning,
    /// As many as needed, spinning ones first.
    Enough,
    /// All of them.
    All,
}

impl Default for DegradedReads {
    fn default() -> Self {
        let room = Arc::new(Semaphore::new(grains(DEGRADED_READ_BYTES_MAX.get()) as usize));
        Self { room, lost: AtomicU64::new(0), asleep: AtomicU64::new(0) }
    }
}

impl DegradedReads {
    pub(super) fn counts(&self) -> DegradedReadCounts {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DegradedReadCounts { lost: load(&self.lost), asleep: load(&self.asleep) }
    }

    /// Fails reads that wait for memory when the set stops.
    pub(super) fn stop(&self) {
        self.room.close();
    }
}

impl TomeSet {
    /// Reads an object of a tome that is lost or away; `given_up` makes the error.
    pub(super) async fn degraded_read(
        &self,
        tome: TomeId,
        name: &str,
        why: &str,
        given_up: impl Fn(String) -> TomesError,
    ) -> Result<Vec<u8>> {
        let Some(placed) = self.pieces.get(tome, name)? else {
            return Err(given_up(format!("{why}; there is no record of where its objects are")));
        };
        for selection in [MemberSelection::Enough, MemberSelection::All] {
            match self.read_degraded(tome, &placed, selection).await {
                Ok(Some(bytes)) => {
                    self.degraded_reads.lost.fetch_add(1, Ordering::Relaxed);
                    return Ok(bytes);
                }
                Ok(None) => {}
                // The object exists, even if its region has no member slot any more.
                Err(TomesError::Tome(
                    error @ (TomeError::GroupLost { .. } | TomeError::NoRegion { .. }),
                )) => return Err(given_up(format!("{why}; {error}"))),
                Err(error) => return Err(error),
            }
        }
        Err(given_up(format!(
            "{why}; \"{name}\" cannot be read from its group: it was not in every parity when \
             its tome was lost, or its group is being written"
        )))
    }

    /// Reads an object of a sleeping tome, if enough others of its group spin; `None` if its own
    /// tome must read it.
    pub(super) async fn read_from_spinning(&self, tome: TomeId, name: &str) -> Option<Vec<u8>> {
        if self.is_spinning(tome) {
            return None;
        }
        let spinning = self.tomes.keys().filter(|other| self.is_spinning(**other)).count();
        if spinning < self.split.data() as usize {
            return None;
        }
        // On any failure its own tome gets the request next, and reports it.
        let placed = self.pieces.get(tome, name).ok()??;
        let bytes = self.read_degraded(tome, &placed, MemberSelection::Spinning).await.ok()??;
        self.degraded_reads.asleep.fetch_add(1, Ordering::Relaxed);
        Some(bytes)
    }

    pub(super) fn is_spinning(&self, tome: TomeId) -> bool {
        self.guard.power(PlaceId::new(tome.get())) == Some(Power::Active)
            || self.remotes.holds(tome)
    }

    /// Returns `None` when the result does not match what was put.
    async fn read_degraded(
        &self,
        tome: TomeId,
        placed: &ObjectLocation,
        selection: MemberSelection,
    ) -> Result<Option<Vec<u8>>> {
        let object = &placed.object;
        let mut found: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for part in self.parts(tome, placed)? {
            let _permit = self.reserve_memory(&part).await?;
            let replies = self.holdings(tome, &part, selection).await?;
            for (index, (block, _)) in part.blocks.iter().enumerate() {
                let block_holdings: Vec<Holding> =
                    replies.iter().map(|all| all[index].clone()).collect();
                let (group, split) = (part.group.id(), part.group.split());
                let recovered = offline_read::recover(group, split, part.member, &block_holdings)?;
                if signature(&recovered).0 != placed.signatures[*block] {
                    return Ok(None);
                }
                found.insert(*block, recovered);
            }
        }
        let mut bytes: Vec<u8> = found.into_values().flatten().collect();
        bytes.truncate(usize::try_from(object.bytes).unwrap_or(usize::MAX));
        Ok((sector_checksum(&bytes) == object.digest).then_some(bytes))
    }

    /// Returns the blocks of an object by group.
    fn parts(&self, tome: TomeId, placed: &ObjectLocation) -> Result<Vec<Part>> {
        let mut by_region: BTreeMap<RegionIndex, Vec<(usize, Offset)>> = BTreeMap::new();
        for (position, (index, offset)) in placed.object.blocks.iter().enumerate() {
            by_region.entry(*index).or_default().push((position, *offset));
        }
        let groups = self.store.groups()?;
        let part = |(index, blocks): (RegionIndex, Vec<(usize, Offset)>)| {
            let region = RegionId { tome, index };
            let mut all = groups.iter();
            let found = all.find_map(|group| group.member(region).map(|member| (group, member)));
            let (group, member) = found.ok_or(TomeError::NoRegion { region })?;
            Ok(Part { group: group.clone(), member, blocks })
        };
        by_region.into_iter().map(part).collect()
    }

    /// Reserves memory for the holdings of all members.
    async fn reserve_memory(&self, part: &Part) -> Result<OwnedSemaphorePermit> {
        let members = u64::from(part.group.split().total());
        let bytes = members * part.blocks.len() as u64 * self.layout.block_bytes();
        let grains = grains(bytes.min(DEGRADED_READ_BYTES_MAX.get()));
        let permit = Arc::clone(&self.degraded_reads.room).acquire_many_owned(grains).await;
        permit.map_err(|_| TomesError::Stopped)
    }

    /// Returns the holdings of other members of a group, at least as many as needed.
    async fn holdings(
        &self,
        lost: TomeId,
        part: &Part,
        selection: MemberSelection,
    ) -> Result<Vec<Vec<Holding>>> {
        let (group, need) = (part.group.id(), part.group.split().data() as usize);
        let offsets: Vec<Offset> = part.blocks.iter().map(|(_, offset)| *offset).collect();
        let others = part.group.slots().iter().map(|slot| slot.tome).filter(|tome| *tome != lost);
        let (spinning, sleeping): (Vec<TomeId>, Vec<TomeId>) =
            others.partition(|t| self.is_spinning(*t));
        let sleeping = if selection == MemberSelection::Spinning { Vec::new() } else { sleeping };
        let mut left: VecDeque<TomeId> =
            spinning.into_iter().chain(sleeping).filter(|tome| self.is_usable(*tome)).collect();
        let count = if selection == MemberSelection::All { left.len() } else { need };
        let (mut pending, mut all, mut refused) = (VecDeque::new(), Vec::new(), None);
        loop {
            while all.len() + pending.len() < count
                && let Some(tome) = left.pop_front()
            {
                let (reply, answer) = oneshot::channel();
                let (offsets, may_spin_up) =
                    (offsets.clone(), selection != MemberSelection::Spinning);
                match self
                    .send_request(tome, TomeRequest::Hold { group, offsets, may_spin_up, reply })
                {
                    Ok(()) => pending.push_back(answer),
                    Err(error) => refused = Some(error),
                }
            }
            let Some(answer) = pending.pop_front() else { break };
            match answer.await.unwrap_or(Err(TomesError::Stopped)) {
                Ok((member, held)) if held.len() == offsets.len() => {
                    all.push(held.into_iter().map(|held| held.holding(member)).collect());
                }
                Ok(_) => {}
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            // It is only busy: a retry will succeed.
            Some(error) if all.len() < need && error.is_backlog() => Err(error),
            _ if all.len() < need => {
                Err(TomeError::GroupLost { group, have: all.len(), need }.into())
            }
            _ => Ok(all),
        }
    }

    /// Whether a tome serves requests.
    fn is_usable(&self, tome: TomeId) -> bool {
        self.tomes.get(&tome).is_some_and(|handle| !is_lost(handle))
    }
}

fn grains(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PUT_GRAIN_BYTES.get())).unwrap_or(u32::MAX)
}
