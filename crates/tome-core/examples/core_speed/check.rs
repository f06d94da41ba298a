//! 16 tomes check whether the members of their 13+3 group agree: the real cores and their messages,
//! each of which is encoded, counted and decoded as between processes (a version, then postcard),
//! on one thread and over a network with no latency.

use std::collections::{BTreeSet, VecDeque};

use fulgurite_codes::Signature;
use fulgurite_tome_core::message::Message;
use fulgurite_tome_core::metadata::{Row, TomeMetadata};
use fulgurite_tome_core::syndrome::Verdict;
use fulgurite_tome_core::{
    Answer, Command, Event, GroupId, Member, Offset, RegionIndex, RequestId, Tome, TomeId, Version,
};
use fulgurite_units::{Controller as _, Instant, Outbox, RandomStream, Seed};

use super::filled::{any, empty, layout, split, write};

/// Damaged blocks in each measurement.
const DAMAGED: [usize; 3] = [0, 1, 100];
/// Bytes in front of an encoded message.
const VERSION_BYTES: u64 = 1;

/// The result of a check.
struct Checked {
    seconds: f64,
    bytes: u64,
    messages: u64,
    exchanged: u64,
}

/// Prints a line for each number of damaged blocks: the round with the median time, and the
/// traffic, which is the same in every round.
pub(crate) fn print(blocks: u32, rounds: usize) {
    let mut all = consistent_group(blocks);
    let mut stream = Seed::new(2).stream();
    let mut damaged = BTreeSet::new();
    for count in DAMAGED {
        while damaged.len() < count {
            damaged.insert(damage(&mut all, blocks, &mut stream, &damaged));
        }
        let started = |metadata: &TomeMetadata| {
            Tome::new(Instant::ZERO, metadata.clone(), Seed::new(3)).unwrap()
        };
        let mut tomes: Vec<Tome> = all.iter().map(started).collect();
        let mut runs: Vec<Checked> = (0..rounds).map(|_| check(&mut tomes, &damaged)).collect();
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let Checked { seconds, bytes, messages, exchanged } = &runs[runs.len() / 2];
        println!(
            "{{\"blocks\":{blocks},\"damaged\":{count},\"seconds\":{seconds:.6},\"bytes\":{bytes},\
             \"messages\":{messages},\"signatures\":{exchanged}}}"
        );
    }
}

/// Returns all members of a group that was written once and is quiescent.
fn consistent_group(blocks: u32) -> Vec<TomeMetadata> {
    let (split, layout) = (split(), layout(blocks));
    assert_eq!(layout.parts().regions, 1, "one group");
    let mut all: Vec<TomeMetadata> = (0..split.total()).map(|own| empty(own, layout)).collect();
    let (data, parity) = all.split_at_mut(split.data() as usize);
    let mut stream = Seed::new(1).stream();
    for offset in 0..blocks {
        let mut sums = vec![Signature::ZERO; parity.len()];
        for (i, metadata) in data.iter_mut().enumerate() {
            let signature = any(&mut stream);
            write(metadata, 0, offset, signature);
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum ^= signature.scale8(split.coefficient(j, i));
            }
        }
        for (metadata, sum) in parity.iter_mut().zip(sums) {
            write(metadata, 0, offset, sum);
        }
    }
    let floors = (0..split.data() as usize).map(Member::at).map(|member| Row::Floor {
        region: RegionIndex::new(0),
        member,
        floor: Version::new(blocks + 1),
    });
    for floor in floors {
        parity.iter_mut().for_each(|metadata| metadata.apply(&floor).unwrap());
    }
    all
}

/// Makes one block of a random member disagree with the group and returns which.
fn damage(
    all: &mut [TomeMetadata],
    blocks: u32,
    stream: &mut RandomStream,
    known: &BTreeSet<(u32, usize)>,
) -> (u32, usize) {
    let member = usize::try_from(stream.below(all.len() as u64)).unwrap();
    let offset = u32::try_from(stream.below(u64::from(blocks))).unwrap();
    // Two wrong members at one offset would be a different measurement.
    if let Some(known) = known.iter().find(|(at, _)| *at == offset) {
        return *known;
    }
    write(&mut all[member], 0, offset, any(stream));
    (offset, member)
}

/// Has the first tome check its group.
fn check(tomes: &mut [Tome], damaged: &BTreeSet<(u32, usize)>) -> Checked {
    let begin = std::time::Instant::now();
    let mut out = Outbox::new();
    let mut messages_in_flight: VecDeque<(TomeId, TomeId, Vec<u8>)> = VecDeque::new();
    let (mut bytes, mut messages, mut answer) = (0, 0, None);
    let event = Event::Check { request: RequestId(1), group: GroupId::new(0) };
    tomes[0].step(Instant::ZERO, event, &mut out);
    let mut from = TomeId::new(0);
    loop {
        for command in out.drain() {
            match command {
                Command::Send { to, message } => {
                    let encoded = postcard::to_allocvec(&message).unwrap();
                    bytes += encoded.len() as u64 + VERSION_BYTES;
                    messages += 1;
                    messages_in_flight.push_back((from, to, encoded));
                }
                Command::Answer { answer: Answer::Checked { findings, exchanged }, .. } => {
                    answer = Some((findings, exchanged));
                }
                Command::Answer { .. }
                | Command::Commit(_)
                | Command::SpinUp { .. }
                | Command::SpinDown
                | Command::Read { .. }
                | Command::ReadObject { .. }
                | Command::Write { .. } => panic!("a check needs no disk"),
                Command::TokenManager(_) | Command::Alarm(_) => {}
            }
        }
        let Some((sender, to, encoded)) = messages_in_flight.pop_front() else { break };
        let message: Message = postcard::from_bytes(&encoded).unwrap();
        from = to;
        let event = Event::Received { from: sender, message };
        tomes[to.get() as usize].step(Instant::ZERO, event, &mut out);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let (findings, exchanged) = answer.expect("the check is answered");
    let found: BTreeSet<(Offset, Verdict)> =
        findings.iter().map(|finding| (finding.offset, finding.verdict)).collect();
    let expected: BTreeSet<(Offset, Verdict)> = damaged
        .iter()
        .map(|(offset, member)| (Offset::new(*offset), Verdict::Wrong(Member::at(*member))))
        .collect();
    assert_eq!(found, expected, "exactly the damaged blocks are found and located");
    Checked { seconds, bytes, messages, exchanged }
}
