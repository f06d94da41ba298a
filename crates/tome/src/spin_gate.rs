//! Checks between a command to spin a disk up and the disk: the fence, and which disk spins under
//! which token.
//!
//! The fence knows leases, but not whether a disk whose lease is over has been spun down. So that
//! is recorded here as well: while it spins, no other disk may spin under its token. Not here:
//! granting tokens ([`fulgurite_tome_core::token::TokenManager`]).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fulgurite_tome_core::token::{Fence, TokenId};
use fulgurite_tome_core::{Epoch, TomeId};

use crate::{Result, TomesError};

/// Admits spin-ups, each under its own token.
#[derive(Debug, Default)]
pub(crate) struct SpinGate(Mutex<Spinning>);

#[derive(Debug, Default)]
struct Spinning {
    fence: Fence,
    spinner: BTreeMap<TokenId, TomeId>,
}

impl SpinGate {
    /// Admits the spin-up of a tome's disk, until `stopped` is called.
    ///
    /// # Errors
    /// When its lease is not the latest, or the disk of the previous holder still spins.
    pub(crate) fn admit(&self, token: TokenId, epoch: Epoch, tome: TomeId) -> Result<()> {
        let mut spinning = self.lock();
        spinning.fence.admit(token, epoch, tome)?;
        match spinning.spinner.get(&token) {
            Some(other) if *other != tome => {
                Err(TomesError::StillSpinning { tome: *other, token: token.0 })
            }
            Some(_) | None => {
                spinning.spinner.insert(token, tome);
                Ok(())
            }
        }
    }

    /// Records that a tome's disk stands still.
    pub(crate) fn stopped(&self, tome: TomeId) {
        self.lock().spinner.retain(|_, spinner| *spinner != tome);
    }

    /// Returns the token under which a tome's disk spins.
    pub(crate) fn token_of(&self, tome: TomeId) -> Option<TokenId> {
        self.lock().spinner.iter().find(|(_, spinner)| **spinner == tome).map(|(token, _)| *token)
    }

    fn lock(&self) -> MutexGuard<'_, Spinning> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
