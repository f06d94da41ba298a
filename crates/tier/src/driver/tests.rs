//! A driver on a manual clock, whose controller echoes numbers.

use std::sync::mpsc::{Receiver as Results, Sender, channel};

use fulgurite_units::{ManualClock, UnixTime};

use super::*;

#[derive(Debug, PartialEq, Eq)]
enum Event {
    Number(u32),
    Timer,
}

/// Echoes its events as commands; a number above 99 is a bug.
#[derive(Debug, Default)]
struct Echo {
    deadline: Option<Instant>,
}

impl Controller for Echo {
    type Event = Event;
    type Command = String;

    fn step(&mut self, now: Instant, event: Event, out: &mut Outbox<String>) {
        match event {
            Event::Number(number) => {
                assert!(number < 100, "no number {number}");
                out.push(format!("{number}"));
                if number == 50 {
                    self.deadline = Some(now + Duration::from_secs(5));
                }
            }
            Event::Timer => {
                self.deadline = None;
                out.push(format!("timer at {}", now.as_nanos() / 1_000_000_000));
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn check(&self) {}
}

enum Message {
    Number(u32),
    Alarm(u64, u32),
    /// Answered when a worker has ended.
    Work(Box<dyn FnOnce() -> u32 + Send>),
    Worked(Result<u32, Panicked>),
    /// Blocks the thread until this channel is closed.
    Block(Sender<()>, Results<()>),
}

struct Test {
    core: Core<Self>,
    seen: Sender<String>,
    running: usize,
    recovers: bool,
}

impl Actor for Test {
    type Controller = Echo;
    type Message = Message;
    type Alarm = u32;

    const TIMER: Event = Event::Timer;

    fn core(&mut self) -> &mut Core<Self> {
        &mut self.core
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Number(number) => self.core.queue(Event::Number(number)),
            Message::Alarm(seconds, number) => {
                self.core.set_alarm(self.core.now() + Duration::from_secs(seconds), number);
            }
            Message::Work(work) => {
                self.running += 1;
                self.core.spawn("worker".to_owned(), work, Message::Worked).unwrap();
            }
            Message::Worked(result) => {
                self.running -= 1;
                self.see(&result.map_or_else(|error| error.to_string(), |n| format!("did {n}")));
            }
            Message::Block(begun, released) => {
                begun.send(()).unwrap();
                let _ = released.recv();
            }
        }
    }

    fn ring(&mut self, alarm: u32) {
        self.core.queue(Event::Number(alarm));
    }

    fn apply(&mut self, event: Event) {
        for command in self.core.step(self.core.now(), event) {
            self.see(&command);
        }
    }

    fn stop(&mut self) {
        self.see("stop");
    }

    fn is_idle(&self) -> bool {
        self.running == 0
    }

    fn end(self) {
        self.see("end");
    }

    fn recover(&mut self, panicked: &Panicked) -> bool {
        self.core.clear();
        self.see(&panicked.to_string());
        self.recovers
    }
}

impl Test {
    fn see(&self, what: &str) {
        let _ = self.seen.send(what.to_owned());
    }
}

fn start(messages_max: usize, recovers: bool) -> (Driver<Message>, ManualClock, Results<String>) {
    let clock = ManualClock::at(UnixTime::from_millis(0));
    let (inbox, messages) = inbox(messages_max, &clock.clock());
    let (seen, sees) = channel();
    let core = Core::new(Echo::default(), clock.clock(), inbox);
    let actor = Test { core, seen, running: 0, recovers };
    (Driver::start("test".to_owned(), actor, messages).unwrap(), clock, sees)
}

/// Blocks the thread until the returned channel is dropped.
fn block(driver: &Driver<Message>) -> Sender<()> {
    let (begun, begins) = channel();
    let (release, released) = channel();
    driver.inbox().send(Message::Block(begun, released)).unwrap();
    begins.recv().unwrap();
    release
}

#[test]
fn full_inbox_refuses_and_stop_follows_what_waits() {
    let (driver, _clock, seen) = start(2, false);
    let release = block(&driver);
    let try_send = |number| driver.inbox().try_send(Message::Number(number));
    assert_eq!((try_send(1), try_send(2)), (Ok(()), Ok(())));
    assert_eq!(try_send(3), Err(SendError::Full));
    drop(release);
    driver.stop();
    assert_eq!(seen.iter().collect::<Vec<_>>(), ["1", "2", "stop", "end"]);
    assert_eq!(try_send(4), Err(SendError::Stopped));
    driver.stop();
}

/// A clock that advances while the inbox is full is read after the messages in it.
#[test]
fn alarm_that_is_due_while_the_inbox_is_full_rings() {
    let (driver, clock, seen) = start(2, false);
    driver.inbox().send(Message::Alarm(1, 9)).unwrap();
    for full in [true, false, true] {
        let release = block(&driver);
        while full && driver.inbox().try_send(Message::Number(1)).is_ok() {}
        clock.advance(Duration::from_secs(1));
        drop(release);
        assert_eq!(seen.iter().find(|what| what != "1").unwrap(), "9");
        driver.inbox().send(Message::Alarm(1, 9)).unwrap();
    }
    driver.stop();
}

/// Nothing reaches the controller of an actor that has ended its core.
#[test]
fn ended_core_passes_nothing_on() {
    let clock = ManualClock::at(UnixTime::from_millis(0));
    let (inbox, _messages) = inbox(1, &clock.clock());
    let mut core = Core::<Test>::new(Echo::default(), clock.clock(), inbox);
    core.controller.deadline = Some(Instant::ZERO);
    core.queue(Event::Number(1));
    core.set_alarm(Instant::ZERO, 2);
    assert!(core.deadline().is_some());
    core.end();
    core.queue(Event::Number(3));
    assert!(core.events.is_empty() && core.due_alarm().is_none() && core.deadline().is_none());
}

#[test]
fn alarms_and_deadlines_follow_the_clock() {
    let (driver, clock, seen) = start(8, false);
    for (seconds, number) in [(7, 70), (3, 30), (3, 31)] {
        driver.inbox().send(Message::Alarm(seconds, number)).unwrap();
    }
    // Its timer is due after five seconds.
    driver.inbox().send(Message::Number(50)).unwrap();
    assert_eq!(seen.recv().unwrap(), "50");
    let advance = |seconds| clock.advance(Duration::from_secs(seconds));
    advance(2);
    advance(1);
    assert_eq!((seen.recv().unwrap(), seen.recv().unwrap()), ("30".to_owned(), "31".to_owned()));
    assert!(seen.try_recv().is_err());
    advance(2);
    assert_eq!(seen.recv().unwrap(), "timer at 5");
    advance(600);
    assert_eq!(seen.recv().unwrap(), "70");
    driver.stop();
}

#[test]
fn stop_waits_for_workers_under_load() {
    let (driver, _clock, seen) = start(4, false);
    let (release, released) = channel::<()>();
    let work = Box::new(move || {
        let _ = released.recv();
        7
    });
    driver.inbox().send(Message::Work(work)).unwrap();
    std::thread::scope(|scope| {
        let sender = driver.inbox().clone();
        let load = scope.spawn(move || while sender.send(Message::Number(1)).is_ok() {});
        let stopping = scope.spawn(|| driver.stop());
        seen.iter().find(|what| what == "stop").unwrap();
        assert!(!stopping.is_finished(), "the worker still runs");
        drop(release);
        stopping.join().unwrap();
        load.join().unwrap();
    });
    let last: Vec<String> = seen.iter().filter(|what| what != "1").collect();
    assert_eq!(last, ["did 7", "end"]);
}

#[test]
fn panic_of_a_worker_is_its_result() {
    let (driver, _clock, seen) = start(4, false);
    driver.inbox().send(Message::Work(Box::new(|| panic!("a bug")))).unwrap();
    assert_eq!(seen.recv().unwrap(), "panicked: a bug");
    driver.inbox().send(Message::Number(3)).unwrap();
    assert_eq!(seen.recv().unwrap(), "3");
    driver.stop();
}

#[test]
fn panic_of_the_thread_ends_it_unless_it_recovers() {
    for recovers in [false, true] {
        let (driver, _clock, seen) = start(4, recovers);
        driver.inbox().send(Message::Number(101)).unwrap();
        assert_eq!(seen.recv().unwrap(), "panicked: no number 101");
        if recovers {
            driver.inbox().send(Message::Number(4)).unwrap();
            assert_eq!(seen.recv().unwrap(), "4");
        } else {
            // The actor is dropped, with the channel on which this waits.
            assert!(seen.recv().is_err());
        }
        driver.stop();
    }
}

#[test]
fn dropped_handle_stops_the_thread() {
    let (driver, _clock, seen) = start(4, false);
    drop(driver);
    assert_eq!(seen.iter().collect::<Vec<_>>(), ["stop", "end"]);
}
