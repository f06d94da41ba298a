//! The threads behind job handles, with a clock that the test advances; and the job of
//! `docs/design/adding-a-job.md`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use fulgurite_units::{Duration, ManualClock};

use super::*;
use crate::jobs::{Next, Pace};
use crate::status::JobState;

const HOUR: Duration = Duration::from_secs(3600);

/// Waters the plants each hour, and a given one on order.
struct Watering {
    runs: Sender<(Instant, String)>,
    orders: Receiver<(String, Reply<u32>)>,
    dry: Arc<AtomicU32>,
    watered: u32,
}

impl Job for Watering {
    fn name(&self) -> String {
        "watering".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: Some(HOUR), backoff: Duration::from_secs(10), backoff_max: HOUR }
    }

    fn failing(&self) -> &'static str {
        "plants stay dry"
    }

    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
        let order = self.orders.try_iter().find(|(_, reply)| reply.is_awaited());
        let plant = order.as_ref().map_or("all", |(plant, _)| plant);
        assert_ne!(plant, "cactus", "it drowned");
        run.doing(format!("watering {plant}"));
        self.runs.send((run.now, plant.to_owned())).unwrap();
        if self.dry.load(Ordering::SeqCst) > 0 {
            return Err(ArchiveError::Internal { what: "no water".to_owned() }.into());
        }
        self.watered += 1;
        if let Some((_, reply)) = order {
            let watered = self.watered;
            run.after_run(move || reply.send(Ok(watered)));
        }
        Ok(Next::Tick)
    }

    fn on_stop(&mut self) {
        self.runs.send((Instant::ZERO, "stopped".to_owned())).unwrap();
    }
}

struct World {
    clock: ManualClock,
    runner: Runner,
    panics: Arc<Panics>,
    orders: JobSender<(String, Reply<u32>)>,
    runs_seen: Receiver<(Instant, String)>,
    dry: Arc<AtomicU32>,
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::at(UnixTime::from_millis(7_000));
        let panics = Arc::<Panics>::default();
        let runner = Runner::new(&clock.clock(), &panics);
        let (orders, inbox) = JobSender::new(&JobHandle::new(&clock.clock()));
        let ((runs, runs_seen), dry) = (channel(), Arc::<AtomicU32>::default());
        let job = Watering { runs, orders: inbox, dry: Arc::clone(&dry), watered: 0 };
        runner.start_at(orders.handle(), job).unwrap();
        let world = Self { clock, runner, panics, orders, runs_seen, dry };
        assert_eq!(world.next_run(), (0, "all".to_owned()), "it polls at once");
        world
    }

    fn order(&self, plant: &str) -> Result<oneshot::Receiver<Result<u32>>> {
        self.orders.order(|reply| (plant.to_owned(), reply))
    }

    /// Waits for the next run and returns its second, and what was watered.
    fn next_run(&self) -> (u64, String) {
        let (at, what) = self.runs_seen.recv().unwrap();
        (at.as_nanos() / 1_000_000_000, what)
    }

    fn status(&self) -> JobStatus {
        self.runner.status().remove(0)
    }

    /// Returns the status once it shows this state.
    fn shown_in(&self, state: JobState) -> JobStatus {
        loop {
            let status = self.status();
            if status.state == state {
                return status;
            }
            std::thread::yield_now();
        }
    }

    fn stop(&self) {
        self.runner.stop();
        assert_eq!(self.runner.join(), 0);
        assert_eq!(self.runs_seen.try_iter().last().unwrap().1, "stopped");
    }
}

#[test]
fn job_runs_on_tick_notification_and_order() {
    let world = World::new();
    world.shown_in(JobState::Idle);
    // One second too early it does not run: otherwise that run would be received first.
    world.clock.advance(Duration::from_secs(3599));
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.next_run(), (3600, "all".to_owned()));
    world.shown_in(JobState::Idle);
    world.clock.advance(Duration::from_secs(5));
    world.orders.handle().notify();
    assert_eq!(world.next_run(), (3605, "all".to_owned()));
    world.shown_in(JobState::Idle);
    let answer = world.order("fern").unwrap();
    assert_eq!(answer.blocking_recv().unwrap().unwrap(), 4);
    // When the reply arrives, the run is already shown as finished.
    let status = world.status();
    assert_eq!((status.state, status.doing, status.runs), (JobState::Idle, None, 4));
    assert_eq!(status.last_run, Some(UnixTime::from_millis(3_612_000)));
    assert_eq!(world.next_run(), (3605, "fern".to_owned()));
    world.stop();
    let refused = world.order("fern");
    assert!(matches!(refused, Err(ArchiveError::Stopping)));
    assert_eq!(world.status().state, JobState::Stopped);
}

#[test]
fn failing_job_backs_off_reports_and_recovers() {
    let world = World::new();
    world.shown_in(JobState::Idle);
    world.dry.store(1, Ordering::SeqCst);
    world.clock.advance(HOUR);
    assert_eq!(world.next_run(), (3600, "all".to_owned()));
    let status = world.shown_in(JobState::Resting);
    assert_eq!((status.failures, status.retry_seconds), (1, Some(10)));
    assert_eq!(status.failure.as_deref(), Some("internal error: no water"));
    let failure_report = status.failure_report().unwrap();
    assert_eq!(failure_report, "watering failed: internal error: no water; retry in 10 s");
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(world.next_run(), (3610, "all".to_owned()));
    world.shown_in(JobState::Resting);
    // An order ignores the backoff, and its success clears the failure.
    world.dry.store(0, Ordering::SeqCst);
    let answer = world.order("fern").unwrap();
    assert_eq!(answer.blocking_recv().unwrap().unwrap(), 2);
    assert_eq!(world.status().failure_report(), None);
    world.stop();
}

#[test]
fn panic_fails_one_run_and_is_counted() {
    let world = World::new();
    world.shown_in(JobState::Idle);
    let answer = world.order("cactus").unwrap();
    assert!(answer.blocking_recv().is_err(), "the panic dropped its order");
    let status = world.shown_in(JobState::Resting);
    assert!(status.failure.unwrap().contains("it drowned"));
    assert_eq!(world.panics.count(), 1);
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(world.next_run(), (10, "all".to_owned()));
    world.stop();
}

#[test]
fn ongoing_work_is_shown_between_runs() {
    struct Waiting(Receiver<bool>);
    impl Job for Waiting {
        fn name(&self) -> String {
            "waiting".to_owned()
        }
        fn pace(&self) -> Pace {
            Pace { tick: None, backoff: HOUR, backoff_max: HOUR }
        }
        fn failing(&self) -> &'static str {
            "nothing is waited for"
        }
        fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
            if let Ok(is_awaited) = self.0.try_recv() {
                run.ongoing(is_awaited.then(|| "a parcel".to_owned()));
            }
            Ok(Next::Tick)
        }
    }
    let clock = ManualClock::at(UnixTime::from_millis(0)).clock();
    let runner = Runner::new(&clock, &Arc::default());
    let (mail, inbox) = JobSender::new(&JobHandle::new(&clock));
    runner.start_at(mail.handle(), Waiting(inbox)).unwrap();
    for (is_awaited, state) in [(true, JobState::Running), (false, JobState::Idle)] {
        mail.send(is_awaited);
        while runner.status()[0].state != state {
            std::thread::yield_now();
        }
    }
    assert_eq!((runner.status()[0].runs, &runner.status()[0].doing), (1, &None));
    runner.stop();
    assert_eq!(runner.join(), 0);
}

#[test]
fn open_orders_are_bounded() {
    let clock = ManualClock::at(UnixTime::from_millis(0)).clock();
    let (mail, inbox) = JobSender::new(&JobHandle::new(&clock));
    let order = || mail.order::<u32>(|reply| reply);
    let mut answers: Vec<_> = (0..ORDERS_MAX).map(|_| order().unwrap()).collect();
    let refused = order().unwrap_err();
    assert!(matches!(refused, ArchiveError::Busy { .. }), "{refused}");
    // An order in progress stays open until it has ended.
    let begun = inbox.recv().unwrap();
    assert!(begun.is_awaited());
    order().unwrap_err();
    begun.send(Ok(7));
    assert_eq!(answers.remove(0).blocking_recv().unwrap().unwrap(), 7);
    answers.push(order().unwrap());
    order().unwrap_err();
    // Nobody awaits these replies any more; dropping them closes the orders.
    drop(answers);
    assert!(inbox.try_iter().all(|reply| !reply.is_awaited()));
    drop(order().unwrap());
}
