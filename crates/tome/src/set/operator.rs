//! Operator requests to a set: rebuild, retire, scrub, verify, and the ledger of spin-ups.
//!
//! Not here: how any of it is done.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fulgurite_disks::SpinUp;
use fulgurite_tome_core::consistency::Finding;
use fulgurite_tome_core::{GroupId, Member, TomeError, TomeId};
use fulgurite_units::error_chain;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::{Moves, TomeHandle, TomeSet, lock};
use crate::driver::{Checked, Driver, TomeRequest};
use crate::{Result, TomesError};

/// Poll interval for whether a leaving tome is fully protected.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Tomes that take no new objects because they are leaving.
#[derive(Clone, Debug, Default)]
pub(super) struct ClosedTomes(Arc<Mutex<BTreeSet<TomeId>>>);

/// One of them, until its retirement is done or cancelled.
struct Closing {
    closed: ClosedTomes,
    tome: TomeId,
}

impl ClosedTomes {
    pub(super) fn has(&self, tome: TomeId) -> bool {
        self.tomes().contains(&tome)
    }

    fn tomes(&self) -> MutexGuard<'_, BTreeSet<TomeId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.closed.tomes().remove(&self.tome);
    }
}

/// A group whose members were compared by their metadata stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupChecked {
    /// The group.
    pub group: GroupId,
    /// Its tomes, in the order of its members.
    pub tomes: Vec<TomeId>,
    /// Blocks that are no codeword; empty where all agree.
    pub findings: Vec<Finding>,
    /// Signatures exchanged for it.
    pub exchanged: u64,
    /// Why it could not be compared, if so.
    pub failure: Option<String>,
}

impl GroupChecked {
    /// Returns the tome of a member.
    #[must_use]
    pub fn tome_of(&self, member: Member) -> Option<TomeId> {
        self.tomes.get(member.as_usize()).copied()
    }
}

impl TomeSet {
    /// Rebuilds a lost tome: each of its regions is rebuilt from its group on a tome outside the
    /// group, which takes over the member slot and the objects. Returns when that is planned;
    /// [`Self::status`] has its progress. The plan continues across starts. A member slot without
    /// room waits for a new tome ([`Self::init`] with more roots).
    ///
    /// # Errors
    /// Kind `Invalid` while the tome is here and serves requests; `NotFound` when there is none.
    pub fn rebuild(&self, tome: TomeId) -> BoxFuture<'_, Result<Moves>> {
        Box::pin(async move {
            let is_here = match self.tomes.get(&tome) {
                None => return Err(TomeError::NoTome { tome }.into()),
                Some(handle) => !is_lost(handle),
            };
            if is_here {
                let what = format!("tome {tome} is not lost: retire it instead");
                return Err(TomesError::Invalid { what });
            }
            self.mover.retire(tome).await
        })
    }

    /// Retires a tome that is here: it takes nothing new, and when all of it is protected it is
    /// spun down for good and its member slots move as those of a lost one. Returns when that is
    /// planned. Its objects are read from their groups meanwhile. If the caller stops waiting
    /// before that, the tome stays in service.
    ///
    /// # Errors
    /// As [`Self::rebuild`]; `Invalid` while another tome is lost or leaving, since its groups have
    /// less redundancy already, and when it is in another process, which must be stopped first.
    pub fn retire(&self, tome: TomeId) -> BoxFuture<'_, Result<Moves>> {
        Box::pin(async move {
            let Some(driver) = self.live_driver(tome)? else {
                return self.mover.retire(tome).await;
            };
            self.closed.tomes().insert(tome);
            let _closing = Closing { closed: self.closed.clone(), tome };
            loop {
                if let Some(other) = self.other_lost(tome) {
                    let what = format!(
                        "tome {other} is lost or leaves, so groups have less redundancy already: \
                         it must be rebuilt before tome {tome} is retired"
                    );
                    return Err(TomesError::Invalid { what });
                }
                if !lock(&self.names).is_putting(tome) && self.is_protected(tome, driver).await? {
                    break;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            self.store.retire_permanently(tome)?;
            driver.retire();
            self.mover.retire(tome).await
        })
    }

    /// Returns a tome that is here and serves requests; `None` when it is lost.
    fn live_driver(&self, tome: TomeId) -> Result<Option<&Driver>> {
        match self.tomes.get(&tome) {
            None => Err(TomeError::NoTome { tome }.into()),
            Some(TomeHandle::Remote(_)) => {
                let what = format!(
                    "tome {tome} is in another process: stop that process once all is protected, \
                     and rebuild the tome"
                );
                Err(TomesError::Invalid { what })
            }
            Some(TomeHandle::Live(driver)) => {
                Ok(Some(driver).filter(|driver| !driver.is_given_up()))
            }
            Some(TomeHandle::Lost(_)) => Ok(None),
        }
    }

    /// Returns another tome that has member slots and does not answer.
    fn other_lost(&self, tome: TomeId) -> Option<TomeId> {
        let Moves { leaving, out, .. } = self.mover.moves();
        let lost = self.tomes.iter().filter(|(_, handle)| is_lost(handle)).map(|(tome, _)| *tome);
        lost.chain(leaving).find(|other| *other != tome && !out.contains(other))
    }

    async fn is_protected(&self, tome: TomeId, driver: &Driver) -> Result<bool> {
        let status = super::status_of(tome, driver).await;
        match status.failure {
            Some(why) => Err(TomesError::GivenUp { tome, why }),
            None => Ok(status.unprotected.bytes.get() == 0),
        }
    }

    /// Scrubs a disk now: reads every written block, and returns when done. Bad blocks are rebuilt
    /// on the way. [`Self::status`] has the progress; a restart forgets it.
    ///
    /// # Errors
    /// Kind `NotFound`; `Unavailable` when the tome is lost, or too many requests for it wait.
    pub fn scrub(&self, tome: TomeId) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.call(tome, |reply| TomeRequest::Scrub { reply }).await })
    }

    /// Compares the members of each group by their metadata stores, without a spin-up. Calls back
    /// with each result.
    ///
    /// # Errors
    /// When groups cannot be read.
    pub async fn verify(&self, mut report: impl FnMut(GroupChecked)) -> Result<()> {
        for group in self.store.groups()? {
            let tomes: Vec<TomeId> = group.slots().iter().map(|slot| slot.tome).collect();
            let mut checked = GroupChecked {
                group: group.id(),
                tomes: tomes.clone(),
                findings: Vec::new(),
                exchanged: 0,
                failure: None,
            };
            match self.check(group.id(), &tomes).await {
                Ok(Checked { findings, exchanged }) => {
                    (checked.findings, checked.exchanged) = (findings, exchanged);
                }
                Err(error) => checked.failure = Some(error_chain(&error)),
            }
            report(checked);
        }
        Ok(())
    }

    /// Number of groups.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn groups(&self) -> Result<usize> {
        Ok(self.store.groups()?.len())
    }

    /// Has a member of a group check it, if no member is lost.
    async fn check(&self, group: GroupId, tomes: &[TomeId]) -> Result<Checked> {
        let lost = tomes.iter().find(|tome| self.tomes.get(tome).is_none_or(is_lost));
        if let Some(tome) = lost {
            let what = format!("tome {tome} is lost or away");
            return Err(TomesError::Invalid { what });
        }
        let Some(first) = tomes.first() else { return Err(TomeError::NoGroup { group }.into()) };
        self.call(*first, |reply| TomeRequest::Check { group, reply }).await
    }

    /// Returns the latest spin-ups of each tome that answers, the latest last.
    pub fn spin_ups(&self) -> BoxFuture<'_, Vec<SpinUp>> {
        Box::pin(async move {
            let mut spin_ups = Vec::new();
            for handle in self.tomes.values() {
                let (reply, answer) = oneshot::channel();
                match handle {
                    // A failed tome answers from its ledger; if its thread has ended, there is no
                    // answer.
                    TomeHandle::Live(driver) => {
                        drop(driver.send_request(TomeRequest::SpinUps(reply)))
                    }
                    TomeHandle::Remote(remote) => {
                        remote.0.send_request(TomeRequest::SpinUps(reply))
                    }
                    TomeHandle::Lost(_) => continue,
                }
                spin_ups.extend(answer.await.unwrap_or_default());
            }
            spin_ups.sort_by_key(|spin_up| (spin_up.at, spin_up.places.clone()));
            spin_ups
        })
    }
}

/// Whether a tome is lost or does not answer.
pub(super) fn is_lost(handle: &TomeHandle) -> bool {
    match handle {
        TomeHandle::Live(driver) => driver.is_given_up(),
        TomeHandle::Remote(remote) => remote.0.away().is_some(),
        TomeHandle::Lost(_) => true,
    }
}
