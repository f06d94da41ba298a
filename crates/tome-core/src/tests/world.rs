//! A set of tomes in a world that loses, duplicates and delays messages, crashes tomes and damages
//! blocks, compared with a map of what clients were acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{ByteCount, Controller, Duration, Instant, Outbox, RandomStream, Seed};

use super::nature::{Counts, Known, Nature};
use super::{assemble, split};
use crate::consistency::{Descent, Report};
use crate::group::{Group, Groups};
use crate::message::Message;
use crate::metadata::TomeMetadata;
use crate::offline_read::{self, Holding};
use crate::token::{
    self, Fence, FromTokenManager, ToTokenManager, TokenId, TokenManager, TokenState, token_count,
};
use crate::{
    Alarm, Answer, Command, Event, Layout, Member, Parts, PhysicalBlock, RegionId, RequestId, Tome,
    TomeError, TomeId,
};

/// The request id of every check.
pub(super) const CHECK: RequestId = RequestId(u64::MAX);

/// A tome, its disk and its committed rows.
pub(super) struct Node {
    pub(super) tome: Option<Tome>,
    pub(super) metadata: TomeMetadata,
    pub(super) disk: BTreeMap<PhysicalBlock, Vec<u8>>,
    /// The token under which the disk is spinning.
    pub(super) spinning: Option<TokenId>,
    /// Number of starts of the tome: its disk's answers belong to one of them.
    life: u64,
    /// It is cut off from the network until then.
    pub(super) cut_until: Instant,
    pub(super) restart_at: Option<Instant>,
    /// Blocks written, and the blocks replaced by them that were read first.
    pub(super) writes: usize,
    pub(super) reads: usize,
    reading: BTreeSet<PhysicalBlock>,
    /// When each physical block was last read or written.
    pub(super) last_access: BTreeMap<PhysicalBlock, Instant>,
    /// Spin-ups of its disk, and those without any request or in-flight delta.
    pub(super) spin_ups: usize,
    pub(super) scrub_spin_ups: usize,
}

enum SimEvent {
    Disk { tome: usize, life: u64, event: Event },
    PeerMessage { from: TomeId, to: usize, message: Message },
    ToTokenManager { tome: usize, message: ToTokenManager },
    FromTokenManager { tome: usize, message: FromTokenManager },
}

pub(super) struct World {
    pub(super) now: Instant,
    nature: Nature,
    pub(super) layout: Layout,
    pub(super) groups: Groups,
    pub(super) nodes: Vec<Node>,
    token_manager: TokenManager,
    token_states: BTreeMap<TokenId, TokenState>,
    fence: Fence,
    agenda: BTreeMap<(Instant, u64), SimEvent>,
    sequence: u64,
    pub(super) objects: BTreeMap<(usize, String), (Vec<u8>, Known)>,
    requests: BTreeMap<RequestId, (usize, String)>,
    /// Requests without an answer.
    unanswered: BTreeMap<RequestId, usize>,
    pub(super) stream: RandomStream,
    /// Requests to other members, by tome, start and number.
    holding_requests: BTreeSet<(usize, u64, u64)>,
    /// Results of group checks.
    pub(super) checks: Vec<Answer>,
    /// Whether a metadata store was tampered with.
    is_tampered: bool,
    pub(super) counts: Counts,
}

impl World {
    pub(super) fn new(nature: Nature, seed: u64) -> Self {
        let layout = Layout::new(Parts {
            block: ByteCount::new(256),
            segment: split("4+2"),
            segments: 3,
            regions: 3,
            spares: 60,
        });
        let layout = layout.unwrap();
        let mut groups = Groups::new(split("3+2")).unwrap();
        let node = |number: u32| Node {
            tome: None,
            metadata: TomeMetadata::new(TomeId::new(number), layout),
            disk: BTreeMap::new(),
            spinning: None,
            life: 0,
            cut_until: Instant::ZERO,
            restart_at: Some(Instant::ZERO),
            writes: 0,
            reads: 0,
            reading: BTreeSet::new(),
            last_access: BTreeMap::new(),
            spin_ups: 0,
            scrub_spin_ups: 0,
        };
        for number in 0..nature.tomes {
            groups.add_tome(TomeId::new(number), layout.parts().regions).unwrap();
        }
        groups.populate();
        let mut world = Self {
            now: Instant::ZERO,
            nature: Nature { lost: 0, doubled: 0, crash: 0, cut: 0, bad: 0, ..nature },
            layout,
            groups: groups.clone(),
            nodes: (0..nature.tomes).map(node).collect(),
            token_manager: TokenManager::new(Instant::ZERO, nature.tomes, &BTreeMap::new()),
            token_states: BTreeMap::new(),
            fence: Fence::default(),
            agenda: BTreeMap::new(),
            sequence: 0,
            objects: BTreeMap::new(),
            requests: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            stream: Seed::new(seed).stream(),
            holding_requests: BTreeSet::new(),
            checks: Vec::new(),
            is_tampered: false,
            counts: Counts::default(),
        };
        (0..world.nodes.len()).for_each(|tome| world.start(tome));
        for group in groups.iter() {
            for slot in group.slots() {
                let event = Event::Join { region: slot.index, group: group.clone() };
                world.step(slot.tome.get() as usize, event);
            }
        }
        world.nature = nature;
        world
    }

    fn start(&mut self, tome: usize) {
        let node = &mut self.nodes[tome];
        node.life += 1;
        node.restart_at = None;
        let seed = Seed::new(node.life).child(&tome.to_le_bytes());
        let tome = Tome::new(self.now, node.metadata.clone(), seed).unwrap();
        let tokens = self.nature.tokens_known.then(|| token_count(self.nature.tomes));
        node.tome = Some(match tokens {
            Some(count) => tome.with_token_count(count),
            None => tome,
        });
        self.counts.restarts += 1;
    }

    /// Crashes a tome; its disk stops with it.
    pub(super) fn crash(&mut self, tome: usize) {
        let wait = Duration::from_secs(self.stream.below(300));
        let node = &mut self.nodes[tome];
        (node.tome, node.spinning) = (None, None);
        node.restart_at = Some(self.now + wait);
        self.counts.crashes += 1;
        // Clients do not know the outcome of their requests.
        let lost: Vec<RequestId> = self
            .requests
            .iter()
            .filter(|(_, (owner, _))| *owner == tome)
            .map(|(id, _)| *id)
            .collect();
        lost.iter().for_each(|id| {
            self.requests.remove(id);
        });
    }

    /// Changes a tome's metadata store behind its back and restarts it.
    pub(super) fn tamper(&mut self, tome: usize, row: &crate::metadata::Row) {
        self.is_tampered = true;
        self.crash(tome);
        self.nodes[tome].metadata.apply(row).unwrap();
        self.start(tome);
    }

    pub(super) fn step(&mut self, index: usize, event: Event) {
        let mut out = Outbox::new();
        let Some(tome) = self.nodes[index].tome.as_mut() else { return };
        tome.step(self.now, event, &mut out);
        tome.check();
        let commands: Vec<Command> = out.drain().collect();
        let crashes = !commands.is_empty() && self.chance(self.nature.crash);
        let done = match crashes {
            true => self.below(commands.len() + 1),
            false => commands.len(),
        };
        for command in commands.into_iter().take(done) {
            self.execute(index, command);
        }
        if crashes {
            self.crash(index);
        }
        let node = &self.nodes[index];
        if let Some(tome) = &node.tome {
            assert_eq!(*tome.metadata(), node.metadata, "a tome's state is what it committed");
        }
        self.check_invariants(index);
    }

    fn execute(&mut self, index: usize, command: Command) {
        let from = TomeId::new(u32::try_from(index).unwrap());
        match command {
            Command::Commit(rows) => {
                for row in &rows {
                    self.count_read(index, row);
                    self.nodes[index].metadata.apply(row).unwrap();
                }
            }
            Command::SpinUp { token, epoch } => {
                let before =
                    self.fence.admit(token, epoch, from).expect("the fence admits a valid lease");
                // The previous holder of this token has stopped: its lease was over.
                let is_spinning =
                    before.and_then(|before| self.nodes[before.get() as usize].spinning);
                assert_ne!(is_spinning, Some(token), "two disks spin under one token");
                let is_own = !self.is_wanted(index);
                let node = &mut self.nodes[index];
                node.spinning = Some(token);
                node.spin_ups += 1;
                node.scrub_spin_ups += usize::from(is_own);
                self.counts.spins += 1;
                let fails = self.nature.crash > 0 && self.below(40) == 0;
                self.disk(index, 8_000, if fails { Event::SpinUpFailed } else { Event::SpunUp });
            }
            Command::SpinDown => self.disk(index, 2_000, Event::SpunDown),
            Command::Read { job, physical_blocks } => {
                assert!(self.nodes[index].spinning.is_some(), "a disk is read only while it spins");
                let now = self.now;
                let node = &mut self.nodes[index];
                node.reading = physical_blocks.iter().copied().collect();
                node.last_access.extend(physical_blocks.iter().map(|block| (*block, now)));
                let read = |block| self.nodes[index].disk.get(block).cloned();
                let blocks = physical_blocks.iter().map(read).collect();
                self.disk(index, 40, Event::Read { job, blocks });
            }
            Command::ReadObject { job, physical_blocks, wanted } => {
                assert!(self.nodes[index].spinning.is_some(), "a disk is read only while it spins");
                let whole = assemble(&self.nodes[index].disk, &physical_blocks, wanted);
                self.disk(index, 40, Event::ObjectRead { job, whole });
            }
            Command::Write { physical_block, bytes } => {
                assert!(self.nodes[index].spinning.is_some(), "writes need a spinning disk");
                let now = self.now;
                let node = &mut self.nodes[index];
                node.writes += 1;
                node.last_access.insert(physical_block, now);
                node.disk.insert(physical_block, bytes);
            }
            Command::Send { to, message } => {
                if let Message::HoldingsWanted { round, .. } = message {
                    let life = self.nodes[index].life;
                    let is_new = self.holding_requests.insert((index, life, round));
                    self.counts.asked += u32::from(is_new);
                }
                let to = to.get() as usize;
                self.send(|| SimEvent::PeerMessage { from, to, message: message.clone() });
            }
            Command::TokenManager(message) => {
                self.send(|| SimEvent::ToTokenManager { tome: index, message });
            }
            Command::Answer { request, answer } => self.handle_answer(index, request, answer),
            Command::Alarm(Alarm::Healed { blocks, .. }) => self.counts.healed += blocks,
            // The group could not supply it yet, and is asked again.
            Command::Alarm(Alarm::ChangeLost { .. }) => self.counts.changes_lost += 1,
            Command::Alarm(Alarm::Rebuilt { .. }) => self.counts.rebuilt += 1,
            Command::Alarm(Alarm::RebuildDropped { .. }) => self.counts.dropped += 1,
            Command::Alarm(Alarm::SlotLost { .. }) => self.counts.slots_lost += 1,
            Command::Alarm(Alarm::SegmentLost { .. }) => self.counts.lost_segments += 1,
            Command::Alarm(alarm) => panic!("tome {index}: {alarm:?}"),
        }
    }

    /// A block is rewritten: counts whether its previous content was read for it.
    fn count_read(&mut self, tome: usize, row: &crate::metadata::Row) {
        let node = &mut self.nodes[tome];
        if let crate::metadata::Row::Block { region, offset, .. } = row {
            let old =
                node.metadata.region(*region).and_then(|region| region.physical_block(*offset));
            node.reads += usize::from(old.is_some_and(|old| node.reading.contains(&old)));
        }
    }

    fn disk(&mut self, tome: usize, ms: u64, event: Event) {
        self.sequence += 1;
        let life = self.nodes[tome].life;
        let happening = SimEvent::Disk { tome, life, event };
        self.agenda.insert((self.now + Duration::from_millis(ms), self.sequence), happening);
    }

    fn send(&mut self, happening: impl Fn() -> SimEvent) {
        let copies = match self.stream.below(1000) {
            chance if chance < self.nature.lost => 0,
            chance if chance < self.nature.lost + self.nature.doubled => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let slow = self.nature.lost > 0 && self.below(20) == 0;
            let ms = if slow { self.stream.below(90_000) } else { self.stream.below(20) };
            self.sequence += 1;
            let at = self.now + Duration::from_millis(ms);
            self.agenda.insert((at, self.sequence), happening());
        }
    }

    /// Whether a tome's disk is needed for a request or for in-flight deltas.
    fn is_wanted(&self, index: usize) -> bool {
        let mut regions = self.nodes[index].metadata.regions();
        let is_under_way = |region: &crate::metadata::Region| {
            region.pending().is_some_and(|pending| !pending.is_empty())
                || region.stored().any(|(_, _, stored)| !stored.is_applied)
        };
        self.unanswered.values().any(|tome| *tome == index)
            || regions.any(|(_, region)| is_under_way(region))
    }

    /// Bytes that some parity lacks.
    pub(super) fn unprotected(&self) -> u64 {
        let tomes = self.nodes.iter().filter_map(|node| node.tome.as_ref());
        tomes.map(|tome| tome.unprotected().bytes.get()).sum()
    }

    fn handle_answer(&mut self, index: usize, request: RequestId, answer: Answer) {
        self.unanswered.remove(&request);
        if request == CHECK {
            self.checks.push(answer);
            return;
        }
        let Some((tome, name)) = self.requests.get(&request).cloned() else { return };
        assert_eq!(tome, index);
        let key = (tome, name);
        let Some((bytes, known)) = self.objects.get_mut(&key) else { return };
        match answer {
            Answer::Local => {
                *known = Known::Local;
                self.counts.local += 1;
            }
            Answer::Protected => {
                assert!(matches!(known, Known::Local | Known::Removing));
                if *known == Known::Local {
                    *known = Known::Protected;
                }
                self.counts.protected += 1;
            }
            Answer::Bytes(read) => {
                assert_eq!(read, *bytes, "object {key:?}");
                self.counts.read += 1;
            }
            Answer::Deleted => {
                self.objects.remove(&key);
            }
            Answer::Checked { .. } | Answer::Adopted | Answer::Held { .. } | Answer::Scrubbed => {
                panic!("unexpected answer about an object")
            }
            Answer::Refused(TomeError::Full { .. } | TomeError::Backlog { .. }) => {
                self.objects.remove(&key);
            }
            // It was removed while a client was reading it.
            Answer::Refused(TomeError::NoObject { .. }) => assert_eq!(*known, Known::Removing),
            // Too much of its segment is bad, until the group has recovered it.
            Answer::Refused(TomeError::SegmentLost { .. }) if self.counts.lost_segments > 0 => {
                if *known == Known::Asked {
                    self.objects.remove(&key);
                }
            }
            Answer::Refused(error) => panic!("object {key:?}: {error}"),
        }
    }

    /// Runs until this much time has passed.
    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let deadlines = self.nodes.iter().enumerate().filter_map(|(tome, node)| {
                let deadline = match &node.tome {
                    Some(tome) => tome.deadline(),
                    None => node.restart_at,
                };
                // A due timer fires, but not before some time could have passed.
                Some((deadline?.max(self.now + Duration::from_millis(100)), tome))
            });
            let timer = deadlines.min();
            let token_manager = self.token_manager.deadline().map(|at| at.max(self.now));
            let first = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let earliest =
                [timer.map(|(at, _)| at), token_manager, first].into_iter().flatten().min();
            let Some(at) = earliest.filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            if first == Some(at) {
                let (_, happening) = self.agenda.pop_first().unwrap();
                self.deliver(happening);
            } else if token_manager == Some(at) {
                self.step_token_manager(token::Event::Timer);
                self.now = self.now + Duration::from_millis(1);
            } else if let Some((_, tome)) = timer {
                match self.nodes[tome].tome {
                    Some(_) => self.step(tome, Event::Timer),
                    None => self.start(tome),
                }
            }
        }
        self.now = until;
    }

    fn deliver(&mut self, happening: SimEvent) {
        let is_cut = |world: &Self, tome: usize| world.nodes[tome].cut_until > world.now;
        match happening {
            SimEvent::Disk { tome, life, event } => {
                if self.nodes[tome].life != life || self.nodes[tome].tome.is_none() {
                    return;
                }
                if matches!(event, Event::SpunDown | Event::SpinUpFailed) {
                    self.nodes[tome].spinning = None;
                }
                self.step(tome, event);
            }
            SimEvent::PeerMessage { from, to, message } => {
                if !is_cut(self, from.get() as usize) && !is_cut(self, to) {
                    self.step(to, Event::Received { from, message });
                }
            }
            SimEvent::ToTokenManager { tome, message } if !is_cut(self, tome) => {
                let tome = TomeId::new(u32::try_from(tome).unwrap());
                self.step_token_manager(token::Event::Received { tome, message });
            }
            SimEvent::FromTokenManager { tome, message } if !is_cut(self, tome) => {
                self.step(tome, Event::TokenManager(message));
            }
            SimEvent::ToTokenManager { .. } | SimEvent::FromTokenManager { .. } => {}
        }
    }

    fn step_token_manager(&mut self, event: token::Event) {
        let mut out = Outbox::new();
        self.token_manager.step(self.now, event, &mut out);
        self.token_manager.check();
        for command in out.drain() {
            match command {
                token::Command::Commit { token, state } => {
                    self.token_states.insert(token, state);
                }
                token::Command::Send { tome, message } => {
                    let tome = tome.get() as usize;
                    self.send(|| SimEvent::FromTokenManager { tome, message });
                }
            }
        }
    }

    /// Asserts what holds after every step.
    fn check_invariants(&mut self, index: usize) {
        let spinning: Vec<TokenId> = self.nodes.iter().filter_map(|node| node.spinning).collect();
        let distinct: BTreeSet<TokenId> = spinning.iter().copied().collect();
        assert_eq!(distinct.len(), spinning.len(), "no token has two holders");
        assert!(spinning.len() <= token_count(self.nature.tomes) as usize);
        self.counts.peak = self.counts.peak.max(spinning.len());
        for (_, region) in self.nodes[index].metadata.regions().filter(|_| !self.is_tampered) {
            if !self.is_current(region) {
                continue;
            }
            let descent = self.check(region.group());
            assert_eq!(descent.wants(), None, "parity agrees, except for listed deltas");
            assert_eq!(descent.findings(), []);
        }
    }

    /// Whether a region has its member slot and knows of the last move in its group.
    fn is_current(&self, region: &crate::metadata::Region) -> bool {
        let group = region.group();
        let knows = |node: &Node| {
            let known = node.metadata.region_of(group.id());
            known.is_some_and(|(_, other)| {
                other.building().is_none() && other.group().epoch() > group.epoch()
            })
        };
        let holds_slot = region.is_member() || region.frozen().is_some();
        holds_slot && !self.nodes.iter().any(knows)
    }

    /// Stops a tome for good; a test may restart it.
    pub(super) fn kill(&mut self, tome: usize) {
        self.crash(tome);
        self.nodes[tome].restart_at = None;
    }

    fn region(&self, slot: &RegionId) -> Option<&crate::metadata::Region> {
        self.nodes[slot.tome.get() as usize].metadata.region(slot.index)
    }

    /// Compares the roots of a group.
    pub(super) fn check(&self, group: &Group) -> Descent {
        let zeros = || Report {
            epoch: crate::Epoch::default(),
            root: fulgurite_codes::Signature::ZERO,
            side: crate::consistency::Side::Data {
                latest: crate::Version::NONE,
                unconfirmed: Vec::new(),
            },
        };
        let reports: Vec<Option<Report>> =
            group.slots().iter().map(|slot| Some(self.region(slot)?.report())).collect();
        let reports = match reports.iter().all(Option::is_some) {
            true => reports.into_iter().flatten().collect(),
            // The set is still being made.
            false => {
                let folded = vec![crate::consistency::AppliedSummary::default(); 3];
                let parity = Report { side: crate::consistency::Side::Parity(folded), ..zeros() };
                vec![zeros(), zeros(), zeros(), parity.clone(), parity]
            }
        };
        Descent::new(group.split(), self.layout, &reports).unwrap()
    }

    pub(super) fn chance(&mut self, in_a_thousand: u64) -> bool {
        in_a_thousand > 0 && self.stream.below(1000) < in_a_thousand
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.stream.below(bound as u64)).unwrap()
    }

    /// Lets a client or a fault act.
    pub(super) fn stir(&mut self) {
        let tome = self.below(self.nodes.len());
        let metadata = self.nodes[tome].tome.is_some();
        let names: Vec<String> = self
            .objects
            .keys()
            .filter(|(owner, _)| *owner == tome)
            .map(|(_, name)| name.clone())
            .collect();
        match self.below(10) {
            0..5 if metadata => self.put(tome),
            5..8 if metadata && !names.is_empty() => {
                let name = names[self.below(names.len())].clone();
                self.get(tome, &name);
            }
            8 if metadata && !names.is_empty() => {
                let name = names[self.below(names.len())].clone();
                self.delete(tome, &name);
            }
            _ => {}
        }
        if self.chance(self.nature.cut) {
            let minutes = 1 + self.stream.below(20);
            self.nodes[tome].cut_until = self.now + Duration::from_secs(60 * minutes);
        }
        if self.chance(self.nature.bad) {
            self.spoil(tome);
        }
    }

    fn request(&mut self, tome: usize, name: &str) -> RequestId {
        self.sequence += 1;
        let request = RequestId(self.sequence);
        self.requests.insert(request, (tome, name.to_owned()));
        self.unanswered.insert(request, tome);
        request
    }

    pub(super) fn put(&mut self, tome: usize) {
        let length = 1 + self.below(256 * 4);
        let bytes = super::block(length, &mut self.stream);
        let name = format!("object {}", self.sequence);
        let request = self.request(tome, &name);
        self.objects.insert((tome, name.clone()), (bytes.clone(), Known::Asked));
        self.step(tome, Event::Put { request, name, bytes, avoided: BTreeSet::new() });
    }

    /// Gives a rebuilt region its objects, as a set would: those of the lost tome whose blocks are
    /// there. Returns how many were not.
    pub(super) fn adopt(&mut self, moved: &crate::group::Move) -> usize {
        let (from, to) = (moved.from.tome.get() as usize, moved.to.tome.get() as usize);
        let of_region = |object: &crate::metadata::Object| {
            object.blocks.iter().all(|(region, _)| *region == moved.from.index)
        };
        let lost = self.nodes[from].metadata.clone();
        let region = self.nodes[to].metadata.region(moved.to.index).unwrap().clone();
        let (mut objects, mut missing) = (Vec::new(), 0);
        for (name, object) in lost.objects().filter(|(_, object)| of_region(object)) {
            let is_there = object.blocks.iter().all(|(index, offset)| {
                let original = lost.region(*index).unwrap().tree().block(*offset);
                region.tree().block(*offset) == original
            });
            let key = (from, name.to_owned());
            let Some((bytes, known)) = self.objects.remove(&key) else { continue };
            if !is_there {
                assert_ne!(known, Known::Protected, "{name} is protected, and was lost");
                missing += 1;
                continue;
            }
            let blocks = object.blocks.iter().map(|(_, offset)| (moved.to.index, *offset));
            let adopted = crate::metadata::Object { blocks: blocks.collect(), ..object.clone() };
            objects.push((name.to_owned(), adopted));
            if known != Known::Removing {
                self.objects.insert((to, name.to_owned()), (bytes, Known::Protected));
            }
        }
        self.sequence += 1;
        let request = RequestId(self.sequence);
        self.step(to, Event::Adopt { request, region: moved.to.index, objects });
        missing
    }

    pub(super) fn get(&mut self, tome: usize, name: &str) {
        if matches!(self.objects[&(tome, name.to_owned())].1, Known::Local | Known::Protected) {
            let request = self.request(tome, name);
            self.step(tome, Event::Get { request, name: name.to_owned() });
        }
    }

    fn delete(&mut self, tome: usize, name: &str) {
        let (_, known) = self.objects.get_mut(&(tome, name.to_owned())).unwrap();
        if matches!(known, Known::Local | Known::Protected) {
            *known = Known::Removing;
            let request = self.request(tome, name);
            self.step(tome, Event::Delete { request, name: name.to_owned() });
        }
    }

    /// Reads all objects.
    pub(super) fn read_all(&mut self) {
        let all: Vec<(usize, String)> = self.objects.keys().cloned().collect();
        for (tome, name) in all {
            self.get(tome, &name);
        }
    }

    /// Returns what the surviving tomes know of an offset of a group.
    fn holdings(
        &self,
        group: &Group,
        offset: crate::Offset,
        gone: &BTreeSet<usize>,
    ) -> Result<Vec<Holding>, TomeError> {
        let left = group.slots().iter().map(|slot| slot.tome.get() as usize);
        left.filter(|tome| !gone.contains(tome))
            .map(|tome| {
                let node = &self.nodes[tome];
                let mut read =
                    |physical_block: PhysicalBlock| node.disk.get(&physical_block).cloned();
                offline_read::holding(&node.metadata, group.id(), offset, &mut read)
            })
            .collect()
    }

    /// Recovers an object of a lost tome from its groups.
    pub(super) fn recover(
        &self,
        tome: usize,
        name: &str,
        gone: &BTreeSet<usize>,
    ) -> Result<Vec<u8>, TomeError> {
        // Any copy of its index tells where its blocks were; here, its own does.
        let metadata = &self.nodes[tome].metadata;
        let object = metadata.object(name).unwrap();
        let mut bytes = Vec::new();
        for (index, offset) in &object.blocks {
            let region = metadata.region(*index).unwrap();
            let (group, member): (_, Member) = (region.group(), region.member());
            let holdings = self.holdings(group, *offset, gone)?;
            bytes.extend(offline_read::recover(group.id(), group.split(), member, &holdings)?);
        }
        bytes.truncate(usize::try_from(object.bytes).unwrap());
        Ok(bytes)
    }

    /// Turns off all faults.
    pub(super) fn calm(&mut self) {
        self.nature = Nature { tomes: self.nature.tomes, ..Nature::CALM };
        for node in &mut self.nodes {
            node.cut_until = Instant::ZERO;
        }
    }
}
