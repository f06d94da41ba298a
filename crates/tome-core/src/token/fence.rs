//! Fencing between a command to spin a disk up and the disk: only the latest lease passes.
//!
//! It belongs where disks get their power, such as the switch that feeds them (Pergamum (FAST
//! 2008), section 3.2, has switches that bound the load). Not here: granting leases.

use std::collections::BTreeMap;

use super::TokenId;
use crate::{Epoch, Result, TomeError, TomeId};

/// The latest lease that spun a disk up, for each token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fence(BTreeMap<TokenId, (Epoch, TomeId)>);

impl Fence {
    /// Admits or refuses a spin-up. If another tome spun its disk under this token before, the
    /// caller must first spin that one down: its lease is over, whatever it believes.
    ///
    /// # Errors
    /// [`TomeError::StaleEpoch`] when a later lease has spun a disk up, or another tome did under
    /// the same one.
    pub fn admit(&mut self, token: TokenId, epoch: Epoch, tome: TomeId) -> Result<Option<TomeId>> {
        let before = self.0.get(&token).copied();
        if let Some((latest, holder)) = before
            && (epoch < latest || (epoch == latest && holder != tome))
        {
            return Err(TomeError::StaleEpoch { tome, epoch, latest });
        }
        self.0.insert(token, (epoch, tome));
        Ok(before.map(|(_, holder)| holder).filter(|holder| *holder != tome))
    }
}
