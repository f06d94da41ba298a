//! The background threads: one seals, one restores, one has expired copies go; all work from the
//! catalog.
//!
//! ```text
//! PUT commits ---- wake ---> sealing thread: policy? plan, write, verify, store, release
//! admin seal  ---- order --'
//! RestoreObject -- tell ---> restoring thread: drives the controller of restores
//! every second ------------> expiring thread: copies whose time is over go, whatever is sealed
//! ```
//!
//! Nothing is kept in a thread that a restart would miss: what is to be done is in rows. A panic
//! fails what the thread was doing, and the thread goes on.

use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fulgurite_platters::library_driver::{LibraryWatch, LiveLibrary};
use fulgurite_platters::limits::SEAL_RETRY;
use fulgurite_platters::{Cause, Progress, Sealer, Troubles};
use fulgurite_units::{ByteCount, ObjectId, PlatterId, error_chain};
use tokio::sync::oneshot;

use crate::bodies::StagedBodies;
use crate::forget::Forgetting;
use crate::ground::Ground;
use crate::restore::{self, Restorer};
use crate::status::{SealReport, Status, VerifyReport};
use crate::tiers::Mover;
use crate::{ArchiveError, Result, copies, damaged, doubts, expire, policy, startup};

/// Orders waiting for a worker; wakes beyond them are dropped, for one is enough.
const INBOX_MAX: usize = 64;
/// How often expiry and the age of staged bodies are looked at.
const TICK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) enum Order {
    Wake,
    Seal(oneshot::Sender<Result<SealReport>>),
    Stop,
}

/// How the ground's clients reach the workers.
#[derive(Debug)]
pub(crate) struct Bells {
    pipeline: SyncSender<Order>,
    pub(crate) restore: Sender<restore::Message>,
    moving: SyncSender<Order>,
}

/// Where the bells ring.
#[derive(Debug)]
pub(crate) struct Inboxes {
    pipeline: Receiver<Order>,
    restore: Receiver<restore::Message>,
    moving: Receiver<Order>,
}

impl Bells {
    /// Bells, and the inboxes they ring in: a thread's each.
    pub(crate) fn new() -> (Self, Inboxes) {
        let (pipeline, pipeline_inbox) = sync_channel(INBOX_MAX);
        let (restore, restore_inbox) = channel();
        let (moving, moving_inbox) = sync_channel(INBOX_MAX);
        let inboxes =
            Inboxes { pipeline: pipeline_inbox, restore: restore_inbox, moving: moving_inbox };
        (Self { pipeline, restore, moving }, inboxes)
    }
}

impl Ground {
    /// Something was staged.
    pub(crate) fn wake_pipeline(&self) {
        // A full inbox means that the thread is awake anyway.
        let _ = self.bells.pipeline.try_send(Order::Wake);
        self.wake_moving();
    }

    /// Something waits for a tier, or is to be removed from one.
    pub(crate) fn wake_moving(&self) {
        let _ = self.bells.moving.try_send(Order::Wake);
    }

    /// A row asks for the restore of an object.
    pub(crate) fn ask_restore(&self, object: ObjectId) {
        // Without a thread that listens the next start finds the row.
        let _ = self.bells.restore.send(restore::Message::Asked(object));
    }
}

/// The background threads of an open archive.
#[derive(Debug)]
pub(crate) struct Workers {
    ground: Arc<Ground>,
    library: LiveLibrary,
    activity: Arc<Mutex<String>>,
    troubles: Arc<Troubles>,
    mover: Arc<Mover>,
    /// How far the sealing thread is.
    sealing: Arc<Progress>,
    /// Ends the expiring thread when it goes.
    expiring: Mutex<Option<SyncSender<()>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers {
    pub(crate) fn start(ground: &Arc<Ground>) -> Result<Self> {
        let track_size = ByteCount::new(ground.config.geometry.track_user_bytes() as u64);
        let library = LiveLibrary::start(&ground.config.library, track_size, &ground.panics)?;
        startup::finish_shreds(ground)?;
        damaged::requeue(ground)?;
        let activity = Arc::new(Mutex::new("idle".to_owned()));
        let troubles = Arc::<Troubles>::default();
        let sealing = Arc::<Progress>::default();
        let bodies = StagedBodies::of(ground);
        let sealer = Sealer::new(&ground.given, &bodies, &library, &troubles, &sealing);
        let answers = tokio::runtime::Handle::try_current()
            .map_err(|e| ArchiveError::Internal { what: format!("no runtime: {e}") })?;
        let restorer = Restorer::new(ground, &library, &ground.given.files, answers)?;
        let Some(inboxes) = lock(&ground.inboxes).take() else {
            return Err(ArchiveError::Internal { what: "workers were started twice".to_owned() });
        };
        let (shown, swept) = (Arc::clone(&activity), Arc::clone(ground));
        let sealed = Arc::clone(ground);
        let tended = Arc::clone(ground);
        let mover = Arc::new(Mover::new(ground));
        let moving = Arc::clone(&mover);
        let (expiring, ends) = sync_channel(0);
        let expired = Arc::clone(ground);
        let threads = vec![
            spawn("expiring", move || run_expiring(&expired, &ends))?,
            spawn("sealing", move || run_sealing(&sealed, &sealer, &inboxes.pipeline, &shown))?,
            spawn("restoring", move || restorer.run(&inboxes.restore))?,
            spawn("moving", move || run_moving(&moving, &inboxes.moving))?,
            spawn("key-sweep", move || run_sweep(&swept))?,
            spawn("tending", move || run_tending(&tended))?,
        ];
        ground.wake_pipeline();
        let (ground, threads) = (Arc::clone(ground), Mutex::new(threads));
        let expiring = Mutex::new(Some(expiring));
        Ok(Self { ground, library, activity, troubles, mover, sealing, expiring, threads })
    }

    pub(crate) fn activity(&self) -> String {
        lock(&self.activity).clone()
    }

    /// How far the sealing is that is under way.
    pub(crate) const fn sealing(&self) -> &Arc<Progress> {
        &self.sealing
    }

    /// What operators are shown of the threads.
    pub(crate) fn show(&self, status: &mut Status) {
        (status.seal_troubles, status.sets_given_up) =
            self.troubles.shown(std::time::Instant::now());
        let decoders = status.decode.as_ref().map_or(0, |decode| decode.deaths);
        (status.seal_bytes_done, status.seal_bytes_total) = self.sealing.bytes();
        let now = std::time::Instant::now();
        let (waiting, oldest) = self.library.unverified().waiting(now);
        status.unverified_trouble = self.library.unverified().trouble(now);
        status.unverified_platters = waiting as u64;
        status.unverified_seconds = oldest.map_or(0, |age| age.as_nanos() / 1_000_000_000);
        status.panics = self.ground.panics.count() + decoders;
    }

    /// What does not go as it should, though requests are served: one line for each trouble.
    pub(crate) fn degraded(&self) -> Vec<String> {
        let now = std::time::Instant::now();
        let (troubles, _) = self.troubles.shown(now);
        let sealing = troubles.iter().map(ToString::to_string);
        let tiers = self.mover.troubles().into_iter().map(|trouble| trouble.to_string());
        sealing.chain(self.library.unverified().trouble(now)).chain(tiers).collect()
    }

    pub(crate) async fn seal(&self) -> Result<SealReport> {
        let (reply, answer) = oneshot::channel();
        let (bell, mut order) = (&self.ground.bells.pipeline, Order::Seal(reply));
        loop {
            match bell.try_send(order) {
                Ok(()) => break,
                Err(TrySendError::Full(back)) => order = back,
                Err(TrySendError::Disconnected(_)) => return Err(ArchiveError::Stopping),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        answer.await.map_err(|_| ArchiveError::Stopping)?
    }

    /// Reads platters whole again, one or all; and with all of them the restored copies, of which
    /// those that are damaged go.
    pub(crate) fn verify(
        &self,
        platter: Option<PlatterId>,
        progress: &Arc<Progress>,
    ) -> Result<VerifyReport> {
        let Self { ground, library, troubles, .. } = self;
        let bodies = StagedBodies::of(ground);
        let sealer = Sealer::new(&ground.given, &bodies, library, troubles, progress);
        let platters = sealer.stored_platters(platter)?;
        let copies = if platter.is_none() { copies::bytes_of_all(ground)? } else { 0 };
        let total = copies + platters.iter().map(|platter| platter.bytes).sum::<u64>();
        progress.set(0, total);
        let mut report = VerifyReport::default();
        if platter.is_none() {
            copies::verify_all(ground, progress, &mut report)?;
        }
        let mut done = copies;
        for platter in &platters {
            progress.set(done, total);
            report.platters.push(sealer.verify_stored(platter)?);
            done += platter.bytes;
        }
        progress.set(total, total);
        Ok(report)
    }

    /// The library, which has this machine.
    pub(crate) fn library(&self, machine: fulgurite_library::Machine) -> Result<&LiveLibrary> {
        if self.ground.config.library.shape.has(machine) {
            return Ok(&self.library);
        }
        let what = format!("the library has no machine {machine:?}");
        Err(ArchiveError::InvalidArgument { what })
    }

    /// Shows what goes on in the library, from now on.
    pub(crate) fn watch(&self) -> Result<LibraryWatch> {
        Ok(self.library.watch()?)
    }

    pub(crate) fn stop(&self) -> Result<()> {
        self.ground.stopping.store(true, std::sync::atomic::Ordering::SeqCst);
        // A thread that is gone needs no order.
        let _ = self.ground.bells.pipeline.send(Order::Stop);
        let _ = self.ground.bells.moving.send(Order::Stop);
        let _ = self.ground.bells.restore.send(restore::Message::Stop);
        lock(&self.expiring).take();
        self.ground.medium.stop();
        // First the library, for a worker may wait for minutes of simulated mechanics.
        self.library.stop();
        let threads: Vec<_> = lock(&self.threads).drain(..).collect();
        // The one that tends sleeps between its ticks.
        threads.iter().for_each(|thread| thread.thread().unpark());
        let died = threads.into_iter().map(JoinHandle::join).filter(Result::is_err).count();
        if died > 0 {
            return Err(ArchiveError::Internal { what: format!("{died} workers died") });
        }
        Ok(())
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(|e| ArchiveError::Internal { what: format!("no thread: {e}") })
}

fn run_sealing(
    ground: &Arc<Ground>,
    sealer: &Sealer,
    inbox: &Receiver<Order>,
    shown: &Mutex<String>,
) {
    let mut rests_since: Option<std::time::Instant> = None;
    loop {
        let mut replies = Vec::new();
        match inbox.recv_timeout(TICK) {
            Ok(Order::Seal(reply)) => replies.push(reply),
            Ok(Order::Wake) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        }
        let cause = if replies.is_empty() { Cause::Due } else { Cause::Order };
        if cause == Cause::Due {
            if rests_since.is_some_and(|since| since.elapsed() < SEAL_RETRY) {
                continue;
            }
            if !is_due(ground, sealer) {
                // With trouble it takes longer to find that out.
                rests_since = sealer.trouble().map(|_| std::time::Instant::now());
                continue;
            }
        }
        "sealing".clone_into(&mut lock(shown));
        let outcome = ground.panics.run("sealing", || Ok(sealer.seal_all(cause)?));
        sealer.rests();
        let failed = match &outcome {
            Ok(_) => sealer.trouble(),
            Err(ArchiveError::Stopping) => return,
            Err(error) => {
                let error = error_chain(error);
                tracing::error!(error, "sealing failed; it is tried again");
                Some(error)
            }
        };
        rests_since = failed.as_ref().map(|_| std::time::Instant::now());
        *lock(shown) =
            failed.map_or_else(|| "idle".to_owned(), |error| format!("waiting to retry: {error}"));
        if let Some(reply) = replies.pop() {
            // An operator who went away needs no answer.
            let _ = reply.send(outcome);
        }
    }
}

/// Whether there is something to seal; if that cannot be told, trying will tell why.
fn is_due(ground: &Ground, sealer: &Sealer) -> bool {
    ground.panics.run("sealing", || policy::is_due(ground, sealer)).unwrap_or(true)
}

fn run_expiring(ground: &Arc<Ground>, ends: &Receiver<()>) {
    let mut trouble = String::new();
    while let Err(RecvTimeoutError::Timeout) = ends.recv_timeout(TICK) {
        match ground.panics.run("expiring", || expire::expire_due(ground)) {
            Ok(()) => trouble.clear(),
            Err(ArchiveError::Stopping) => return,
            Err(error) => {
                let error = error_chain(&error);
                // Said once, for it is tried every second.
                if trouble != error {
                    tracing::error!(error, "expired copies stay; it is tried again");
                    trouble = error;
                }
            }
        }
    }
}

fn run_moving(mover: &Mover, inbox: &Receiver<Order>) {
    loop {
        match inbox.recv_timeout(TICK) {
            Ok(Order::Wake | Order::Seal(_)) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        }
        match mover.panics().run("moving", || mover.work(std::time::Instant::now())) {
            Ok(()) => {}
            Err(ArchiveError::Stopping) => return,
            Err(error) => tracing::error!(%error, "moving failed; it is tried again"),
        }
    }
}

fn run_sweep(ground: &Arc<Ground>) {
    match ground.panics.run("the key sweep", || startup::sweep_orphan_keys(ground)) {
        Ok(0) | Err(ArchiveError::Stopping) => {}
        Ok(count) => tracing::info!(count, "destroyed keys of uploads that a crash cut short"),
        Err(error) => tracing::error!(%error, "keys of cut-short uploads stay"),
    }
}

/// Looks after the data directory: the reserve, names that are to be forgotten, keys whose
/// destruction failed, from where on a start has to look for doubts, and the mark of the catalog.
fn run_tending(ground: &Arc<Ground>) {
    let within = Duration::from_nanos(ground.config.space.forget_within.as_nanos());
    let tick = TICK.min(within / 4);
    let mut forgetting = Forgetting::default();
    let mut told = None;
    while ground.check_stopping().is_ok() {
        let tended = ground.panics.run("tending", || {
            // Each is tried, whatever becomes of the others.
            let kept = ground.space.keep_reserve();
            let forgot = forgetting.run_due(ground, within);
            let shredded = startup::finish_failed_shreds(ground);
            let settled = doubts::note_settled(ground);
            let marked = ground.mark.note(false);
            kept.and(forgot).and(shredded).and(settled).and(marked)
        });
        let trouble = tended.err().map(|error| error.to_string());
        // Said once, not every second for as long as it lasts.
        if let Some(error) = trouble.as_ref().filter(|_| trouble != told) {
            tracing::warn!(
                error,
                "deleted names or keys stay, the reserve is missing, the mark of the catalog stays \
                 older, or the next start has more to read; tried again"
            );
        }
        told = trouble;
        std::thread::park_timeout(tick);
    }
}
