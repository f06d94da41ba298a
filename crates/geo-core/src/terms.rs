//! Terms of an operation: which sites vote, which are near, and how long anything may take.

use std::collections::BTreeSet;

use fulgurite_units::Duration;

use crate::{Epoch, Quorums, SiteIndex};

/// Terms of one operation.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Quorum sizes.
    pub quorums: Quorums,
    /// Epoch of the site map that the terms come from.
    pub epoch: Epoch,
    /// Voting sites, nearest first.
    pub voters: Vec<SiteIndex>,
    /// Sites known not to answer, or not to vote. They get requests all the same.
    pub down: BTreeSet<SiteIndex>,
    /// Sites that did not answer lately. Fragments are sent there, but not waited for once enough
    /// others are written.
    pub silent: BTreeSet<SiteIndex>,
    /// Whether writes begin with a fast round.
    pub fast: bool,
    /// How long a round waits for answers.
    pub round: Duration,
    /// The first backoff after a lost ballot.
    pub backoff: Duration,
    /// How long the whole operation may take.
    pub patience: Duration,
}

impl Terms {
    /// Whether a fast round can succeed.
    pub(crate) fn fast_may_succeed(&self) -> bool {
        let up = self.voters.iter().filter(|site| !self.down.contains(site)).count();
        self.fast && up >= self.quorums.fast()
    }
}
