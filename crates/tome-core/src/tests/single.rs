//! One tome by itself: its disk, its token, its scrubs, and false messages.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_codes::{Signature, signature};
use fulgurite_units::{ByteCount, Controller, Duration, ErrorKind, Instant, Outbox, Seed};

use super::{assemble, block, split};
use crate::consistency::{AppliedSummary, Change};
use crate::group::Group;
use crate::limits::{
    IDLE, IDLE_CONTENDED, LEASE, PUT_BLOCKS_MAX, READ_OVERTAKES_MAX, RESEND_INTERVAL,
    RETRY_INTERVAL, SCRUB_REQUESTS_MAX, SPIN_DOWN_MARGIN, TASKS_MAX, YIELD_AFTER,
};
use crate::message::{Message, Status};
use crate::metadata::{Row, TomeMetadata};
use crate::offline_read::{Holding, recover};
use crate::token::{FromTokenManager, ToTokenManager, TokenId};
use crate::{
    Alarm, Answer, Command, Epoch, Event, GroupId, Layout, Member, Offset, Parts, PhysicalBlock,
    RegionId, RegionIndex, RequestId, Tome, TomeError, TomeId, Version,
};

pub(super) const REGION: RegionIndex = RegionIndex::new(0);
const GROUP: GroupId = GroupId::new(9);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A tome whose disk obeys at once, and whose token manager grants every request.
pub(super) struct Rig {
    pub(super) tome: Tome,
    pub(super) metadata: TomeMetadata,
    disk: BTreeMap<PhysicalBlock, Vec<u8>>,
    pub(super) now: Instant,
    grants: bool,
    pub(super) spinning: bool,
    reads: BTreeSet<PhysicalBlock>,
}

impl Rig {
    /// Returns member number `own` of a 3+2 group.
    pub(super) fn new(own: u32) -> Self {
        let block = ByteCount::new(256);
        let segment = split("4+2");
        let layout = Parts { block, segment, segments: 30, regions: 1, spares: 40 };
        let metadata = TomeMetadata::new(TomeId::new(own), Layout::new(layout).unwrap());
        let mut rig = Self {
            tome: Tome::new(Instant::ZERO, metadata.clone(), Seed::new(1)).unwrap(),
            metadata,
            disk: BTreeMap::new(),
            now: Instant::ZERO,
            grants: true,
            spinning: false,
            reads: BTreeSet::new(),
        };
        let slots = (0..5).map(|tome| RegionId { tome: TomeId::new(tome), index: REGION });
        let group = Group::new(GROUP, split("3+2"), slots.collect()).unwrap();
        assert_eq!(rig.handle(Event::Join { region: REGION, group }), []);
        rig
    }

    /// Handles an event, and returns what the tome sends to others.
    pub(super) fn handle(&mut self, event: Event) -> Vec<Command> {
        let (mut output, mut events) = (Vec::new(), vec![event]);
        while let Some(event) = events.pop() {
            let mut out = Outbox::new();
            self.tome.step(self.now, event, &mut out);
            self.tome.check();
            for command in out.drain() {
                match command {
                    Command::Commit(rows) => {
                        rows.iter().for_each(|row| self.metadata.apply(row).unwrap());
                    }
                    Command::SpinUp { .. } => {
                        self.spinning = true;
                        events.push(Event::SpunUp);
                    }
                    Command::SpinDown => {
                        self.spinning = false;
                        events.push(Event::SpunDown);
                    }
                    Command::Read { job, physical_blocks } => {
                        assert!(self.spinning);
                        self.reads.extend(&physical_blocks);
                        let blocks = physical_blocks
                            .iter()
                            .map(|physical_block| self.disk.get(physical_block).cloned());
                        events.push(Event::Read { job, blocks: blocks.collect() });
                    }
                    Command::ReadObject { job, physical_blocks, wanted } => {
                        assert!(self.spinning);
                        self.reads.extend(&physical_blocks);
                        let whole = assemble(&self.disk, &physical_blocks, wanted);
                        events.push(Event::ObjectRead { job, whole });
                    }
                    Command::Write { physical_block, bytes } => {
                        assert!(self.spinning);
                        self.disk.insert(physical_block, bytes);
                    }
                    Command::TokenManager(message) => {
                        events.extend(self.answer_as_token_manager(message))
                    }
                    other @ (Command::Send { .. } | Command::Answer { .. } | Command::Alarm(_)) => {
                        output.push(other);
                    }
                }
            }
            assert_eq!(*self.tome.metadata(), self.metadata);
        }
        output
    }

    fn answer_as_token_manager(&self, message: ToTokenManager) -> Option<Event> {
        let (token, epoch) = (TokenId(0), Epoch::new(1));
        let answer = match message {
            ToTokenManager::Ask { nonce, .. } => FromTokenManager::Offer { token, epoch, nonce },
            ToTokenManager::Claim { sent, .. } => FromTokenManager::Held { token, epoch, sent },
            ToTokenManager::Release { .. } => return None,
        };
        self.grants.then_some(Event::TokenManager(answer))
    }

    pub(super) fn pass(&mut self, time: Duration) -> Vec<Command> {
        self.now = self.now + time;
        self.handle(Event::Timer)
    }

    fn put(&mut self, name: &str, blocks: usize) -> (Vec<u8>, Vec<Command>) {
        let bytes = block(256 * blocks, &mut Seed::new(name.len() as u64).stream());
        let (request, name) = (RequestId(1), name.to_owned());
        (bytes.clone(), self.handle(Event::Put { request, name, bytes, avoided: BTreeSet::new() }))
    }

    fn get(&mut self, name: &str) -> Vec<Command> {
        self.handle(Event::Get { request: RequestId(2), name: name.to_owned() })
    }

    /// Damages the first blocks of the region.
    fn spoil(&mut self, blocks: u32) {
        let region = self.metadata.region(REGION).unwrap();
        for offset in (0..blocks).map(Offset::new) {
            self.disk.get_mut(&region.physical_block(offset).unwrap()).unwrap()[9] ^= 1;
        }
    }

    fn status(&mut self, parity: u8, version: u32, status: Status) -> Vec<Command> {
        let version = Version::new(version);
        let message = Message::Status { group: GROUP, parity, version, status };
        self.handle(Event::Received { from: TomeId::new(3 + u32::from(parity)), message })
    }
}

fn answers(output: &[Command]) -> Vec<&Answer> {
    let mut answers = Vec::new();
    for command in output {
        if let Command::Answer { answer, .. } = command {
            answers.push(answer);
        }
    }
    answers
}

fn alarms(output: &[Command]) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    for command in output {
        if let Command::Alarm(alarm) = command {
            alarms.push(alarm.clone());
        }
    }
    alarms
}

#[test]
fn read_repairs_up_to_parity_and_reports_more() {
    let mut rig = Rig::new(0);
    let (bytes, output) = rig.put("object", 4);
    assert_eq!(answers(&output), [&Answer::Local]);
    rig.spoil(2);
    let output = rig.get("object");
    assert_eq!(answers(&output), [&Answer::Bytes(bytes.clone())]);
    assert_eq!(alarms(&output), [Alarm::Healed { region: REGION, blocks: 2 }]);
    let output = rig.get("object");
    assert_eq!((answers(&output), alarms(&output)), (vec![&Answer::Bytes(bytes)], vec![]));
    rig.spoil(3);
    let output = rig.get("object");
    let lost = TomeError::SegmentLost { bad: 3, parity: 2 };
    assert_eq!(answers(&output), [&Answer::Refused(lost.clone())]);
    assert_eq!(alarms(&output), [Alarm::SegmentLost { region: REGION, segment: 0 }]);
    assert_eq!(lost.kind(), ErrorKind::Corrupt);
}

#[test]
fn idle_disk_spins_down_sooner_under_contention() {
    for (epoch, is_own) in [(0, false), (1, true)] {
        let mut rig = Rig::new(0);
        rig.get("nothing");
        rig.put("object", 1);
        for parity in [0, 1] {
            rig.status(parity, 1, Status::Folded);
        }
        rig.pass(Duration::from_secs(1));
        let wanted = FromTokenManager::Wanted { token: TokenId(0), epoch: Epoch::new(epoch) };
        rig.handle(Event::TokenManager(wanted));
        rig.pass(IDLE_CONTENDED);
        assert_eq!(rig.spinning, !is_own, "notice for epoch {epoch}");
    }
}

#[test]
fn disk_without_readers_yields_to_a_waiting_reader() {
    let mut rig = Rig::new(0);
    rig.put("object", 1);
    assert!(rig.spinning);
    rig.grants = false;
    let wanted = FromTokenManager::WantedToRead { token: TokenId(0), epoch: Epoch::new(1) };
    rig.handle(Event::TokenManager(wanted));
    assert!(rig.spinning, "the disk spins until its turn ends");
    // There is more to do: parities need their deltas.
    rig.pass(YIELD_AFTER);
    assert!(!rig.spinning, "the disk spins down after its turn");
}

#[test]
fn reads_overtake_puts_a_limited_number_of_times() {
    let mut rig = Rig::new(0);
    rig.put("object", 1);
    for parity in [0, 1] {
        rig.status(parity, 1, Status::Folded);
    }
    rig.pass(Duration::from_secs(1));
    rig.pass(IDLE);
    assert!(!rig.spinning);
    rig.grants = false;
    for number in 0..3 {
        let (request, name) = (RequestId(100 + number), format!("put {number}"));
        let (bytes, avoided) = (vec![1], BTreeSet::new());
        rig.handle(Event::Put { request, name, bytes, avoided });
    }
    let reads = READ_OVERTAKES_MAX as u64 + 2;
    for number in 0..reads {
        let (request, name) = (RequestId(200 + number), "object".to_owned());
        rig.handle(Event::Get { request, name });
    }
    rig.grants = true;
    let mut order = Vec::new();
    for command in rig.pass(RETRY_INTERVAL) {
        if let Command::Answer { request, answer: Answer::Local | Answer::Bytes(_) } = command {
            order.push(request.0);
        }
    }
    let ahead = 200 + READ_OVERTAKES_MAX as u64;
    let mut expected: Vec<u64> = (200..ahead).collect();
    expected.extend([100, ahead, ahead + 1, 101, 102]);
    assert_eq!(order, expected);
}

#[test]
fn refused_puts_keep_no_disk_spinning() {
    let mut rig = Rig::new(0);
    rig.put("first", 60);
    for version in 1..=60 {
        for parity in [0, 1] {
            rig.status(parity, version, Status::Folded);
        }
    }
    assert!(rig.spinning);
    for number in 0..60 {
        let (_, output) = rig.put(&format!("second {number}"), 63);
        assert!(matches!(answers(&output)[..], [Answer::Refused(_)]));
        rig.pass(Duration::from_secs(2));
        if !rig.spinning {
            return;
        }
    }
    panic!("refused puts keep the disk spinning");
}

#[test]
fn disk_keeps_spinning_while_deltas_are_unsent() {
    let mut rig = Rig::new(0);
    let (_, output) = rig.put("object", 1);
    let deltas =
        output.iter().filter(|c| matches!(c, Command::Send { message: Message::Delta { .. }, .. }));
    assert_eq!(deltas.count(), 2, "one for each parity");
    rig.pass(Duration::from_secs(1));
    // Without an answer they are queried, which needs no spin-up.
    rig.pass(RESEND_INTERVAL);
    assert!(rig.spinning);
    rig.pass(IDLE);
    assert!(!rig.spinning);
    // One has it, the other does not know it: it is sent again.
    assert_eq!(rig.status(0, 1, Status::Stored), []);
    let output = rig.status(1, 1, Status::Unknown);
    assert!(rig.spinning && output.len() == 1, "{output:?}");
    assert_eq!(rig.status(1, 1, Status::Folded), []);
    assert_eq!(rig.tome.unprotected().bytes, ByteCount::new(256));
    let output = rig.status(0, 1, Status::Folded);
    assert_eq!(answers(&output), [&Answer::Protected]);
    assert_eq!(rig.tome.unprotected().bytes, ByteCount::ZERO);
    rig.status(0, 1, Status::Folded);
    rig.pass(IDLE);
    rig.pass(IDLE);
    assert!(!rig.spinning);
}

#[test]
fn disk_spins_down_before_its_lease_ends() {
    let mut rig = Rig::new(0);
    rig.put("object", 1);
    assert!(rig.spinning);
    rig.grants = false;
    let until = LEASE.as_nanos() - SPIN_DOWN_MARGIN.as_nanos();
    for second in 1..until / 1_000_000_000 {
        // It is read all the time, so it is never idle.
        rig.now = Instant::ZERO + Duration::from_secs(second);
        assert_eq!(rig.get("object").len() % 2, 1);
        assert!(rig.spinning, "after {second} s");
    }
    rig.now = Instant::from_nanos(until);
    assert_eq!(answers(&rig.get("object")), Vec::<&Answer>::new());
    assert!(!rig.spinning);
    rig.grants = true;
    let output = rig.pass(SPIN_DOWN_MARGIN);
    assert!(
        matches!(answers(&output)[..], [Answer::Bytes(_)]),
        "the read is answered after the next spin-up"
    );
}

#[test]
fn limited_scrub_checks_some_blocks_per_spin_up() {
    let mut rig = Rig::new(0);
    rig.put("first", 8);
    (0..5).for_each(|_| {
        rig.pass(IDLE);
    });
    assert!(!rig.spinning);
    rig.spoil(1);
    // 256 draws out of 180 blocks hit the bad one three times out of four.
    let mut healed = Vec::new();
    for number in 1..=6 {
        let (_, output) = rig.put(&"x".repeat(number), 1);
        healed.extend(alarms(&output));
        (0..5).for_each(|_| {
            healed.extend(alarms(&rig.pass(IDLE)));
        });
    }
    assert_eq!(
        healed,
        [Alarm::Healed { region: REGION, blocks: 1 }],
        "the scrub repairs a block that no client reads"
    );
}

#[test]
fn full_scrub_covers_an_idle_disk_within_a_year() {
    let mut rig = Rig::new(0);
    for number in 0..10 {
        let name = "o".repeat(number + 1);
        rig.put(&name, 8);
    }
    // Parities have all of it, so only the scrub spins the disk up.
    let versions = rig.metadata.region(REGION).unwrap().latest().get();
    for (version, parity) in (1..=versions).flat_map(|v| [(v, 0), (v, 1)]) {
        rig.status(parity, version, Status::Folded);
    }
    assert_eq!(rig.tome.unprotected().bytes, ByteCount::ZERO);
    let written: BTreeSet<PhysicalBlock> =
        rig.metadata.region(REGION).unwrap().physical_blocks().collect();
    rig.reads.clear();
    let mut scrub_days = 0;
    for _ in 0..365 {
        rig.pass(DAY);
        scrub_days += u32::from(rig.spinning);
        rig.pass(IDLE);
        rig.pass(IDLE);
    }
    assert_eq!(rig.metadata.scrubbed().passes, 1);
    assert!(written.is_subset(&rig.reads), "every block was read");
    assert!((12..40).contains(&scrub_days), "{scrub_days} days of 365 had a spin-up");
}

#[test]
fn requested_scrub_reads_every_block_across_leases() {
    let mut rig = Rig::new(0);
    (0..10).for_each(|number| drop(rig.put(&"o".repeat(number + 1), 8)));
    // The yearly scrub is halfway: what it has read so far is read again.
    rig.pass(Duration::from_secs(150 * 24 * 3600));
    (0..2).for_each(|_| drop(rig.pass(IDLE)));
    let begun = rig.metadata.scrubbed().next;
    assert!(begun > 0 && !rig.spinning, "{begun} read, spinning {}", rig.spinning);
    rig.spoil(2);
    let written: BTreeSet<PhysicalBlock> =
        rig.metadata.region(REGION).unwrap().physical_blocks().collect();
    rig.reads.clear();
    // Nothing can be read while another tome has the token.
    rig.grants = false;
    let mut output = rig.handle(Event::Scrub { request: RequestId(7) });
    output.extend(rig.handle(Event::Scrub { request: RequestId(8) }));
    assert_eq!((output, rig.tome.to_scrub()), (vec![], 180));
    rig.grants = true;
    let output = rig.pass(Duration::from_secs(600));
    assert_eq!(answers(&output), [&Answer::Scrubbed, &Answer::Scrubbed]);
    assert_eq!(alarms(&output), [Alarm::Healed { region: REGION, blocks: 2 }]);
    assert!(written.is_subset(&rig.reads), "every block was read");
    assert_eq!(rig.tome.to_scrub(), 0);
    assert_eq!((rig.metadata.scrubbed().next, rig.metadata.scrubbed().passes), (begun, 1));
    for number in 0..=SCRUB_REQUESTS_MAX as u64 {
        rig.grants = false;
        (0..2).for_each(|_| drop(rig.pass(LEASE)));
        let output = rig.handle(Event::Scrub { request: RequestId(10 + number) });
        let is_refused = matches!(answers(&output)[..], [Answer::Refused(_)]);
        assert_eq!(is_refused, number == SCRUB_REQUESTS_MAX as u64, "scrub {number}: {output:?}");
    }
}

#[test]
fn member_sends_its_holdings_for_a_recovery() {
    let mut rig = Rig::new(0);
    let (bytes, _) = rig.put("object", 4);
    rig.spoil(1);
    let hold = |rig: &mut Rig, group, offsets: Vec<u32>| {
        let offsets = offsets.into_iter().map(Offset::new).collect();
        rig.handle(Event::Hold { request: RequestId(3), group, offsets })
    };
    let output = hold(&mut rig, GROUP, vec![0, 1, 5]);
    let [Answer::Held { member, held }] = answers(&output)[..] else { panic!("{output:?}") };
    assert_eq!((*member, held.len()), (Member::new(0), 3));
    assert_eq!((&held[0].block[..], &held[1].block[..]), (&bytes[..256], &bytes[256..512]));
    // No parity has the change yet: its bytes are included.
    assert_eq!(held[0].changes.len(), 1);
    assert_eq!(held[0].changes[0].bytes, bytes[..256]);
    assert!(alarms(&output).contains(&Alarm::Healed { region: REGION, blocks: 1 }));
    let refused = |output: &[Command]| match answers(output)[..] {
        [Answer::Refused(error)] => error.clone(),
        ref other => panic!("{other:?}"),
    };
    let output = hold(&mut rig, GroupId::new(8), vec![0]);
    assert_eq!(refused(&output), TomeError::NoGroup { group: GroupId::new(8) });
    let output = hold(&mut rig, GROUP, vec![180]);
    assert!(matches!(refused(&output), TomeError::OffsetOutOfRange { .. }));
    let output = hold(&mut rig, GROUP, vec![0; PUT_BLOCKS_MAX + 1]);
    assert!(matches!(refused(&output), TomeError::Count { .. }));
    rig.spoil(3);
    let output = hold(&mut rig, GROUP, vec![0]);
    assert_eq!(refused(&output), TomeError::SegmentLost { bad: 3, parity: 2 });
}

pub(super) fn delta(member: u8, version: u32, bytes: Vec<u8>) -> Message {
    let change = Change {
        offset: Offset::new(1),
        version: Version::new(version),
        signature: signature(&bytes),
    };
    let floor = Version::new(1);
    Message::Delta { group: GROUP, member: Member::new(member), change, floor, bytes }
}

#[test]
fn unauthorized_messages_change_nothing() {
    let mut rig = Rig::new(3);
    let receive = |rig: &mut Rig, from: u32, message| {
        rig.handle(Event::Received { from: TomeId::new(from), message })
    };
    let rejected = |from: u32| {
        let alarm = Alarm::Foreign { from: TomeId::new(from), group: GROUP };
        vec![Command::Alarm(alarm)]
    };
    let before = rig.metadata.clone();
    let bytes = vec![7; 256];
    assert_eq!(
        receive(&mut rig, 2, delta(1, 1, bytes.clone())),
        rejected(2),
        "a delta of another member"
    );
    assert_eq!(
        receive(&mut rig, 3, delta(3, 1, bytes.clone())),
        rejected(3),
        "a delta of a parity member"
    );
    assert_eq!(
        receive(&mut rig, 1, delta(1, 1, vec![7; 128])),
        rejected(1),
        "a delta of half a block"
    );
    let mut torn = delta(1, 1, bytes.clone());
    if let Message::Delta { bytes, .. } = &mut torn {
        bytes[3] ^= 1;
    }
    assert_eq!(receive(&mut rig, 1, torn), rejected(1), "bytes that do not match the signature");
    assert_eq!(rig.metadata, before);
    let output = receive(&mut rig, 1, delta(1, 1, bytes.clone()));
    assert_eq!(output.len(), 2, "the delta is stored and then applied: {output:?}");
    let after = rig.metadata.clone();
    let again = receive(&mut rig, 1, delta(1, 1, bytes));
    let version = Version::new(1);
    let message = Message::Status { group: GROUP, parity: 0, version, status: Status::Folded };
    assert_eq!(again, [Command::Send { to: TomeId::new(1), message }]);
    assert_eq!(rig.metadata, after, "the delta is applied once");
    assert_eq!(
        receive(&mut rig, 1, delta(1, 1, vec![9; 256])),
        rejected(1),
        "a different change of the same version"
    );
    assert_eq!(rig.metadata, after);
}

#[test]
fn requests_beyond_capacity_are_refused() {
    let mut rig = Rig::new(0);
    let refused = |output: &[Command]| match answers(output)[..] {
        [Answer::Refused(error)] => error.clone(),
        ref other => panic!("{other:?}"),
    };
    let (_, output) = rig.put("large", PUT_BLOCKS_MAX + 1);
    assert!(matches!(refused(&output), TomeError::ObjectBytes { .. }));
    rig.put("first", 60);
    let (_, output) = rig.put("first", 1);
    assert_eq!(refused(&output), TomeError::ObjectExists { name: "first".to_owned() });
    let (_, output) = rig.put("second", 63);
    assert_eq!(refused(&output), TomeError::Full { what: "objects" });
    let none = rig.handle(Event::Get { request: RequestId(3), name: "none".to_owned() });
    assert_eq!(refused(&none).kind(), ErrorKind::NotFound);
    (rig.grants, rig.now) = (false, rig.now + LEASE);
    rig.handle(Event::Timer);
    for _ in 0..TASKS_MAX {
        assert_eq!(answers(&rig.get("first")), Vec::<&Answer>::new());
    }
    let output = rig.get("first");
    assert_eq!(refused(&output).kind(), ErrorKind::Unavailable);
}

/// Returns the tome that is asked for blocks, the number of the request, and whether its disk is to
/// spin.
fn holding_request(output: &[Command]) -> Option<(TomeId, u64, bool)> {
    for command in output {
        if let Command::Send { to, message } = command
            && let Message::HoldingsWanted { round, is_whole, .. } = message
        {
            return Some((*to, *round, *is_whole));
        }
    }
    None
}

#[test]
fn change_with_bad_old_block_is_requested_from_the_group() {
    let mut rig = Rig::new(0);
    rig.put("first", 1);
    (0..2).for_each(|parity| {
        rig.status(parity, 1, Status::Folded);
    });
    rig.handle(Event::Delete { request: RequestId(3), name: "first".to_owned() });
    rig.put("another", 1);
    let region = rig.metadata.region(REGION).unwrap();
    let (version, pending) = region.pending().unwrap().iter().next().unwrap();
    let (version, pending) = (version.get(), *pending);
    let sum = super::xor(&rig.disk[&pending.new], &rig.disk[&pending.old.unwrap()]);
    rig.disk.remove(&pending.old.unwrap());
    let mut output = rig.status(0, version, Status::Unknown);
    let mut order = Vec::new();
    while let Some((to, round, is_whole)) = holding_request(&output) {
        assert_eq!(alarms(&output), []);
        let message = Message::Holdings { group: GROUP, round, held: None };
        assert_eq!(rig.handle(Event::Received { from: TomeId::new(2 + to.get()), message }), []);
        let message = Message::Holdings { group: GROUP, round, held: None };
        order.push((to.get(), is_whole));
        output = rig.handle(Event::Received { from: to, message });
    }
    let whole = [1, 2, 3, 4].map(|tome| (tome, true));
    assert_eq!(
        order,
        [&[(3, false), (4, false)], &whole[..]].concat(),
        "metadata stores are asked first"
    );
    let lost = Alarm::ChangeLost { region: REGION, version: Version::new(version) };
    assert_eq!(alarms(&output), [lost]);
    // Later a parity that has it is back: no other disk spins, and the alarm is not repeated.
    let output = rig.pass(crate::limits::REPAIR_BACKOFF);
    let (from, round, _) = holding_request(&output).unwrap();
    let known = crate::message::KnownChange {
        member: Member::new(0),
        version: Version::new(version),
        bytes: sum.clone(),
    };
    let held = crate::message::Held { block: Vec::new(), changes: vec![known], folded: Vec::new() };
    let message = Message::Holdings { group: GROUP, round, held: Some(vec![held]) };
    let output = rig.handle(Event::Received { from, message });
    assert!(alarms(&output).is_empty());
    let sent = output.iter().any(|command| {
        matches!(command, Command::Send { message: Message::Delta { bytes, .. }, .. }
            if *bytes == sum)
    });
    assert!(sent, "{output:?}");
}

/// Two data members were lost, and one had a change that only one of two parities had applied.
#[test]
fn partially_applied_update_corrupts_no_other_block() {
    let group = split("3+2");
    let mut stream = Seed::new(4).stream();
    let data: Vec<Vec<u8>> = (0..3).map(|_| block(256, &mut stream)).collect();
    let change = block(256, &mut stream);
    let code = crate::segment::SegmentCode::new(group).unwrap();
    let mut parity = code.fill(&data).unwrap();
    let scaled = code.scaled(0, 1, &change).unwrap();
    parity[0].iter_mut().zip(&scaled).for_each(|(byte, scaled)| *byte ^= scaled);
    let key = (Member::new(1), Version::new(5));
    let has = Change { offset: Offset::new(0), version: key.1, signature: signature(&change) };
    let holding = |member: u8, block: &[u8], above: Vec<Change>| {
        let folded = AppliedSummary { floor: Version::new(5), above };
        let mut folded = vec![folded; 3];
        folded[0].above.clear();
        folded[2].above.clear();
        let changes = BTreeMap::new();
        Holding { member: Member::new(member), block: block.to_vec(), changes, folded }
    };
    let mut left = vec![
        holding(2, &data[2], Vec::new()),
        holding(3, &parity[0], vec![has]),
        holding(4, &parity[1], Vec::new()),
    ];
    let wrong = recover(GROUP, group, Member::new(0), &left).unwrap();
    assert_ne!(wrong, data[0], "the block is lost without the delta that the first parity stores");
    left[1].changes.insert(key, change);
    assert_eq!(recover(GROUP, group, Member::new(0), &left).as_ref(), Ok(&data[0]));
    let few = recover(GROUP, group, Member::new(0), &left[1..]).unwrap_err();
    assert_eq!(few, TomeError::GroupLost { group: GROUP, have: 2, need: 3 });
}

#[test]
fn messages_and_rows_round_trip() {
    let message = delta(1, 4, vec![3; 256]);
    let text = serde_json::to_string(&message).unwrap();
    assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
    let mut rig = Rig::new(3);
    rig.handle(Event::Received { from: TomeId::new(1), message });
    let report = rig.metadata.region(REGION).unwrap().report();
    let message = Message::Report { group: GROUP, round: 3, member: Member::new(3), report };
    let text = serde_json::to_string(&message).unwrap();
    assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
    let row = Row::Block {
        region: REGION,
        offset: Offset::new(7),
        physical_block: PhysicalBlock::new(8),
        version: Version::new(9),
        change: Signature([1, 2, 3, 4, 5, 6, 7, 8]),
    };
    let text = serde_json::to_string(&row).unwrap();
    assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
    let parts = serde_json::to_string(rig.metadata.layout()).unwrap();
    assert_eq!(serde_json::from_str::<Layout>(&parts).unwrap(), *rig.metadata.layout());
    assert!(serde_json::from_str::<Layout>(&parts.replace("4+2", "0+2")).is_err());
}
