//! Plan of a run: the number of sites, the network, the clients, and what fails when.

use fulgurite_geo_core::QuorumRule;
use fulgurite_units::{RandomStream, Seed};

use super::run::Fault;

/// A run, drawn from a seed.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) sites: usize,
    pub(super) sizes: QuorumRule,
    pub(super) data: u8,
    pub(super) parity: u8,
    pub(super) keys: u64,
    pub(super) clients: usize,
    pub(super) operations: usize,
    /// Chances, in thousandths, that a message or an answer is lost, or comes twice.
    pub(super) loss: u64,
    pub(super) twice: u64,
    /// Maximum delay of a message, in milliseconds.
    pub(super) delay_ms: u64,
    /// Chance, in thousandths, that a client dies in the middle of an operation.
    pub(super) crash: u64,
    /// Number of temporary site failures.
    pub(super) failures: usize,
    /// Whether a site is lost and replaced.
    pub(super) replace: bool,
    /// Whether all messages arrive before a client continues.
    pub(super) settle: bool,
    /// Number of versions kept; all if none.
    pub(super) keep: Option<usize>,
    pub(super) fault: Option<Fault>,
}

impl Plan {
    pub(super) fn draw(seed: u64) -> Self {
        let mut random = Seed::new(seed).child(b"plan").stream();
        let sites = [3, 3, 3, 4, 5, 7][draw_index(&mut random, 6)];
        let rough = random.below(4) > 0;
        let parity = 1 + u8::from(sites > 4 && random.below(2) > 0);
        Self {
            seed,
            sites,
            sizes: [QuorumRule::Majority, QuorumRule::Balanced, QuorumRule::Flexible]
                [draw_index(&mut random, 3)],
            data: u8::try_from(sites).unwrap() - parity,
            parity,
            keys: 1 + random.below(3),
            clients: 1 + draw_index(&mut random, 4),
            operations: 4 + draw_index(&mut random, 20),
            loss: if rough { random.below(100) } else { 0 },
            twice: if rough { random.below(100) } else { 0 },
            delay_ms: 5 + random.below(200),
            crash: if rough { random.below(150) } else { 0 },
            failures: if rough { draw_index(&mut random, 4) } else { 0 },
            replace: random.below(4) == 0,
            settle: false,
            keep: (random.below(2) == 0).then_some(1),
            fault: None,
        }
    }

    /// Returns a plan with one client at a time and without failures.
    pub(super) fn quiet(sites: usize) -> Self {
        let data = u8::try_from(sites).unwrap() - 1;
        Self {
            seed: 1,
            sites,
            sizes: QuorumRule::Majority,
            data,
            parity: 1,
            keys: 3,
            clients: 1,
            operations: 60,
            loss: 0,
            twice: 0,
            delay_ms: 100,
            crash: 0,
            failures: 0,
            replace: false,
            settle: true,
            keep: None,
            fault: None,
        }
    }

    pub(super) fn with(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }
}

/// Draws an index below `bound`.
pub(super) fn draw_index(random: &mut RandomStream, bound: u64) -> usize {
    usize::try_from(random.below(bound)).unwrap()
}
