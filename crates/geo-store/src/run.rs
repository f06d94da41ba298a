//! Driver of operations: executes their commands, at sites and with bytes, and reports the results
//! to them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fulgurite_geo::{
    Act, Command, Deed, Fetched, Fragment, Heard, How, Operation, Request, Value, Version,
};
use fulgurite_sites::{Entropy, Key, Rests};
use fulgurite_units::{Instant, Outbox};
use object_store::GetRange;
use tokio::sync::{Semaphore, mpsc};

use crate::fragments::{self, Encoded, Stripe};
use crate::limits::HEARD_AT_ONCE;
use crate::live::Live;
use crate::names;
use crate::site::Site;
use crate::undecided::{Open, Undecided};

/// Context shared by all operations of a program.
pub(crate) struct Means {
    pub(crate) entropy: Entropy,
    pub(crate) rests: Arc<dyn Rests>,
    /// Limits the fragments in flight to sites that did not answer lately.
    pub(crate) late: Semaphore,
    /// Limits the writes whose fragments are being erased.
    pub(crate) forgetting: Arc<Semaphore>,
    /// Undecided versions that were seen.
    pub(crate) undecided: Undecided,
    /// Origin of the runtime's time.
    pub(crate) since: tokio::time::Instant,
}

impl Means {
    pub(crate) fn now(&self) -> Instant {
        let passed = self.since.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

/// Subject of an operation: an object, and the bytes to write or fetch.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) object: String,
    pub(crate) row: Key,
    /// The fragments to write.
    pub(crate) encoded: Arc<Encoded>,
    /// The range to fetch; none if it only checks that the bytes exist.
    pub(crate) wanted: Option<GetRange>,
    /// The only blob to remove, if nothing is known of others.
    pub(crate) blob: Option<Key>,
    /// Whether fragments at sites that are down count as erased. Nothing needs them any more, and a
    /// sweep finds them.
    pub(crate) leaves: bool,
    /// Whether probed fragments are read in full.
    pub(crate) deep: bool,
    pub(crate) fetched: Arc<Mutex<BTreeMap<Version, First>>>,
    /// The values whose fragments it handles.
    pub(crate) values: Arc<Mutex<BTreeMap<fulgurite_geo::WriteId, Stripe>>>,
    /// Values known from a row to be durable.
    pub(crate) durable: Arc<Mutex<BTreeSet<fulgurite_geo::WriteId>>>,
    /// Number of its notifications that were dropped.
    pub(crate) untold: Arc<AtomicUsize>,
}

/// The first bytes that were fetched of a version.
#[derive(Clone, Debug)]
pub(crate) struct First {
    pub(crate) bytes: Bytes,
}

impl Work {
    pub(crate) fn on(object: &str) -> crate::Result<Self> {
        Ok(Self {
            object: object.to_owned(),
            row: names::row(object)?,
            encoded: Arc::default(),
            wanted: None,
            blob: None,
            leaves: false,
            deep: false,
            fetched: Arc::default(),
            values: Arc::default(),
            durable: Arc::default(),
            untold: Arc::default(),
        })
    }

    /// Returns the number of its notifications that were dropped since the last call.
    pub(crate) fn take_untold(&self) -> usize {
        self.untold.swap(0, Ordering::Relaxed)
    }

    /// Takes the first bytes that were fetched of a version.
    pub(crate) fn first(&self, version: Version) -> Option<First> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner).remove(&version)
    }

    /// Records the fragments of a write.
    pub(crate) fn know(&self, value: &Value) {
        if let Some(stripe) = Stripe::of(&self.object, value) {
            let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
            values.insert(stripe.write, stripe);
        }
    }

    fn durables(&self) -> std::sync::MutexGuard<'_, BTreeSet<fulgurite_geo::WriteId>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stripe(&self, write: fulgurite_geo::WriteId) -> Option<Stripe> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).get(&write).cloned()
    }
}

/// Runs an operation to its end.
pub(crate) async fn run<O>(
    operation: &mut O,
    work: &Work,
    live: &Arc<Live>,
    means: &Arc<Means>,
) -> O::End
where
    O: Operation + Send,
    O::End: Send,
{
    let (send, mut heard) = mpsc::channel(HEARD_AT_ONCE);
    let (mut out, mut open) = (Outbox::new(), None);
    operation.step(means.now(), Heard::Begin, &mut out);
    loop {
        for act in out.drain() {
            act_on(act, work, live, means, &send);
        }
        if let Some(end) = operation.end() {
            means.undecided.note(&work.object, open, operation.known().last());
            return end.clone();
        }
        let heard = match operation.deadline() {
            None => heard.recv().await,
            Some(deadline) => {
                let left = std::time::Duration::from_nanos(deadline.since(means.now()).as_nanos());
                match tokio::time::timeout(left, heard.recv()).await {
                    Ok(heard) => heard,
                    Err(_) => Some(Heard::Timer),
                }
            }
        };
        let Some(heard) = heard else {
            // Impossible: this function holds a sender itself.
            unreachable!("there is a sender")
        };
        learn(work, &heard);
        Open::hear(&mut open, &heard);
        operation.step(means.now(), heard, &mut out);
    }
}

/// Records the fragments of all versions in a row.
fn learn(work: &Work, heard: &Heard) {
    if let Heard::Answered { answer: Some((_, row)), .. } = heard {
        for decided in row.known.decided.values() {
            work.know(&decided.value);
            if decided.durable {
                work.durables().insert(decided.value.id);
            }
        }
        for accepted in row.open.values().filter_map(|open| open.accepted.as_ref()) {
            work.know(&accepted.value);
        }
    }
}

fn act_on(
    act: Act,
    work: &Work,
    live: &Arc<Live>,
    means: &Arc<Means>,
    heard: &mpsc::Sender<Heard>,
) {
    let (live, means, heard, work) =
        (Arc::clone(live), Arc::clone(means), heard.clone(), work.clone());
    match act {
        Act::Ask(ask) => {
            tokio::spawn(async move {
                let answer = match live.shared(ask.site) {
                    Some(site) => {
                        let with = (&*means.rests, &means.entropy);
                        site.apply(&work.row, &ask.request, with).await
                    }
                    None => None,
                };
                // Once the operation has ended, nobody receives it.
                let _ =
                    heard.send(Heard::Answered { site: ask.site, call: ask.call, answer }).await;
            });
        }
        Act::Tell { site, known } => {
            let Some(site) = live.shared(site) else { return };
            let Some(room) = site.tellings.room() else {
                work.untold.fetch_add(1, Ordering::Relaxed);
                return;
            };
            let request = Request { epoch: live.map.epoch(), known, command: Command::Learn };
            tokio::spawn(async move {
                let _room = room;
                let Some(_turn) = site.tellings.turn().await else { return };
                let with = (&*means.rests, &means.entropy);
                let _ = site.apply(&work.row, &request, with).await;
            });
        }
        Act::Fragment(fragment, deed) => {
            tokio::spawn(async move {
                let how = do_deed(&live, &means, &work, (fragment, deed)).await;
                let _ = heard.send(Heard::Fragment(fragment, deed, how)).await;
            });
        }
        Act::Fetch { version, value } => {
            tokio::spawn(async move {
                let fetched = fetch_first(&live, &work, version, &value).await;
                let _ = heard.send(Heard::Fetched(version, fetched)).await;
            });
        }
    }
}

async fn do_deed(
    live: &Arc<Live>,
    means: &Means,
    work: &Work,
    (fragment, deed): (Fragment, Deed),
) -> How {
    if deed == Deed::Write {
        let is_down = live.site(fragment.site).is_none_or(Site::is_down);
        let permit = means.late.try_acquire();
        if is_down && permit.is_err() {
            return How::Unknown;
        }
        let _late = permit.ok().filter(|_| is_down);
        return fragments::write(live, fragment, &work.encoded).await;
    }
    if deed == Deed::Erase && work.leaves && live.site(fragment.site).is_none_or(Site::is_down) {
        return How::Done;
    }
    if let (Deed::Erase, Some(blob)) = (deed, &work.blob) {
        return fragments::erase_blob(live, fragment.site, blob).await;
    }
    let Some(stripe) = work.stripe(fragment.write) else { return How::Unknown };
    match deed {
        Deed::Write => How::Unknown,
        Deed::Probe => fragments::probe(live, &stripe, fragment, work.deep).await,
        Deed::Rebuild => fragments::rebuild(live, &stripe, fragment).await,
        Deed::Forbid => fragments::forbid(live, &stripe, fragment).await,
        Deed::Erase => fragments::erase(live, &stripe, fragment).await,
    }
}

/// Fetches the first requested bytes of a version. They prove that it is readable; the rest is
/// fetched while the reader consumes the stream.
async fn fetch_first(live: &Arc<Live>, work: &Work, version: Version, value: &Value) -> Fetched {
    let short = Fetched::Short { absent: u8::MAX, unknown: 0 };
    let Some(stripe) = Stripe::of(&work.object, value) else { return short };
    let size = value.put().map_or(0, |put| put.size);
    let wanted = work.wanted.as_ref().and_then(|range| range.as_range(size).ok());
    let (start, size) = value_range(value, &wanted.unwrap_or(0..1));
    let mut chunks = stripe.coded.chunks(stripe.size);
    let Some(chunk) = chunks.find(|chunk| (chunk.at..chunk.at + chunk.length).contains(&start))
    else {
        return Fetched::Whole;
    };
    let end = (start + size).min(chunk.at + chunk.length);
    let range = start - chunk.at..end - chunk.at;
    let durable = work.durables().contains(&value.id);
    match fragments::fetch_chunk(live, (&stripe, durable), &chunk, Some(range)).await {
        Ok(bytes) => {
            let mut fetched = work.fetched.lock().unwrap_or_else(PoisonError::into_inner);
            fetched.insert(version, First { bytes });
            Fetched::Whole
        }
        Err(short) => short,
    }
}

/// Returns where a range of a value's bytes begins in its stripe, and its length, cut at the end of
/// the value.
pub(crate) fn value_range(value: &Value, wanted: &Range<u64>) -> (u64, u64) {
    let Some(put) = value.put() else { return (0, 0) };
    let at = match &put.data {
        fulgurite_geo::Data::Shared { at, .. } => *at,
        fulgurite_geo::Data::Inline(_) | fulgurite_geo::Data::Coded(_) => 0,
    };
    let (start, end) = (wanted.start.min(put.size), wanted.end.min(put.size));
    (at + start, end.saturating_sub(start))
}
