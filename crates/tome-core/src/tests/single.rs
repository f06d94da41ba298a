//! One tome by itself: its disk, its token, its scrubs, and false messages.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_codes::{Signature, signature};
use fulgurite_units::{ByteCount, Controller, Duration, ErrorKind, Instant, Outbox, Seed};

use super::{block, gathered, split};
use crate::consistency::{Change, Folded};
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
pub(super) struct Desk {
    pub(super) tome: Tome,
    pub(super) metadata: TomeMetadata,
    disk: BTreeMap<PhysicalBlock, Vec<u8>>,
    pub(super) now: Instant,
    grants: bool,
    pub(super) turning: bool,
    reads: BTreeSet<PhysicalBlock>,
}

impl Desk {
    /// Returns member number `own` of a 3+2 group.
    pub(super) fn new(own: u32) -> Self {
        let block = ByteCount::new(256);
        let segment = split("4+2");
        let layout = Parts { block, segment, segments: 30, regions: 1, spares: 40 };
        let metadata = TomeMetadata::new(TomeId::new(own), Layout::new(layout).unwrap());
        let mut desk = Self {
            tome: Tome::new(Instant::ZERO, metadata.clone(), Seed::new(1)).unwrap(),
            metadata,
            disk: BTreeMap::new(),
            now: Instant::ZERO,
            grants: true,
            turning: false,
            reads: BTreeSet::new(),
        };
        let seats = (0..5).map(|tome| RegionId { tome: TomeId::new(tome), index: REGION });
        let group = Group::new(GROUP, split("3+2"), seats.collect()).unwrap();
        assert_eq!(desk.tell(Event::Join { region: REGION, group }), []);
        desk
    }

    /// Handles an event, and returns what the tome sends to others.
    pub(super) fn tell(&mut self, event: Event) -> Vec<Command> {
        let (mut said, mut events) = (Vec::new(), vec![event]);
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
                        self.turning = true;
                        events.push(Event::SpunUp);
                    }
                    Command::SpinDown => {
                        self.turning = false;
                        events.push(Event::SpunDown);
                    }
                    Command::Read { job, physical_blocks } => {
                        assert!(self.turning);
                        self.reads.extend(&physical_blocks);
                        let blocks =
                            physical_blocks.iter().map(|spot| self.disk.get(spot).cloned());
                        events.push(Event::Read { job, blocks: blocks.collect() });
                    }
                    Command::ReadObject { job, physical_blocks, wanted } => {
                        assert!(self.turning);
                        self.reads.extend(&physical_blocks);
                        let whole = gathered(&self.disk, &physical_blocks, wanted);
                        events.push(Event::ObjectRead { job, whole });
                    }
                    Command::Write { spot, bytes } => {
                        assert!(self.turning);
                        self.disk.insert(spot, bytes);
                    }
                    Command::TokenManager(message) => events.extend(self.keep(message)),
                    other @ (Command::Send { .. } | Command::Answer { .. } | Command::Alarm(_)) => {
                        said.push(other);
                    }
                }
            }
            assert_eq!(*self.tome.metadata(), self.metadata);
        }
        said
    }

    fn keep(&self, message: ToTokenManager) -> Option<Event> {
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
        self.tell(Event::Timer)
    }

    fn put(&mut self, name: &str, blocks: usize) -> (Vec<u8>, Vec<Command>) {
        let bytes = block(256 * blocks, &mut Seed::new(name.len() as u64).stream());
        let (request, name) = (RequestId(1), name.to_owned());
        (bytes.clone(), self.tell(Event::Put { request, name, bytes, avoided: BTreeSet::new() }))
    }

    fn get(&mut self, name: &str) -> Vec<Command> {
        self.tell(Event::Get { request: RequestId(2), name: name.to_owned() })
    }

    /// Damages the first blocks of the region.
    fn spoil(&mut self, blocks: u32) {
        let region = self.metadata.region(REGION).unwrap();
        for offset in (0..blocks).map(Offset::new) {
            self.disk.get_mut(&region.spot(offset).unwrap()).unwrap()[9] ^= 1;
        }
    }

    fn status(&mut self, parity: u8, version: u32, status: Status) -> Vec<Command> {
        let version = Version::new(version);
        let message = Message::Status { group: GROUP, parity, version, status };
        self.tell(Event::Received { from: TomeId::new(3 + u32::from(parity)), message })
    }
}

fn answers(said: &[Command]) -> Vec<&Answer> {
    let mut answers = Vec::new();
    for command in said {
        if let Command::Answer { answer, .. } = command {
            answers.push(answer);
        }
    }
    answers
}

fn alarms(said: &[Command]) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    for command in said {
        if let Command::Alarm(alarm) = command {
            alarms.push(alarm.clone());
        }
    }
    alarms
}

#[test]
fn bad_blocks_up_to_the_parity_are_healed_and_one_more_is_told() {
    let mut desk = Desk::new(0);
    let (bytes, said) = desk.put("object", 4);
    assert_eq!(answers(&said), [&Answer::Local]);
    desk.spoil(2);
    let said = desk.get("object");
    assert_eq!(answers(&said), [&Answer::Bytes(bytes.clone())]);
    assert_eq!(alarms(&said), [Alarm::Healed { region: REGION, blocks: 2 }]);
    let said = desk.get("object");
    assert_eq!((answers(&said), alarms(&said)), (vec![&Answer::Bytes(bytes)], vec![]));
    desk.spoil(3);
    let said = desk.get("object");
    let lost = TomeError::SegmentLost { bad: 3, parity: 2 };
    assert_eq!(answers(&said), [&Answer::Refused(lost.clone())]);
    assert_eq!(alarms(&said), [Alarm::SegmentLost { region: REGION, segment: 0 }]);
    assert_eq!(lost.kind(), ErrorKind::Corrupt);
}

#[test]
fn a_disk_that_turns_for_nothing_is_put_down_sooner_when_others_wait() {
    for (epoch, is_own) in [(0, false), (1, true)] {
        let mut desk = Desk::new(0);
        desk.get("nothing");
        desk.put("object", 1);
        for parity in [0, 1] {
            desk.status(parity, 1, Status::Folded);
        }
        desk.pass(Duration::from_secs(1));
        let wanted = FromTokenManager::Wanted { token: TokenId(0), epoch: Epoch::new(epoch) };
        desk.tell(Event::TokenManager(wanted));
        desk.pass(IDLE_CONTENDED);
        assert_eq!(desk.turning, !is_own, "of epoch {epoch}");
    }
}

#[test]
fn a_disk_that_nobody_reads_of_is_put_down_for_who_reads_of_another_one() {
    let mut desk = Desk::new(0);
    desk.put("object", 1);
    assert!(desk.turning);
    desk.grants = false;
    let wanted = FromTokenManager::WantedToRead { token: TokenId(0), epoch: Epoch::new(1) };
    desk.tell(Event::TokenManager(wanted));
    assert!(desk.turning, "it has its turn");
    // There is more to do: parities need their deltas.
    desk.pass(YIELD_AFTER);
    assert!(!desk.turning, "and not for longer");
}

#[test]
fn who_reads_goes_before_what_is_put_and_not_for_ever() {
    let mut desk = Desk::new(0);
    desk.put("object", 1);
    for parity in [0, 1] {
        desk.status(parity, 1, Status::Folded);
    }
    desk.pass(Duration::from_secs(1));
    desk.pass(IDLE);
    assert!(!desk.turning);
    desk.grants = false;
    for number in 0..3 {
        let (request, name) = (RequestId(100 + number), format!("put {number}"));
        let (bytes, avoided) = (vec![1], BTreeSet::new());
        desk.tell(Event::Put { request, name, bytes, avoided });
    }
    let reads = READ_OVERTAKES_MAX as u64 + 2;
    for number in 0..reads {
        let (request, name) = (RequestId(200 + number), "object".to_owned());
        desk.tell(Event::Get { request, name });
    }
    desk.grants = true;
    let mut order = Vec::new();
    for command in desk.pass(RETRY_INTERVAL) {
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
fn what_is_refused_keeps_no_disk_turning() {
    let mut desk = Desk::new(0);
    desk.put("first", 60);
    for version in 1..=60 {
        for parity in [0, 1] {
            desk.status(parity, version, Status::Folded);
        }
    }
    assert!(desk.turning);
    for number in 0..60 {
        let (_, said) = desk.put(&format!("second {number}"), 63);
        assert!(matches!(answers(&said)[..], [Answer::Refused(_)]));
        desk.pass(Duration::from_secs(2));
        if !desk.turning {
            return;
        }
    }
    panic!("the disk turns on for what is refused");
}

#[test]
fn a_disk_is_not_put_down_while_deltas_are_unsent() {
    let mut desk = Desk::new(0);
    let (_, said) = desk.put("object", 1);
    let deltas =
        said.iter().filter(|c| matches!(c, Command::Send { message: Message::Delta { .. }, .. }));
    assert_eq!(deltas.count(), 2, "one for each parity");
    desk.pass(Duration::from_secs(1));
    // Without an answer they are queried, which needs no spin-up.
    desk.pass(RESEND_INTERVAL);
    assert!(desk.turning);
    desk.pass(IDLE);
    assert!(!desk.turning);
    // One has it, the other does not know it: it is sent again.
    assert_eq!(desk.status(0, 1, Status::Stored), []);
    let said = desk.status(1, 1, Status::Unknown);
    assert!(desk.turning && said.len() == 1, "{said:?}");
    assert_eq!(desk.status(1, 1, Status::Folded), []);
    assert_eq!(desk.tome.unprotected().bytes, ByteCount::new(256));
    let said = desk.status(0, 1, Status::Folded);
    assert_eq!(answers(&said), [&Answer::Protected]);
    assert_eq!(desk.tome.unprotected().bytes, ByteCount::ZERO);
    desk.status(0, 1, Status::Folded);
    desk.pass(IDLE);
    desk.pass(IDLE);
    assert!(!desk.turning);
}

#[test]
fn a_disk_is_put_down_before_its_lease_ends_whatever_waits() {
    let mut desk = Desk::new(0);
    desk.put("object", 1);
    assert!(desk.turning);
    desk.grants = false;
    let until = LEASE.as_nanos() - SPIN_DOWN_MARGIN.as_nanos();
    for second in 1..until / 1_000_000_000 {
        // It is read all the time, so it is never idle.
        desk.now = Instant::ZERO + Duration::from_secs(second);
        assert_eq!(desk.get("object").len() % 2, 1);
        assert!(desk.turning, "after {second} s");
    }
    desk.now = Instant::from_nanos(until);
    assert_eq!(answers(&desk.get("object")), Vec::<&Answer>::new());
    assert!(!desk.turning);
    desk.grants = true;
    let said = desk.pass(SPIN_DOWN_MARGIN);
    assert!(matches!(answers(&said)[..], [Answer::Bytes(_)]), "it was not forgotten");
}

#[test]
fn a_limited_scrub_looks_at_some_blocks_at_each_spin_up() {
    let mut desk = Desk::new(0);
    desk.put("first", 8);
    (0..5).for_each(|_| {
        desk.pass(IDLE);
    });
    assert!(!desk.turning);
    desk.spoil(1);
    // 256 draws out of 180 blocks hit the bad one three times out of four.
    let mut healed = Vec::new();
    for number in 1..=6 {
        let (_, said) = desk.put(&"x".repeat(number), 1);
        healed.extend(alarms(&said));
        (0..5).for_each(|_| {
            healed.extend(alarms(&desk.pass(IDLE)));
        });
    }
    assert_eq!(healed, [Alarm::Healed { region: REGION, blocks: 1 }], "nobody read it");
}

#[test]
fn a_full_scrub_reads_everything_within_a_year_though_nobody_wants_anything() {
    let mut desk = Desk::new(0);
    for number in 0..10 {
        let name = "o".repeat(number + 1);
        desk.put(&name, 8);
    }
    // Parities have all of it, so only the scrub spins the disk up.
    let versions = desk.metadata.region(REGION).unwrap().latest().get();
    for (version, parity) in (1..=versions).flat_map(|v| [(v, 0), (v, 1)]) {
        desk.status(parity, version, Status::Folded);
    }
    assert_eq!(desk.tome.unprotected().bytes, ByteCount::ZERO);
    let written: BTreeSet<PhysicalBlock> =
        desk.metadata.region(REGION).unwrap().physical_blocks().collect();
    desk.reads.clear();
    let mut awake_days = 0;
    for _ in 0..365 {
        desk.pass(DAY);
        awake_days += u32::from(desk.turning);
        desk.pass(IDLE);
        desk.pass(IDLE);
    }
    assert_eq!(desk.metadata.scrubbed().passes, 1);
    assert!(written.is_subset(&desk.reads), "every block was read");
    assert!((12..40).contains(&awake_days), "{awake_days} days of 365 had a wake");
}

#[test]
fn a_scrub_that_is_asked_for_reads_everything_once_over_as_many_leases_as_it_takes() {
    let mut desk = Desk::new(0);
    (0..10).for_each(|number| drop(desk.put(&"o".repeat(number + 1), 8)));
    // The yearly scrub is halfway: what it has read so far is read again.
    desk.pass(Duration::from_secs(150 * 24 * 3600));
    (0..2).for_each(|_| drop(desk.pass(IDLE)));
    let begun = desk.metadata.scrubbed().next;
    assert!(begun > 0 && !desk.turning, "{begun} read, turning {}", desk.turning);
    desk.spoil(2);
    let written: BTreeSet<PhysicalBlock> =
        desk.metadata.region(REGION).unwrap().physical_blocks().collect();
    desk.reads.clear();
    // Nothing can be read while another tome has the token.
    desk.grants = false;
    let mut said = desk.tell(Event::Scrub { request: RequestId(7) });
    said.extend(desk.tell(Event::Scrub { request: RequestId(8) }));
    assert_eq!((said, desk.tome.to_scrub()), (vec![], 180));
    desk.grants = true;
    let said = desk.pass(Duration::from_secs(600));
    assert_eq!(answers(&said), [&Answer::Scrubbed, &Answer::Scrubbed]);
    assert_eq!(alarms(&said), [Alarm::Healed { region: REGION, blocks: 2 }]);
    assert!(written.is_subset(&desk.reads), "every block was read");
    assert_eq!(desk.tome.to_scrub(), 0);
    assert_eq!((desk.metadata.scrubbed().next, desk.metadata.scrubbed().passes), (begun, 1));
    for number in 0..=SCRUB_REQUESTS_MAX as u64 {
        desk.grants = false;
        (0..2).for_each(|_| drop(desk.pass(LEASE)));
        let said = desk.tell(Event::Scrub { request: RequestId(10 + number) });
        let is_refused = matches!(answers(&said)[..], [Answer::Refused(_)]);
        assert_eq!(is_refused, number == SCRUB_REQUESTS_MAX as u64, "scrub {number}: {said:?}");
    }
}

#[test]
fn what_a_member_has_is_told_to_whoever_brings_another_one_back() {
    let mut desk = Desk::new(0);
    let (bytes, _) = desk.put("object", 4);
    desk.spoil(1);
    let hold = |desk: &mut Desk, group, offsets: Vec<u32>| {
        let offsets = offsets.into_iter().map(Offset::new).collect();
        desk.tell(Event::Hold { request: RequestId(3), group, offsets })
    };
    let said = hold(&mut desk, GROUP, vec![0, 1, 5]);
    let [Answer::Held { member, held }] = answers(&said)[..] else { panic!("{said:?}") };
    assert_eq!((*member, held.len()), (Member::new(0), 3));
    assert_eq!((&held[0].block[..], &held[1].block[..]), (&bytes[..256], &bytes[256..512]));
    // No parity has the change yet: its bytes are included.
    assert_eq!(held[0].changes.len(), 1);
    assert_eq!(held[0].changes[0].bytes, bytes[..256]);
    assert!(alarms(&said).contains(&Alarm::Healed { region: REGION, blocks: 1 }));
    let refused = |said: &[Command]| match answers(said)[..] {
        [Answer::Refused(error)] => error.clone(),
        ref other => panic!("{other:?}"),
    };
    let said = hold(&mut desk, GroupId::new(8), vec![0]);
    assert_eq!(refused(&said), TomeError::NoGroup { group: GroupId::new(8) });
    let said = hold(&mut desk, GROUP, vec![180]);
    assert!(matches!(refused(&said), TomeError::OffsetOutOfRange { .. }));
    let said = hold(&mut desk, GROUP, vec![0; PUT_BLOCKS_MAX + 1]);
    assert!(matches!(refused(&said), TomeError::Count { .. }));
    desk.spoil(3);
    let said = hold(&mut desk, GROUP, vec![0]);
    assert_eq!(refused(&said), TomeError::SegmentLost { bad: 3, parity: 2 });
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
fn what_is_not_a_tomes_to_say_changes_nothing() {
    let mut desk = Desk::new(3);
    let told = |desk: &mut Desk, from: u32, message| {
        desk.tell(Event::Received { from: TomeId::new(from), message })
    };
    let foreign = |from: u32| {
        let alarm = Alarm::Foreign { from: TomeId::new(from), group: GROUP };
        vec![Command::Alarm(alarm)]
    };
    let before = desk.metadata.clone();
    let bytes = vec![7; 256];
    assert_eq!(told(&mut desk, 2, delta(1, 1, bytes.clone())), foreign(2), "another member's");
    assert_eq!(told(&mut desk, 3, delta(3, 1, bytes.clone())), foreign(3), "not a data member");
    assert_eq!(told(&mut desk, 1, delta(1, 1, vec![7; 128])), foreign(1), "half a block");
    let mut torn = delta(1, 1, bytes.clone());
    if let Message::Delta { bytes, .. } = &mut torn {
        bytes[3] ^= 1;
    }
    assert_eq!(told(&mut desk, 1, torn), foreign(1), "not the bytes of its signature");
    assert_eq!(desk.metadata, before);
    let said = told(&mut desk, 1, delta(1, 1, bytes.clone()));
    assert_eq!(said.len(), 2, "it is stored, and then folded: {said:?}");
    let after = desk.metadata.clone();
    let again = told(&mut desk, 1, delta(1, 1, bytes));
    let version = Version::new(1);
    let message = Message::Status { group: GROUP, parity: 0, version, status: Status::Folded };
    assert_eq!(again, [Command::Send { to: TomeId::new(1), message }]);
    assert_eq!(desk.metadata, after, "folded once");
    assert_eq!(told(&mut desk, 1, delta(1, 1, vec![9; 256])), foreign(1), "another change");
    assert_eq!(desk.metadata, after);
}

#[test]
fn what_there_is_no_room_for_is_refused() {
    let mut desk = Desk::new(0);
    let refused = |said: &[Command]| match answers(said)[..] {
        [Answer::Refused(error)] => error.clone(),
        ref other => panic!("{other:?}"),
    };
    let (_, said) = desk.put("large", PUT_BLOCKS_MAX + 1);
    assert!(matches!(refused(&said), TomeError::ObjectBytes { .. }));
    desk.put("first", 60);
    let (_, said) = desk.put("first", 1);
    assert_eq!(refused(&said), TomeError::ObjectExists { name: "first".to_owned() });
    let (_, said) = desk.put("second", 63);
    assert_eq!(refused(&said), TomeError::Full { what: "objects" });
    let none = desk.tell(Event::Get { request: RequestId(3), name: "none".to_owned() });
    assert_eq!(refused(&none).kind(), ErrorKind::NotFound);
    (desk.grants, desk.now) = (false, desk.now + LEASE);
    desk.tell(Event::Timer);
    for _ in 0..TASKS_MAX {
        assert_eq!(answers(&desk.get("first")), Vec::<&Answer>::new());
    }
    let said = desk.get("first");
    assert_eq!(refused(&said).kind(), ErrorKind::Unavailable);
}

/// Returns the tome that is asked for blocks, the number of the request, and whether its disk is to
/// spin.
fn asked(said: &[Command]) -> Option<(TomeId, u64, bool)> {
    for command in said {
        if let Command::Send { to, message } = command
            && let Message::HoldingsWanted { round, is_whole, .. } = message
        {
            return Some((*to, *round, *is_whole));
        }
    }
    None
}

#[test]
fn a_change_whose_old_block_went_bad_is_asked_for_and_told_when_nobody_has_it() {
    let mut desk = Desk::new(0);
    desk.put("first", 1);
    (0..2).for_each(|parity| {
        desk.status(parity, 1, Status::Folded);
    });
    desk.tell(Event::Delete { request: RequestId(3), name: "first".to_owned() });
    desk.put("another", 1);
    let region = desk.metadata.region(REGION).unwrap();
    let (version, pending) = region.pending().unwrap().iter().next().unwrap();
    let (version, pending) = (version.get(), *pending);
    let sum = super::xor(&desk.disk[&pending.new], &desk.disk[&pending.old.unwrap()]);
    desk.disk.remove(&pending.old.unwrap());
    let mut said = desk.status(0, version, Status::Unknown);
    let mut order = Vec::new();
    while let Some((to, round, is_whole)) = asked(&said) {
        assert_eq!(alarms(&said), []);
        let message = Message::Holdings { group: GROUP, round, held: None };
        assert_eq!(desk.tell(Event::Received { from: TomeId::new(2 + to.get()), message }), []);
        let message = Message::Holdings { group: GROUP, round, held: None };
        order.push((to.get(), is_whole));
        said = desk.tell(Event::Received { from: to, message });
    }
    let whole = [1, 2, 3, 4].map(|tome| (tome, true));
    assert_eq!(order, [&[(3, false), (4, false)], &whole[..]].concat(), "metadata stores first");
    let lost = Alarm::ChangeLost { region: REGION, version: Version::new(version) };
    assert_eq!(alarms(&said), [lost]);
    // Later a parity that has it is back: no other disk spins, and the alarm is not repeated.
    let said = desk.pass(crate::limits::REPAIR_BACKOFF);
    let (from, round, _) = asked(&said).unwrap();
    let known = crate::message::KnownChange {
        member: Member::new(0),
        version: Version::new(version),
        bytes: sum.clone(),
    };
    let held = crate::message::Held { block: Vec::new(), changes: vec![known], folded: Vec::new() };
    let message = Message::Holdings { group: GROUP, round, held: Some(vec![held]) };
    let said = desk.tell(Event::Received { from, message });
    assert!(alarms(&said).is_empty());
    let sent = said.iter().any(|command| {
        matches!(command, Command::Send { message: Message::Delta { bytes, .. }, .. }
            if *bytes == sum)
    });
    assert!(sent, "{said:?}");
}

/// Two data members were lost, and one had a change that only one of two parities had applied.
#[test]
fn an_update_that_half_the_parities_have_takes_no_other_block_along() {
    let group = split("3+2");
    let mut stream = Seed::new(4).stream();
    let data: Vec<Vec<u8>> = (0..3).map(|_| block(256, &mut stream)).collect();
    let change = block(256, &mut stream);
    let code = crate::segment::SegmentCode::new(group).unwrap();
    let mut parity = code.fill(&data).unwrap();
    let folded = code.scaled(0, 1, &change).unwrap();
    parity[0].iter_mut().zip(&folded).for_each(|(byte, folded)| *byte ^= folded);
    let key = (Member::new(1), Version::new(5));
    let has = Change { offset: Offset::new(0), version: key.1, signature: signature(&change) };
    let holding = |member: u8, block: &[u8], above: Vec<Change>| {
        let folded = Folded { floor: Version::new(5), above };
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
    assert_ne!(wrong, data[0], "without what the first parity keeps it is lost");
    left[1].changes.insert(key, change);
    assert_eq!(recover(GROUP, group, Member::new(0), &left).as_ref(), Ok(&data[0]));
    let few = recover(GROUP, group, Member::new(0), &left[1..]).unwrap_err();
    assert_eq!(few, TomeError::GroupLost { group: GROUP, have: 2, need: 3 });
}

#[test]
fn messages_and_rows_come_back_as_they_were_written() {
    let message = delta(1, 4, vec![3; 256]);
    let text = serde_json::to_string(&message).unwrap();
    assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
    let mut desk = Desk::new(3);
    desk.tell(Event::Received { from: TomeId::new(1), message });
    let report = desk.metadata.region(REGION).unwrap().report();
    let message = Message::Report { group: GROUP, round: 3, member: Member::new(3), report };
    let text = serde_json::to_string(&message).unwrap();
    assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
    let row = Row::Block {
        region: REGION,
        offset: Offset::new(7),
        spot: PhysicalBlock::new(8),
        version: Version::new(9),
        change: Signature([1, 2, 3, 4, 5, 6, 7, 8]),
    };
    let text = serde_json::to_string(&row).unwrap();
    assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
    let parts = serde_json::to_string(desk.metadata.layout()).unwrap();
    assert_eq!(serde_json::from_str::<Layout>(&parts).unwrap(), *desk.metadata.layout());
    assert!(serde_json::from_str::<Layout>(&parts.replace("4+2", "0+2")).is_err());
}
