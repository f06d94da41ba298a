//! On what terms an operation runs: who votes, who is near, and how long anything may take.

use std::collections::BTreeSet;

use fulgurite_units::Duration;

use crate::{Epoch, Quorums, SiteIndex};

/// Terms of one operation.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How many sites must agree.
    pub quorums: Quorums,
    /// The epoch of the map they are from.
    pub epoch: Epoch,
    /// Sites that vote, nearest first.
    pub voters: Vec<SiteIndex>,
    /// Sites that are known not to answer, or not to vote. They are asked all the same.
    pub down: BTreeSet<SiteIndex>,
    /// Sites that did not answer lately. Fragments are sent there and not waited for, once enough
    /// others are written.
    pub silent: BTreeSet<SiteIndex>,
    /// Whether writes begin with a fast round.
    pub fast: bool,
    /// How long the answers of a round are waited for.
    pub round: Duration,
    /// The first pause after a lost ballot.
    pub pause: Duration,
    /// How long the whole may take.
    pub patience: Duration,
}

impl Terms {
    /// Whether a fast round can succeed.
    pub(crate) fn fast_may_succeed(&self) -> bool {
        let up = self.voters.iter().filter(|site| !self.down.contains(site)).count();
        self.fast && up >= self.quorums.fast()
    }
}
