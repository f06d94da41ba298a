//! Driver of operations: executes their commands, at sites and with bytes, and reports the results
//! to them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fulgurite_geo_core::{
    Command, FetchResult, Fragment, FragmentOp, OpCommand, OpEvent, OpResult, Operation, Request,
    Value, Version,
};
use fulgurite_units::{Instant, Outbox};
use object_store::GetRange;
use tokio::sync::{Semaphore, mpsc};

use crate::objects::fragments::{self, EncodedFragments, Stripe};
use crate::objects::limits::EVENT_QUEUE_LEN;
use crate::objects::live_map::LiveMap;
use crate::objects::names;
use crate::objects::site::Site;
use crate::objects::undecided_versions::{Open, Undecided};
use crate::stores::{Backoff, Entropy, Key};

/// Context shared by all operations of a program.
pub(crate) struct Context {
    pub(crate) entropy: Entropy,
    pub(crate) backoff: Arc<dyn Backoff>,
    /// Limits the fragments in flight to sites that did not answer lately.
    pub(crate) late: Semaphore,
    /// Limits the writes whose fragments are being erased.
    pub(crate) discards: Arc<Semaphore>,
    /// Undecided versions that were seen.
    pub(crate) undecided: Undecided,
    /// Origin of the runtime's time.
    pub(crate) since: tokio::time::Instant,
}

impl Context {
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
    pub(crate) encoded: Arc<EncodedFragments>,
    /// The range to fetch; none if it only checks that the bytes exist.
    pub(crate) wanted: Option<GetRange>,
    /// The only blob to remove, if nothing is known of others.
    pub(crate) blob: Option<Key>,
    /// Whether fragments at sites that are down count as erased. Nothing needs them any more, and a
    /// sweep finds them.
    pub(crate) skip_down: bool,
    /// Whether probed fragments are read in full.
    pub(crate) deep: bool,
    pub(crate) fetched: Arc<Mutex<BTreeMap<Version, First>>>,
    /// The values whose fragments it handles.
    pub(crate) values: Arc<Mutex<BTreeMap<fulgurite_geo_core::WriteId, Stripe>>>,
    /// Values known from a row to be durable.
    pub(crate) durable: Arc<Mutex<BTreeSet<fulgurite_geo_core::WriteId>>>,
    /// Number of its notifications that were dropped.
    pub(crate) dropped: Arc<AtomicUsize>,
}

/// The first bytes that were fetched of a version.
#[derive(Clone, Debug)]
pub(crate) struct First {
    pub(crate) bytes: Bytes,
}

impl Work {
    pub(crate) fn for_object(object: &str) -> crate::objects::Result<Self> {
        Ok(Self {
            object: object.to_owned(),
            row: names::row(object)?,
            encoded: Arc::default(),
            wanted: None,
            blob: None,
            skip_down: false,
            deep: false,
            fetched: Arc::default(),
            values: Arc::default(),
            durable: Arc::default(),
            dropped: Arc::default(),
        })
    }

    /// Returns the number of its notifications that were dropped since the last call.
    pub(crate) fn take_dropped(&self) -> usize {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    /// Takes the first bytes that were fetched of a version.
    pub(crate) fn first(&self, version: Version) -> Option<First> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner).remove(&version)
    }

    /// Records the fragments of a write.
    pub(crate) fn record_stripe(&self, value: &Value) {
        if let Some(stripe) = Stripe::from_value(&self.object, value) {
            let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
            values.insert(stripe.write, stripe);
        }
    }

    fn durables(&self) -> std::sync::MutexGuard<'_, BTreeSet<fulgurite_geo_core::WriteId>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stripe(&self, write: fulgurite_geo_core::WriteId) -> Option<Stripe> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).get(&write).cloned()
    }
}

/// Runs an operation to its end.
pub(crate) async fn run<O>(
    operation: &mut O,
    work: &Work,
    live: &Arc<LiveMap>,
    ctx: &Arc<Context>,
) -> O::End
where
    O: Operation + Send,
    O::End: Send,
{
    let (send, mut event) = mpsc::channel(EVENT_QUEUE_LEN);
    let (mut out, mut open) = (Outbox::new(), None);
    operation.step(ctx.now(), OpEvent::Begin, &mut out);
    loop {
        for command in out.drain() {
            execute(command, work, live, ctx, &send);
        }
        if let Some(end) = operation.end() {
            ctx.undecided.record(&work.object, open, operation.known().last());
            return end.clone();
        }
        let event = match operation.deadline() {
            None => event.recv().await,
            Some(deadline) => {
                let left = std::time::Duration::from_nanos(deadline.since(ctx.now()).as_nanos());
                match tokio::time::timeout(left, event.recv()).await {
                    Ok(event) => event,
                    Err(_) => Some(OpEvent::Timer),
                }
            }
        };
        let Some(event) = event else {
            // Impossible: a sender exists.
            unreachable!("this function holds a sender")
        };
        learn(work, &event);
        Open::observe(&mut open, &event);
        operation.step(ctx.now(), event, &mut out);
    }
}

/// Records the fragments of all versions in a row.
fn learn(work: &Work, event: &OpEvent) {
    if let OpEvent::Answered { answer: Some((_, row)), .. } = event {
        for decided in row.known.decided.values() {
            work.record_stripe(&decided.value);
            if decided.durable {
                work.durables().insert(decided.value.id);
            }
        }
        for accepted in row.open.values().filter_map(|open| open.accepted.as_ref()) {
            work.record_stripe(&accepted.value);
        }
    }
}

fn execute(
    command: OpCommand,
    work: &Work,
    live: &Arc<LiveMap>,
    ctx: &Arc<Context>,
    event: &mpsc::Sender<OpEvent>,
) {
    let (live, ctx, event, work) = (Arc::clone(live), Arc::clone(ctx), event.clone(), work.clone());
    match command {
        OpCommand::Ask(ask) => {
            tokio::spawn(async move {
                let answer = match live.shared(ask.site) {
                    Some(site) => {
                        let env = (&*ctx.backoff, &ctx.entropy);
                        site.apply(&work.row, &ask.request, env).await
                    }
                    None => None,
                };
                // Once the operation has ended, nobody receives it.
                let _ =
                    event.send(OpEvent::Answered { site: ask.site, call: ask.call, answer }).await;
            });
        }
        OpCommand::Notify { site, known } => {
            let Some(site) = live.shared(site) else { return };
            let Some(room) = site.notifications.room() else {
                work.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            };
            let request = Request { epoch: live.map.epoch(), known, command: Command::Learn };
            tokio::spawn(async move {
                let _room = room;
                let Some(_turn) = site.notifications.turn().await else { return };
                let env = (&*ctx.backoff, &ctx.entropy);
                let _ = site.apply(&work.row, &request, env).await;
            });
        }
        OpCommand::Fragment(fragment, op) => {
            tokio::spawn(async move {
                let result = execute_fragment_op(&live, &ctx, &work, (fragment, op)).await;
                let _ = event.send(OpEvent::Fragment(fragment, op, result)).await;
            });
        }
        OpCommand::Fetch { version, value } => {
            tokio::spawn(async move {
                let fetched = fetch_first(&live, &work, version, &value).await;
                let _ = event.send(OpEvent::FetchResult(version, fetched)).await;
            });
        }
    }
}

async fn execute_fragment_op(
    live: &Arc<LiveMap>,
    ctx: &Context,
    work: &Work,
    (fragment, op): (Fragment, FragmentOp),
) -> OpResult {
    if op == FragmentOp::Write {
        let is_down = live.site(fragment.site).is_none_or(Site::is_down);
        let permit = ctx.late.try_acquire();
        if is_down && permit.is_err() {
            return OpResult::Unknown;
        }
        let _late = permit.ok().filter(|_| is_down);
        return fragments::write(live, fragment, &work.encoded).await;
    }
    if op == FragmentOp::Erase
        && work.skip_down
        && live.site(fragment.site).is_none_or(Site::is_down)
    {
        return OpResult::Done;
    }
    if let (FragmentOp::Erase, Some(blob)) = (op, &work.blob) {
        return fragments::erase_blob(live, fragment.site, blob).await;
    }
    let Some(stripe) = work.stripe(fragment.write) else { return OpResult::Unknown };
    match op {
        FragmentOp::Write => OpResult::Unknown,
        FragmentOp::Probe => fragments::probe(live, &stripe, fragment, work.deep).await,
        FragmentOp::Rebuild => fragments::rebuild(live, &stripe, fragment).await,
        FragmentOp::Fence => fragments::fence(live, &stripe, fragment).await,
        FragmentOp::Erase => fragments::erase(live, &stripe, fragment).await,
    }
}

/// Fetches the first requested bytes of a version. They prove that it is readable; the rest is
/// fetched while the reader consumes the stream.
async fn fetch_first(
    live: &Arc<LiveMap>,
    work: &Work,
    version: Version,
    value: &Value,
) -> FetchResult {
    let too_few = FetchResult::TooFew { absent: u8::MAX, unknown: 0 };
    let Some(stripe) = Stripe::from_value(&work.object, value) else { return too_few };
    let size = value.put().map_or(0, |put| put.size);
    let wanted = work.wanted.as_ref().and_then(|range| range.as_range(size).ok());
    let (start, size) = value_range(value, &wanted.unwrap_or(0..1));
    let mut chunks = stripe.coded.chunks(stripe.size);
    let Some(chunk) = chunks.find(|chunk| (chunk.at..chunk.at + chunk.length).contains(&start))
    else {
        return FetchResult::Complete;
    };
    let end = (start + size).min(chunk.at + chunk.length);
    let range = start - chunk.at..end - chunk.at;
    let durable = work.durables().contains(&value.id);
    match fragments::fetch_chunk(live, (&stripe, durable), &chunk, Some(range)).await {
        Ok(bytes) => {
            let mut fetched = work.fetched.lock().unwrap_or_else(PoisonError::into_inner);
            fetched.insert(version, First { bytes });
            FetchResult::Complete
        }
        Err(too_few) => too_few,
    }
}

/// Returns where a range of a value's bytes begins in its stripe, and its length, cut at the end of
/// the value.
pub(crate) fn value_range(value: &Value, wanted: &Range<u64>) -> (u64, u64) {
    let Some(put) = value.put() else { return (0, 0) };
    let offset = match &put.data {
        fulgurite_geo_core::Data::Shared { at, .. } => *at,
        fulgurite_geo_core::Data::Inline(_) | fulgurite_geo_core::Data::Coded(_) => 0,
    };
    let (start, end) = (wanted.start.min(put.size), wanted.end.min(put.size));
    (offset + start, end.saturating_sub(start))
}
