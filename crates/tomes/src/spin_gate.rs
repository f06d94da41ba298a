//! What stands between an order to turn a disk and the disk: the fence, and who turns under what.
//!
//! The fence knows leases; whether a disk whose lease is over has been put down it cannot know, so
//! that is written down here as well: while it turns, nobody else does under its token. Not here:
//! who gets tokens ([`fulgurite_tome::token::Keeper`]).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fulgurite_tome::token::{Fence, TokenId};
use fulgurite_tome::{Epoch, TomeId};

use crate::{Result, TomesError};

/// Lets disks turn, each under a token of its own.
#[derive(Debug, Default)]
pub(crate) struct SpinGate(Mutex<Spinning>);

#[derive(Debug, Default)]
struct Spinning {
    fence: Fence,
    by: BTreeMap<TokenId, TomeId>,
}

impl SpinGate {
    /// Lets a tome turn its disk, until it says that it is still.
    ///
    /// # Errors
    /// When its lease is not the latest, or the disk of the one before turns still.
    pub(crate) fn admit(&self, token: TokenId, epoch: Epoch, tome: TomeId) -> Result<()> {
        let mut spinning = self.lock();
        spinning.fence.admit(token, epoch, tome)?;
        match spinning.by.get(&token) {
            Some(other) if *other != tome => {
                Err(TomesError::Turns { tome: *other, token: token.0 })
            }
            Some(_) | None => {
                spinning.by.insert(token, tome);
                Ok(())
            }
        }
    }

    /// A tome's disk stands still.
    pub(crate) fn stopped(&self, tome: TomeId) {
        self.lock().by.retain(|_, by| *by != tome);
    }

    /// The token under which a tome's disk turns.
    pub(crate) fn token_of(&self, tome: TomeId) -> Option<TokenId> {
        self.lock().by.iter().find(|(_, by)| **by == tome).map(|(token, _)| *token)
    }

    fn lock(&self) -> MutexGuard<'_, Spinning> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
