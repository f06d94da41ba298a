//! Bandwidth sharing on the links: max-min fair sharing of flows (Pelican, OSDI 2014, section 4.1).
//!
//! ```text
//!   disks, 105 MB/s each --18 of them--> root of the PCIe tree, 64 Gbps --15 of 18--> NIC, 20 Gbps
//!                                        shared by all flows of a server
//! ```
//!
//! The rate of a flow is that of one of its disks. All flows of a kind use the same links and so
//! have the same rate: the state is just their number and the progress of the kind. Below the root
//! no link can be full: a tray's 16 disks together are 13.4 Gbps, and at most two of them read at a
//! time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use fulgurite_units::{Duration, Instant};

/// Links of a server: the root of its PCIe tree and its network.
pub(crate) const LINKS: usize = 2;
/// Number of kinds of flows.
pub(crate) const KINDS: usize = 2;
/// A flow has ended when fewer bytes than this remain: times are whole nanoseconds.
const BYTES_LEFT: f64 = 1.0;

/// The kind of a flow, which determines its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To a client: over the root and the network.
    Read,
    /// From disks to a disk: over the root alone.
    Rebuild,
}

/// How much of each link a flow of a kind uses per byte per second of one of its disks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LinkUsage(pub(crate) [f64; LINKS]);

/// Returns the max-min fair rates of the kinds for these numbers of flows, none above `cap`: all
/// rates rise together until one of their links is full or the cap is reached.
pub(crate) fn max_min<const K: usize>(
    counts: [f64; K],
    uses: [LinkUsage; K],
    links: [f64; LINKS],
    cap: f64,
) -> [f64; K] {
    let mut rates = [0.0; K];
    let mut risen = counts.map(|count| count > 0.0);
    // In each round a link becomes full or all reach the cap.
    for _ in 0..=LINKS {
        let mut level = cap;
        for (link, limit) in links.iter().enumerate() {
            let sum = |rising: bool| -> f64 {
                let these = (0..K).filter(|&kind| risen[kind] == rising);
                these
                    .map(|kind| {
                        let rate = if rising { 1.0 } else { rates[kind] };
                        counts[kind] * uses[kind].0[link] * rate
                    })
                    .sum()
            };
            let by = sum(true);
            if by > 0.0 {
                level = level.min((limit - sum(false)).max(0.0) / by);
            }
        }
        let full: [bool; LINKS] = std::array::from_fn(|link| {
            let used: f64 = (0..K)
                .map(|kind| {
                    let rate = if risen[kind] { level } else { rates[kind] };
                    counts[kind] * uses[kind].0[link] * rate
                })
                .sum();
            used >= links[link] * (1.0 - 1e-12)
        });
        for kind in 0..K {
            let stopped = |link: usize| full[link] && uses[kind].0[link] > 0.0;
            if risen[kind] {
                rates[kind] = level;
                risen[kind] = level < cap && !(0..LINKS).any(stopped);
            }
        }
    }
    rates
}

/// The links of one server and its flows. `F` identifies a flow.
#[derive(Clone, Debug)]
pub(crate) struct Server<F> {
    links: [f64; LINKS],
    disk: f64,
    uses: [LinkUsage; KINDS],
    kinds: [Flows<F>; KINDS],
    at: Instant,
    /// Increases with each change, to detect ends that were planned before it.
    version: u64,
}

/// All flows of a kind.
#[derive(Clone, Debug)]
struct Flows<F> {
    /// Bytes that one disk of a flow has read since the kind last had no flows.
    progress: f64,
    rate: f64,
    ends: BinaryHeap<Reverse<End<F>>>,
}

/// Where a flow ends, in units of the progress of its kind.
#[derive(Clone, Copy, Debug)]
struct End<F> {
    at: f64,
    sequence: u64,
    flow: F,
}

impl<F: Copy> Server<F> {
    /// Creates a server whose links and disks have these rates, in bytes per second.
    pub(crate) fn new(links: [f64; LINKS], disk: f64, uses: [LinkUsage; KINDS]) -> Self {
        let kinds =
            std::array::from_fn(|_| Flows { progress: 0.0, rate: 0.0, ends: BinaryHeap::new() });
        Self { links, disk, uses, kinds, at: Instant::ZERO, version: 0 }
    }

    /// Starts a flow: each of its disks reads this many bytes.
    pub(crate) fn begin(&mut self, now: Instant, kind: Kind, bytes: f64, flow: F) {
        self.pass(now);
        self.version += 1;
        let flows = &mut self.kinds[kind as usize];
        let at = flows.progress + bytes.max(0.0);
        flows.ends.push(Reverse(End { at, sequence: self.version, flow }));
        self.fill();
    }

    /// Removes and returns a flow that has ended by now.
    pub(crate) fn take_ended(&mut self, now: Instant) -> Option<F> {
        self.pass(now);
        for flows in &mut self.kinds {
            let ended =
                flows.ends.peek().is_some_and(|Reverse(end)| end.at <= flows.progress + BYTES_LEFT);
            if ended {
                let flow = flows.ends.pop().map(|Reverse(end)| end.flow);
                if flows.ends.is_empty() {
                    flows.progress = 0.0;
                }
                self.version += 1;
                self.fill();
                return flow;
            }
        }
        None
    }

    /// Returns when the next flow ends if none starts before, with the version for which this
    /// holds.
    pub(crate) fn next_end(&self) -> Option<(Instant, u64)> {
        let ends = self.kinds.iter().filter_map(|flows| {
            let Reverse(end) = flows.ends.peek()?;
            let left = (end.at - flows.progress).max(0.0);
            Some(left / flows.rate)
        });
        let first = ends.min_by(f64::total_cmp)?;
        // Rounded up, so that the flow has ended by then.
        let after = Duration::from_secs_f64(first) + Duration::from_nanos(1);
        Some((self.at + after, self.version))
    }

    /// Returns whether an end was planned after the last change.
    pub(crate) const fn is_current(&self, version: u64) -> bool {
        self.version == version
    }

    fn pass(&mut self, now: Instant) {
        let passed = now.since(self.at).as_secs_f64();
        for flows in &mut self.kinds {
            if !flows.ends.is_empty() {
                flows.progress += flows.rate * passed;
            }
        }
        self.at = now;
    }

    /// Recomputes the shares of the links.
    fn fill(&mut self) {
        #[expect(clippy::cast_precision_loss, reason = "a rack has few flows")]
        let counts = std::array::from_fn(|kind| self.kinds[kind].ends.len() as f64);
        let rates = max_min(counts, self.uses, self.links, self.disk);
        for (flows, rate) in self.kinds.iter_mut().zip(rates) {
            flows.rate = rate;
        }
    }
}

impl<F> PartialEq for End<F> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<F> Eq for End<F> {}

impl<F> PartialOrd for End<F> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<F> Ord for End<F> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at).then(self.sequence.cmp(&other.sequence))
    }
}

#[cfg(test)]
mod tests {
    use fulgurite_units::{Duration, Instant};
    use proptest::prelude::*;

    use super::{Kind, LINKS, LinkUsage, Server, max_min};

    const READ: LinkUsage = LinkUsage([18.0, 15.0]);
    const REBUILD: LinkUsage = LinkUsage([18.0, 0.0]);
    const DISK: f64 = 105e6;
    const ROOT: f64 = 8e9;
    const NIC: f64 = 2.5e9;

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn one_read_is_disk_bound_and_two_are_network_bound() {
        let rate = |reads: f64, rebuilds: f64| {
            max_min([reads, rebuilds], [READ, REBUILD], [ROOT, NIC], DISK)
        };
        assert!((rate(1.0, 0.0)[0] - DISK).abs() < 1e-3);
        assert!((rate(2.0, 0.0)[0] - NIC / 30.0).abs() < 1e-3);
        // What reads leave of the root is for flows that do not need the network.
        let [read, rebuild] = rate(2.0, 1.0);
        assert!((read - NIC / 30.0).abs() < 1e-3 && (rebuild - DISK).abs() < 1e-3);
        // 24 reads at once without a network: the root is full, 53.3 Gbps of it are user bytes.
        let [read] = max_min([24.0], [READ], [ROOT, f64::INFINITY], DISK);
        assert!((read * 24.0 * 15.0 * 8.0 - 53.333e9).abs() < 1e6);
    }

    proptest! {
        /// No link is overfull. Each flow has a full link on which no other flow is faster, or is
        /// as fast as its disks: this is the definition of max-min fairness.
        #[test]
        fn shares_are_max_min_fair(
            counts in prop::array::uniform3(0_u32..30),
            uses in prop::array::uniform3(prop::array::uniform2(0_u32..20)),
            links in prop::array::uniform2(1e6..1e10),
        ) {
            let (counts, uses) =
                (counts.map(f64::from), uses.map(|uses| LinkUsage(uses.map(f64::from))));
            let rates = max_min(counts, uses, links, DISK);
            let used = |link: usize| -> f64 {
                (0..3).map(|kind| counts[kind] * uses[kind].0[link] * rates[kind]).sum()
            };
            for (link, limit) in links.iter().enumerate() {
                prop_assert!(used(link) <= limit * (1.0 + 1e-9));
            }
            for kind in (0..3).filter(|&kind| counts[kind] > 0.0) {
                let held = (0..LINKS).any(|link| {
                    let mine = uses[kind].0[link] > 0.0;
                    let fastest = (0..3)
                        .filter(|&other| counts[other] > 0.0 && uses[other].0[link] > 0.0)
                        .all(|other| rates[other] <= rates[kind] * (1.0 + 1e-9));
                    mine && fastest && used(link) >= links[link] * (1.0 - 1e-9)
                });
                prop_assert!(held || rates[kind] >= DISK * (1.0 - 1e-12), "{kind}: {rates:?}");
            }
        }

        /// In any order of flows each ends, none before its disks could have read it, and all
        /// together not before the network could have carried them.
        #[test]
        fn every_flow_ends_and_not_too_early(
            sizes in prop::collection::vec(1.0..1e9_f64, 1..40),
            gap in 0.0..2.0_f64,
        ) {
            let mut server = Server::new([ROOT, NIC], DISK, [READ, REBUILD]);
            let mut begun = Vec::new();
            let mut ended = vec![None; sizes.len()];
            let mut now = Instant::ZERO;
            let mut next = 0;
            while ended.iter().any(Option::is_none) {
                let comes = (next < sizes.len()).then(|| at(gap * next as f64));
                let (end, version) = server.next_end().unzip();
                if let Some(come) = comes.filter(|come| end.is_none_or(|end| *come < end)) {
                    now = come;
                    server.begin(now, Kind::Read, sizes[next], next);
                    begun.push(now);
                    next += 1;
                    continue;
                }
                prop_assert!(server.is_current(version.unwrap()));
                now = end.unwrap();
                let flow = server.take_ended(now);
                prop_assert!(flow.is_some(), "a flow ends at its planned end");
                ended[flow.unwrap()] = Some(now);
            }
            for (flow, size) in sizes.iter().enumerate() {
                let took = ended[flow].unwrap().since(begun[flow]).as_secs_f64();
                prop_assert!(took >= size / DISK - 1e-6, "{took} for {size}");
            }
            let bytes: f64 = sizes.iter().map(|size| size * 15.0).sum();
            prop_assert!(now.since(Instant::ZERO).as_secs_f64() >= bytes / NIC - 1e-6);
            prop_assert!(server.next_end().is_none());
        }
    }

    #[test]
    fn gigabyte_read_is_limited_by_its_disks() {
        let mut server = Server::new([ROOT, NIC], DISK, [READ, REBUILD]);
        server.begin(at(5.0), Kind::Read, 1e9 / 15.0, 7);
        let (end, version) = server.next_end().unwrap();
        assert!((end.since(at(5.0)).as_secs_f64() - 0.634_92).abs() < 1e-4);
        // Another flow starts: the planned end is no longer valid.
        server.begin(at(5.1), Kind::Read, 1e9 / 15.0, 8);
        assert!(!server.is_current(version));
        assert_eq!(server.take_ended(end), None);
        let later = server.next_end().unwrap().0;
        assert!(later > end);
        assert_eq!(server.take_ended(later), Some(7));
    }
}
