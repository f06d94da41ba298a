//! A read: finds the last version and fetches its bytes in parallel.
//!
//! ```text
//! rows of a quorum --> the last version is v ----.
//! the first row says u: fetch the bytes of u ----+--> u = v: found.  u < v: fetch the bytes of v
//!
//! v has too few fragments:
//!   more than `parity` certainly absent      read the rows again, once; if they say the same,
//!     durable                                it is lost
//!     not durable                            it was never acknowledged: the version before it
//!   else                                     unknown at the moment: unavailable
//! ```
//!
//! A site that does not answer proves nothing. If it counted as "absent", an acknowledged version
//! would be passed over.
//!
//! A version not known to be durable may be returned if it is readable: it stays so as long as no
//! site is lost. Readers should trigger a read repair of it.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{Controller, Instant, Outbox, RandomStream, UnixTime};

use crate::embedded_proposer::EmbeddedProposer;
use crate::{
    Change, Decided, FetchResult, Goal, Hole, KnownVersions, OpCommand, OpEvent, Operation,
    Outcome, Rounds, Terms, Value, Version, WriteId,
};

/// What to read of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadTarget {
    /// The bytes of the latest version.
    Latest,
    /// Metadata of the latest version; fetches its bytes only as far as needed to confirm it.
    Metadata,
    /// The bytes of this version, unless it is obsolete.
    Version(Version),
}

/// How a read ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadResult {
    /// This version.
    Found(Version, Value),
    /// There is no such object, or version.
    Nothing,
    /// Too few sites answered to find the version, or to supply its bytes.
    Unavailable,
    /// The version was acknowledged, and too few of its fragments are left.
    Lost(Version),
}

/// A read.
#[derive(Debug)]
pub struct Read {
    target: ReadTarget,
    terms: Terms,
    random: RandomStream,
    agreement: EmbeddedProposer,
    rounds: u32,
    fetched: BTreeMap<Version, Option<FetchResult>>,
    /// Versions that were never acknowledged and are unreadable.
    unreadable: BTreeSet<Version>,
    /// Versions whose apparent loss made it read the rows again; each does so once.
    rechecked: BTreeSet<Version>,
    /// Fetches in flight whose answers are too old to count.
    stale: BTreeMap<Version, u32>,
    end: Option<ReadResult>,
}

impl Read {
    /// Creates a read.
    #[must_use]
    pub fn new(terms: Terms, target: ReadTarget, mut random: RandomStream) -> Self {
        let inner = child(&mut random);
        Self {
            target,
            agreement: EmbeddedProposer::new(terms.clone(), Goal::Read, None, inner),
            terms,
            random,
            rounds: 0,
            fetched: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            rechecked: BTreeSet::new(),
            stale: BTreeMap::new(),
            end: None,
        }
    }

    /// Rounds between sites so far.
    #[must_use]
    pub const fn rounds(&self) -> u32 {
        let Rounds { read, fast, prepare, accept } = self.agreement.proposer().rounds();
        self.rounds + read + fast + prepare + accept
    }

    /// What is known of the object.
    #[must_use]
    pub const fn known(&self) -> &KnownVersions {
        self.agreement.proposer().known()
    }

    /// Returns unreadable versions that were never acknowledged. Make them obsolete, so that later
    /// reads need not check them again.
    #[must_use]
    pub const fn unreadable(&self) -> &BTreeSet<Version> {
        &self.unreadable
    }

    /// Returns the version to read, of those known.
    fn candidate(&self) -> Result<Option<(Version, Decided)>, Hole> {
        let limit = match self.target {
            ReadTarget::Latest | ReadTarget::Metadata => self.unreadable.len() + 1,
            ReadTarget::Version(_) => usize::MAX,
        };
        let mut visible = self.known().visible(limit)?.into_iter();
        let found = visible.find(|(version, _)| match self.target {
            ReadTarget::Latest | ReadTarget::Metadata => !self.unreadable.contains(version),
            ReadTarget::Version(target) => *version == target,
        });
        Ok(found.map(|(version, decided)| (version, decided.clone())))
    }

    /// Whether the read can answer without fetching a version's bytes.
    fn needs_no_bytes(&self, decided: &Decided) -> bool {
        let coded = decided.value.put().and_then(|put| put.coded(decided.value.id));
        coded.is_none() || (self.target == ReadTarget::Metadata && decided.durable)
    }

    fn fetch(&mut self, version: Version, value: Value, out: &mut Outbox<OpCommand>) {
        self.fetched.entry(version).or_insert_with(|| {
            out.push(OpCommand::Fetch { version, value });
            None
        });
    }

    fn conclude(&mut self, now: Instant, out: &mut Outbox<OpCommand>) {
        let certain = match self.agreement.outcome() {
            Some(Outcome::Seen) => true,
            Some(_) => return self.end = Some(ReadResult::Unavailable),
            None => false,
        };
        let (version, decided) = match self.candidate() {
            Ok(Some(candidate)) => candidate,
            Ok(None) if certain => return self.end = Some(ReadResult::Nothing),
            Err(Hole(version)) if certain => return self.fill(version, now, out),
            Ok(None) | Err(_) => return,
        };
        if self.needs_no_bytes(&decided) {
            if certain {
                self.end = Some(ReadResult::Found(version, decided.value));
            }
            return;
        }
        // Until the last version is certain, fetch only versions that are known to be durable.
        if certain || decided.durable {
            self.fetch(version, decided.value.clone(), out);
        }
        let Some(Some(fetched)) = self.fetched.get(&version).copied() else { return };
        if certain {
            self.conclude_fetch(version, decided, fetched, now, out);
        }
    }

    /// Continues once the last version and the result of its fetch are known.
    fn conclude_fetch(
        &mut self,
        version: Version,
        decided: Decided,
        fetched: FetchResult,
        now: Instant,
        out: &mut Outbox<OpCommand>,
    ) {
        let FetchResult::TooFew { absent, .. } = fetched else {
            return self.end = Some(ReadResult::Found(version, decided.value));
        };
        let parity = decided.value.put().and_then(|put| put.coded(decided.value.id));
        let parity = parity.map_or(0, |(_, _, coded)| coded.parity);
        if absent <= parity {
            self.end = Some(ReadResult::Unavailable);
        } else if self.rechecked.insert(version) {
            // Fragments may have been written or removed since the rows were read; fresh rows say
            // so. Versions that were passed over are checked again.
            self.unreadable.clear();
            self.forget_fetched();
            self.read_again(now, out);
        } else if decided.durable {
            self.end = Some(ReadResult::Lost(version));
        } else if matches!(self.target, ReadTarget::Version(_)) {
            self.end = Some(ReadResult::Nothing);
        } else {
            self.unreadable.insert(version);
            self.conclude(now, out);
        }
    }

    /// Forgets the fetched results. Fetches in flight belong to the previous attempt and are not
    /// awaited.
    fn forget_fetched(&mut self) {
        for (version, fetched) in std::mem::take(&mut self.fetched) {
            if fetched.is_none() {
                *self.stale.entry(version).or_insert(0) += 1;
            }
        }
    }

    fn read_again(&mut self, now: Instant, out: &mut Outbox<OpCommand>) {
        self.agree(Goal::Read, now, out);
    }

    /// Settles a version that must have been decided, but that no known row contains.
    fn fill(&mut self, version: Version, now: Instant, out: &mut Outbox<OpCommand>) {
        let noop = noop(&mut self.random);
        self.agree(Goal::Settle { version, noop }, now, out);
    }

    fn agree(&mut self, goal: Goal, now: Instant, out: &mut Outbox<OpCommand>) {
        self.rounds += self.agreement.proposer().rounds().total();
        let (known, inner) = (self.known().clone(), child(&mut self.random));
        self.agreement.restart(self.terms.clone(), goal, known, inner);
        self.agreement.handle(now, &OpEvent::Begin, out);
    }
}

/// Returns a value that changes nothing.
pub(crate) fn noop(random: &mut RandomStream) -> Value {
    Value::new(WriteId::draw(random), UnixTime::default(), Change::Noop)
}

/// Derives an independent random stream.
pub(crate) fn child(random: &mut RandomStream) -> RandomStream {
    let number = random.next_u64();
    fulgurite_units::Seed::new(number).stream()
}

impl Controller for Read {
    type Event = OpEvent;
    type Command = OpCommand;

    fn step(&mut self, now: Instant, event: OpEvent, out: &mut Outbox<OpCommand>) {
        if self.end.is_some() {
            return;
        }
        if let OpEvent::FetchResult(version, fetched) = &event {
            match self.stale.get_mut(version).filter(|stale| **stale > 0) {
                Some(stale) => *stale -= 1,
                None => {
                    if let Some(entry) = self.fetched.get_mut(version) {
                        entry.get_or_insert(*fetched);
                    }
                }
            }
        }
        if let OpEvent::Changed(terms) = &event {
            self.terms = (**terms).clone();
        }
        self.agreement.handle(now, &event, out);
        self.conclude(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        if self.end.is_some() { None } else { self.agreement.deadline() }
    }

    fn check(&self) {
        self.agreement.check();
        if let Some(ReadResult::Found(version, value)) = &self.end {
            assert_eq!(self.known().write(*version), Some(value.id), "not what was decided");
        }
    }
}

impl Operation for Read {
    type End = ReadResult;

    fn end(&self) -> Option<&ReadResult> {
        self.end.as_ref()
    }

    fn known(&self) -> &KnownVersions {
        Self::known(self)
    }
}
