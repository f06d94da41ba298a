//! What stands between a command to turn a disk and the disk: only the latest lease passes.
//!
//! Whoever has power over the disks asks it, such as the switch that feeds them (Pergamum
//! (FAST 2008), section 3.2, has switches that bound the load). Not here: who gets leases.

use std::collections::BTreeMap;

use super::TokenId;
use crate::{Epoch, Result, TomeError, TomeId};

/// Knows the latest lease that turned a disk, for each token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fence(BTreeMap<TokenId, (Epoch, TomeId)>);

impl Fence {
    /// Lets a tome turn its disk, or refuses. If another tome turned under this token before, that
    /// is to be put down first: its lease is over, whatever it thinks.
    ///
    /// # Errors
    /// [`TomeError::StaleEpoch`] when a later lease has turned a disk, or another tome under the
    /// same one.
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
