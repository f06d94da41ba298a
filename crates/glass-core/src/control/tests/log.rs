//! The event log: a replay makes the same decisions, and finds what was changed.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use fulgurite_units::{
    ByteCount, Controller as _, Duration, Instant, Outbox, PlatterId, RandomStream, Seed,
    SlotIndex, TrackIndex,
};

use crate::control::log::{End, Ending, LogWriter, Replay, Replayer, replay};
use crate::control::sequence::{Actor, actor};
use crate::control::{
    Action, Command, CommandId, Event, Fault, Library, LibraryShape, Machine, Mechanics, Outcome,
    Output, PanelIndex, Policy, RequestId, Throughput, TrackSpan,
};

/// A driver that writes a log. Its machines take the paper's times, and fail by chance.
struct Driver {
    library: Library,
    log: LogWriter<Vec<u8>>,
    event_queue: BTreeMap<(Instant, u64), Event>,
    sequence: u64,
    mechanics: Mechanics,
    random: RandomStream,
    failures_per_mille: u64,
}

impl Driver {
    fn new(shape: &LibraryShape, policy: Policy, seed: u64) -> Self {
        let library = Library::with_policy(shape, policy).unwrap();
        let log = LogWriter::new(Vec::new(), &library).unwrap();
        Self {
            library,
            log,
            event_queue: BTreeMap::new(),
            sequence: 0,
            mechanics: Mechanics::new(Throughput::PAPER, ByteCount::new(20_000_000)),
            random: Seed::new(seed).stream(),
            failures_per_mille: 0,
        }
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.sequence += 1;
        self.event_queue.insert((at, self.sequence), event);
    }

    fn read(&mut self, at_ms: u64, request: u64, platter: u8, slot: u32) {
        let at = Instant::from_nanos(at_ms * 1_000_000);
        let tracks = TrackSpan::new(TrackIndex::new(5), 2);
        let (request, platter) = (RequestId::new(request), platter_id(platter));
        let (slot, deadline) = (SlotIndex::new(slot), at + Duration::from_secs(900));
        self.at(at, Event::Read { request, platter, slot, tracks, deadline });
    }

    /// Runs to the end and returns the log.
    fn log(mut self) -> Vec<u8> {
        loop {
            let next = self.event_queue.keys().next().map(|(at, _)| *at);
            if let Some(due) = self.library.deadline()
                && next.is_none_or(|next| due < next)
            {
                self.at(due, Event::Timer);
            }
            let Some(((now, _), event)) = self.event_queue.pop_first() else { break };
            self.step(now, event);
        }
        self.log.end(End::Stopped).unwrap()
    }

    fn step(&mut self, now: Instant, event: Event) {
        let mut out = Outbox::new();
        self.log.event(now, &event).unwrap();
        if let Event::Broke { machine } = event {
            self.event_queue.retain(|_, event| {
                answered_command(event).is_none_or(|id| match (actor(id), machine) {
                    (Actor::Shuttle(one), Machine::Shuttle(broken)) => one != broken,
                    (Actor::Drive(one), Machine::Drive(broken)) => one != broken,
                    _ => true,
                })
            });
        }
        self.library.step(now, event, &mut out);
        for output in out.drain() {
            self.log.output(&output).unwrap();
            match output {
                Output::Do(command) => self.begin(now, command),
                Output::Halt { command } => {
                    let before = self.event_queue.len();
                    self.event_queue.retain(|_, event| answered_command(event) != Some(command));
                    assert_eq!(
                        self.event_queue.len() + 1,
                        before,
                        "only what is under way is halted"
                    );
                    self.at(now, Event::Halted { command, tracks_done: 1 });
                }
                Output::Finished { request, outcome: Outcome::Verified } => {
                    let platter = platter_id(u8::try_from(request.get()).unwrap());
                    let slot = SlotIndex::new(u32::try_from(request.get()).unwrap());
                    let request = RequestId::new(request.get() + 1_000);
                    self.at(now, Event::Store { request, platter, slot });
                }
                Output::Finished { .. } | Output::Traveled(_) | Output::Rejected { .. } => {}
            }
        }
    }

    fn begin(&mut self, now: Instant, Command { id: command, action }: Command) {
        let ends = now + self.mechanics.duration(&action, &mut self.random);
        if self.random.below(1_000) < self.failures_per_mille {
            let fault = match (actor(command), action) {
                (_, Action::Pick { .. }) => Fault::PlatterMissing,
                (_, Action::Mount { .. } | Action::Read { .. }) => Fault::Unreadable,
                (Actor::Shuttle(_), _) => Fault::ShuttleBroken,
                (Actor::Drive(_), _) => Fault::DriveBroken,
            };
            return self.at(ends, Event::Failed { command, fault });
        }
        if let Action::Move { from, to, reports: true, .. } = action {
            let middle = crate::control::RailPosition::new(u64::midpoint(from.get(), to.get()));
            let half = Duration::from_nanos(ends.since(now).as_nanos() / 2);
            self.at(now + half, Event::Passed { command, at: middle });
        }
        self.at(ends, Event::Completed { command });
    }
}

fn platter_id(number: u8) -> PlatterId {
    PlatterId::from_bytes([number; 16])
}

/// Returns the command that an event answers.
fn answered_command(event: &Event) -> Option<CommandId> {
    match *event {
        Event::Completed { command }
        | Event::Halted { command, .. }
        | Event::Failed { command, .. } => Some(command),
        Event::Read { .. }
        | Event::Verify { .. }
        | Event::Store { .. }
        | Event::Cancel { .. }
        | Event::Passed { .. }
        | Event::Broke { .. }
        | Event::Repaired { .. }
        | Event::Battery { .. }
        | Event::Timer => None,
    }
}

/// Returns the log of a library under random work whose machines fail, break and are repaired.
fn random_log(seed: u64) -> Vec<u8> {
    let mut shape = LibraryShape::small();
    shape.spare_slots_per_shelf = 1;
    let policy =
        Policy::named(crate::control::POLICY_NAMES[usize::try_from(seed % 5).unwrap()]).unwrap();
    let has_shuttles = policy.movement != crate::control::Movement::NoShuttles;
    let mut driver = Driver::new(&shape, policy, seed);
    driver.failures_per_mille = if seed.is_multiple_of(2) || !has_shuttles { 0 } else { 10 };
    let mut random = Seed::new(seed).child(b"work").stream();
    for request in 0..60 {
        let platter = random.below(20);
        let slot = u32::try_from(platter * 301 + 1_000).unwrap();
        let at = random.below(3_000_000);
        driver.read(at, request, u8::try_from(platter).unwrap(), slot);
        if random.below(10) == 0 {
            let at = Instant::from_nanos((at + random.below(60_000)) * 1_000_000);
            driver.at(at, Event::Cancel { request: RequestId::new(request) });
        }
    }
    for number in 100..110_u8 {
        let (request, platter) = (RequestId::new(u64::from(number)), platter_id(number));
        let tracks = TrackSpan::new(TrackIndex::new(0), 200);
        let at = Instant::from_nanos(random.below(1_000_000_000_000));
        driver.at(at, Event::Verify { request, platter, panel: PanelIndex::new(0), tracks });
    }
    if has_shuttles {
        let machines = [
            Machine::Shuttle(fulgurite_units::ShuttleIndex::new(1)),
            Machine::Drive(fulgurite_units::DriveIndex::new(0)),
        ];
        for machine in machines {
            let at = Instant::from_nanos(random.below(2_000_000_000_000));
            driver.at(at, Event::Broke { machine });
            driver.at(at + Duration::from_secs(600), Event::Repaired { machine });
        }
    }
    driver.log()
}

/// Returns a log in which one platter is read and another request is rejected.
fn short_log() -> String {
    let mut driver = Driver::new(&LibraryShape::small(), Policy::silica(), 1);
    driver.read(1, 1, 1, 4_321);
    driver.read(2, 2, 2, 7_000);
    String::from_utf8(driver.log()).unwrap()
}

#[track_caller]
fn check(text: &str, expect: Expect) {
    let report = match replay(text.as_bytes()) {
        Ok(Replay { divergence: Some(divergence), .. }) => {
            let line = divergence.line;
            let [expected, found] = [&divergence.expected, &divergence.found]
                .map(|output| serde_json::to_string(output).unwrap());
            format!("line {line}: expected {expected}, found {found}\n")
        }
        Ok(summary) => {
            let Replay { events, outputs, outputs_lost, ending, .. } = summary;
            let ending = ending.unwrap();
            format!("{events} events, {outputs} outputs, {outputs_lost} lost; {ending}\n")
        }
        Err(error) => match std::error::Error::source(&error) {
            Some(source) => format!("error: {error}: {source}\n"),
            None => format!("error: {error}\n"),
        },
    };
    expect.assert_eq(&wrap_lines(&report));
}

/// Folds the text into lines of less than 90 characters.
fn wrap_lines(text: &str) -> String {
    let mut wrapped = String::new();
    let mut column = 0;
    for piece in text.split_inclusive([',', '\n', ' ']) {
        if column + piece.len() > 88 {
            wrapped.push_str("\n  ");
            column = 2;
        }
        wrapped.push_str(piece);
        column = if piece.ends_with('\n') { 0 } else { column + piece.len() };
    }
    wrapped
}

#[test]
fn random_libraries_replay_identically() {
    for seed in 0..60 {
        let text = random_log(seed);
        let mut replayer = Replayer::new(&*text).unwrap();
        while replayer.step().unwrap().is_some() {}
        let summary = replayer.summary();
        assert_eq!(summary.divergence, None, "seed {seed}");
        assert_eq!(summary.ending, Some(Ending::End(End::Stopped)));
        assert_eq!(summary.outputs_lost, 0);
        let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
        assert_eq!(summary.events + summary.outputs + 2, lines);
    }
}

#[test]
fn first_log_lines_match_their_description() {
    let text = short_log();
    let first: Vec<&str> = text.lines().take(6).collect();
    expect![[r#"
        {"format":"fulgurite-library-log","version":1,"shape":{"panels":1,"write_racks":1,
          "read_racks":2,"drives_per_read_rack":2,"storage_racks":7,"shelves_per_panel":10,
          "slots_per_shelf":100,"shuttles_per_panel":4,"rack_width_mm":1200,
          "shuttle_width_mm":400,"spare_slots_per_shelf":1},"policy":{"movement":"partitions",
          "customer_slots":1,"pairs":false,"candidates":1,"age_bound":"1h","steal_tracks":25000,
          "help_platters":null,"rebalance":null,"hold":0.0,"verify_within":"1d",
          "right_of_way":"identifier","charge_below":20,"charge_until":80}}
        {"t":1000000,"event":{"read":{"request":1,
          "platter":"01010101-0101-0101-0101-010101010101","slot":4321,"tracks":{"first":5,
          "track_count":2},"deadline":900001000000}}}
        {"t":1000000,"output":{"do":{"id":2,"action":{"move":{"shuttle":2,"from":6000000,
          "to":7458000,"reports":false}}}}}
        {"t":2000000,"event":{"read":{"request":2,
          "platter":"02020202-0202-0202-0202-020202020202","slot":7000,"tracks":{"first":5,
          "track_count":2},"deadline":900002000000}}}
        {"t":2000000,"output":{"rejected":{"request":2,"reason":{"no-such-slot":{"slot":7000,
          "slot_count":7000}}}}}
        {"t":9417470588,"event":{"completed":{"command":2}}}"#]]
    .assert_eq(&wrap_lines(&first.join("\n")));
    let last = text.lines().last().unwrap();
    assert!(last.ends_with(r#","end":"stopped"}"#), "{last}");
}

#[test]
fn changed_line_is_detected() {
    let text = short_log();
    check(
        &text,
        expect![[r#"
        16 events, 19 outputs, 0 lost; the library was stopped
    "#]],
    );
    // A changed decision.
    check(
        &text.replacen("\"to\":7458000", "\"to\":7458001", 1),
        expect![[r#"
            line 3: expected {"do":{"id":2,"action":{"move":{"shuttle":2,"from":6000000,
              "to":7458001,"reports":false}}}}, found {"do":{"id":2,"action":{"move":{"shuttle":2,
              "from":6000000,"to":7458000,"reports":false}}}}
        "#]],
    );
    let place = text.find(r#"{"t":2000000,"event":"#).unwrap();
    let (before, after) = text.split_at(place);
    let (_, last_output) = before.trim_end().rsplit_once('\n').unwrap();
    // One decision too many, and one too few.
    check(
        &format!("{before}{last_output}\n{after}"),
        expect![[r#"
            line 4: expected {"do":{"id":2,"action":{"move":{"shuttle":2,"from":6000000,
              "to":7458000,"reports":false}}}}, found null
        "#]],
    );
    let less = before.replacen(&format!("{last_output}\n"), "", 1);
    check(
        &format!("{less}{after}"),
        expect![[r#"
            line 3: expected null, found {"do":{"id":2,"action":{"move":{"shuttle":2,"from":6000000,
              "to":7458000,"reports":false}}}}
        "#]],
    );
    // A changed event.
    check(
        &text.replacen("\"slot\":4321", "\"slot\":1", 1),
        expect![[r#"
            line 3: expected {"do":{"id":2,"action":{"move":{"shuttle":2,"from":6000000,
              "to":7458000,"reports":false}}}}, found {"do":{"id":0,"action":{"move":{"shuttle":0,
              "from":6000000,"to":2418000,"reports":false}}}}
        "#]],
    );
    check(
        &text.replacen(r#""partitions""#, r#""shortest-paths""#, 1),
        expect![[r#"
            line 3: expected {"do":{"id":2,"action":{"move":{"shuttle":2,"from":6000000,
              "to":7458000,"reports":false}}}}, found {"do":{"id":3,"action":{"move":{"shuttle":3,
              "from":6000000,"to":7458000,"reports":true}}}}
        "#]],
    );
}

#[test]
fn truncated_log_is_replayed_up_to_its_end() {
    let text = short_log();
    let line = text.lines().nth(20).unwrap();
    let at = text.find(line).unwrap();
    check(
        &text[..at],
        expect![[r#"
        9 events, 10 outputs, 1 lost; no end was written
    "#]],
    );
    check(
        &text[..at + 20],
        expect![[r#"
        9 events, 10 outputs, 1 lost; cut off in line 21, which was left out
    "#]],
    );
    // Cut within the outputs of one event.
    let at = text.find(r#"{"t":2000000,"event":"#).unwrap() - 5;
    check(
        &text[..at],
        expect![[r#"
        1 events, 0 outputs, 1 lost; cut off in line 3, which was left out
    "#]],
    );
    for end in (0..text.len()).step_by(37) {
        let cut = &text.as_bytes()[..end];
        match replay(cut) {
            Ok(summary) => assert_eq!(summary.divergence, None, "cut at {end}"),
            Err(error) => assert!(!cut.contains(&b'\n'), "cut at {end}: {error}"),
        }
    }
}

#[test]
fn invalid_logs_are_refused() {
    let text = short_log();
    check(
        "",
        expect![[r#"
        error: line 1: expected a fulgurite-library-log, found ""
    "#]],
    );
    check(
        "time_ns,size,key\n",
        expect![[r#"
        error: line 1: expected a fulgurite-library-log, found "time_ns,size,key"
    "#]],
    );
    check(
        &text.replacen("\"version\":1", "\"version\":2", 1),
        expect![[r#"
        error: line 1: expected version 1, found version 2
    "#]],
    );
    check(
        &text.replacen("\"panels\":1", "\"panels\":3", 1),
        expect![[r#"
            error: line 1: no such library is possible: panels is 3, but must be from 1 to 2
        "#]],
    );
    check(
        &text.replacen("\"panels\"", "\"panles\"", 1),
        expect![[r#"
            error: line 1: unknown field `panles`, expected one of `panels`, `write_racks`, 
              `read_racks`, `drives_per_read_rack`, `storage_racks`, `shelves_per_panel`, 
              `slots_per_shelf`, `shuttles_per_panel`, `rack_width_mm`, `shuttle_width_mm`, 
              `spare_slots_per_shelf`, column 63
        "#]],
    );
    check(
        &text.replacen("\"tracks\"", "\"track\"", 1),
        expect![[r#"
            error: line 2: unknown field `track`, expected one of `request`, `platter`, `slot`, 
              `tracks`, `deadline`, column 110
        "#]],
    );
}

#[test]
fn impossible_events_are_refused() {
    let text = short_log();
    check(
        &text.replacen("{\"t\":2000000,", "{\"t\":3,", 1),
        expect![[r#"
        error: line 4: field t: 3 is before 1000000, the line before
    "#]],
    );
    check(
        &text.replacen(r#"d":{"command":"#, r#"d":{"command":9"#, 1),
        expect![[r#"
        error: line 6: command 92 is not under way
    "#]],
    );
    check(
        &format!("{text}{{}}\n"),
        expect![[r#"
        error: line 38: it follows the end of the log
    "#]],
    );
    check(
        &text.replacen(r#"{"t":1000000,"output""#, r#"{"t":1000001,"output""#, 1),
        expect![[r#"
        error: line 3: field t: an output must have the time of its event
    "#]],
    );
    let long = " ".repeat(20_000);
    check(
        &text.replacen("\"event\"", &format!("{long}\"event\""), 1),
        expect![[r#"
        error: line 2: longer than 16384 bytes
    "#]],
    );
    let machine = r#"{"t":1,"event":{"broke":{"machine":{"shuttle":99}}}}"#;
    let header = text.lines().next().unwrap();
    check(
        &format!("{header}\n{machine}\n"),
        expect![[r#"
        error: line 2: there is no such machine
    "#]],
    );
}

#[test]
fn named_policies_round_trip() {
    for name in crate::control::POLICY_NAMES {
        let policy = Policy::named(name).unwrap();
        let library = Library::with_policy(&LibraryShape::mdu(), policy).unwrap();
        let text = LogWriter::new(Vec::new(), &library).unwrap().end(End::Full).unwrap();
        let replayer = Replayer::new(&*text).unwrap();
        assert_eq!(replayer.library().policy(), library.policy());
        assert_eq!(replayer.library().shape(), library.shape());
    }
}
