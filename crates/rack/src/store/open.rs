//! Creates and opens racks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fulgurite_disks::{Backend, GroupId, Guard, LedgerFile, Pacer, PlaceId, make_folder};
use fulgurite_rack_core::{Assignment, Code, Policy, Rack, Shape, SpinUps, check, solve};
use fulgurite_units::{ByteCount, Clock, RackId};
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::read_repairs::ReadRepairs;
use super::staging::Staging;
use super::{Inner, RackStore, Writes};
use crate::blob::ReadMode;
use crate::driver::{Driver, Kind, Parts, Task};
use crate::format::Coding;
use crate::index::Index;
use crate::scrub::{ScrubPolicy, Scrubs};
use crate::work::{
    CompleteBlobs, DiskContext, Group, Injected, PlacementPolicy, Places, Room, Starts,
    UnrepairedBlobs, disk_name, initialize,
};
use crate::{Entropy, FailPoints};
use crate::{RackError, Result};

/// Folder of the index, in the directory of a rack.
const INDEX: &str = "index";

/// How a rack is created, rather than only opened.
#[derive(Clone, Copy, Debug)]
enum New {
    /// A new rack with this id; an existing one is completed.
    Init(RackId),
    /// An existing rack with this id, whose index was lost.
    Adopt(RackId),
}

/// Options for opening a rack.
#[derive(Debug)]
pub struct RackOptions {
    /// Directory of its index, its ledger and staged files, on a disk that is always on.
    pub directory: PathBuf,
    /// Its shape: disks, groups and code.
    pub shape: Shape,
    /// Policy of its controller.
    pub policy: Policy,
    /// Root directory of each place's disk.
    pub roots: BTreeMap<PlaceId, PathBuf>,
    /// Controls the disks.
    pub backend: Arc<dyn Backend>,
    /// The one clock.
    pub clock: Clock,
    /// Source of ids.
    pub entropy: Entropy,
    /// How often each group is verified.
    pub scrub: ScrubPolicy,
    /// Spin-ups that a disk is rated for over its life, if known. Disks that come near it are
    /// reported.
    pub rated_spin_ups: Option<u64>,
    /// Fail point at which the process is killed, for tests.
    pub fail: FailPoints,
    /// Injected faults of disks, for tests.
    pub injected: Injected,
}

impl RackStore {
    /// Creates a rack: its index, and an identity file on each disk. Idempotent; completes a
    /// creation that was cut short. Disks that belong to another rack are reported and not changed.
    ///
    /// # Errors
    /// [`RackError::WrongDisk`] for those, and all of [`Self::open`].
    pub fn init(options: RackOptions) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let rack = RackId::from_random(options.entropy.draw());
            let store = Self::start(options, Some(New::Init(rack)))?;
            let (_, refused) = store.init_groups().await?;
            if refused.is_empty() {
                return Ok(store);
            }
            // Frees the rack, so that a retry can open it.
            store.stop();
            Err(RackError::WrongDisk { detail: refused.join("; ") })
        })
    }

    /// Creates a new index for the disks of a rack whose index was lost. [`Self::recover`] then
    /// finds what is on them; their files name the rack. Disks that do not come up or belong to
    /// another rack are reported in the log and the status and not changed; the rack works without
    /// them.
    ///
    /// # Errors
    /// [`RackError::WrongDisk`] when no disk can be taken, [`RackError::Invalid`] when there is
    /// an index of another rack that knows disks, and all of [`Self::open`].
    pub fn adopt(options: RackOptions, rack: RackId) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let store = Self::start(options, Some(New::Adopt(rack)))?;
            let (taken, refused) = store.init_groups().await?;
            for detail in &refused {
                tracing::error!("a disk is not used: {detail}");
            }
            if taken > 0 || refused.is_empty() {
                return Ok(store);
            }
            store.stop();
            Err(RackError::WrongDisk { detail: refused.join("; ") })
        })
    }

    /// Opens an existing rack. No disk is accessed before the first request.
    ///
    /// # Errors
    /// When there is none, another program has it open, or it was created with another shape.
    pub fn open(options: RackOptions) -> Result<Self> {
        Self::start(options, None)
    }

    /// Whether the index in `directory` has the id of its rack. If not, no disk belongs to it: its
    /// creation was cut short, or there is no rack.
    ///
    /// # Errors
    /// When the index cannot be opened, for example because another program has it open.
    pub fn is_begun(directory: &Path) -> Result<bool> {
        let path = directory.join(INDEX);
        if !path.try_exists().map_err(RackError::io("find", &path))? {
            return Ok(false);
        }
        on_own_thread(|| Ok(Index::open(&path)?.rack()?.is_some()))
    }

    /// Opens an existing rack, or creates it if `new` is given. Runs on a thread of its own, as the
    /// caller may be async code that must not block on the committer.
    fn start(options: RackOptions, new: Option<New>) -> Result<Self> {
        on_own_thread(|| Self::begin(options, new))
    }

    fn begin(options: RackOptions, new: Option<New>) -> Result<Self> {
        let code = options.shape.code();
        let coding = coding(code)?;
        let assignment = solve(&options.shape)?;
        check(&options.shape, &assignment)?;
        let directory = &options.directory;
        if new.is_some() {
            make_folder(directory).map_err(RackError::io("make", directory))?;
        }
        let index = open_index((directory, &options.fail), new, coding, &options.clock)?;
        let rack = index.0;
        let index = Arc::new(index.1);
        let mut ledger = open_ledger(&options.directory)?;
        let starts = Starts::begin(&index, &mut ledger)?;
        index.abandon_intents()?;
        let (guard, places) = guarded(&options, &assignment, &index)?;
        let choose = Box::new(SetPlacement { code, sets: all_sets(&assignment) });
        let rated_spin_ups = options.rated_spin_ups;
        let RackOptions { shape, policy, backend, clock, entropy, fail, injected, scrub, .. } =
            options;
        let complete = CompleteBlobs::default();
        let clock_too = clock.clone();
        let reads = match policy.spin_ups {
            SpinUps::All => ReadMode::All,
            SpinUps::Needed { .. } => ReadMode::Enough,
        };
        let ctx = Arc::new(DiskContext {
            rack,
            guard,
            index,
            fail,
            injected,
            choose,
            reads,
            places,
            complete,
            starts,
            unrepaired: UnrepairedBlobs::default(),
            clock: clock_too,
        });
        let staging = Staging::open(options.directory.join("staging"))?;
        let groups = assignment.groups().collect();
        let watts = shape.watts();
        let scrubs = scrubs(&ctx, &assignment, scrub, &clock)?;
        let mut rack = Rack::new(&shape, assignment.clone(), policy);
        remember(&mut rack, &ledger, &clock);
        let driver = Driver::start(Parts {
            rack,
            assignment,
            ctx: Arc::clone(&ctx),
            backend,
            ledger,
            clock: clock.clone(),
            watts,
            scrubs,
            rated_spin_ups,
        })?;
        let writes = Mutex::new(Writes::default());
        let read_repairs = ReadRepairs::default();
        Ok(Self(Arc::new(Inner {
            ctx,
            driver,
            staging,
            clock,
            entropy,
            coding,
            groups,
            writes,
            read_repairs,
        })))
    }

    /// Initializes the new disks of all groups. Returns how many disks belong to the rack then, and
    /// the failures of the others.
    async fn init_groups(&self) -> Result<(usize, Vec<String>)> {
        let mut waiting = Vec::new();
        for &group in &self.inner().groups {
            waiting.push((group, self.init_group(group)?));
        }
        let mut refused = Vec::new();
        for (group, made) in waiting {
            match made.await.unwrap_or(Err(RackError::Stopping)) {
                Ok(_) => {}
                Err(RackError::Stopping) => return Err(RackError::Stopping),
                Err(error) => refused.push(format!("group {group}: {error}")),
            }
        }
        refused.extend(self.untaken_reasons().await?);
        Ok((self.inner().ctx.places.count_known(), refused))
    }

    /// Returns the failures of the disks that do not belong to the rack yet.
    pub(super) async fn untaken_reasons(&self) -> Result<Vec<String>> {
        let groups = self.status().await?.groups;
        let disks = groups.into_iter().flat_map(|group| group.disks);
        let new = disks.filter(|disk| self.inner().ctx.places.is_new(disk.place));
        let reasons = new.map(|disk| {
            let failure = disk.failure.unwrap_or_else(|| "it did not come up".to_owned());
            format!("{}: {failure}", disk_name(disk.place))
        });
        Ok(reasons.collect())
    }

    /// Submits the initialization of a group's new disks.
    pub(super) fn init_group(&self, group: GroupId) -> Result<oneshot::Receiver<Result<usize>>> {
        let (send, made) = oneshot::channel();
        let inner = Arc::clone(self.inner());
        let work = move |ready: Result<&Group>| {
            let draw = || inner.entropy.draw();
            let _ = send.send(ready.and_then(|ready| initialize(inner.ctx(), ready, &draw)));
        };
        let (kind, bytes) = (Kind::Init, ByteCount::ZERO);
        let work = Box::new(work);
        let task = Task { group, kind, bytes, due: None, needs: None, work };
        self.inner().driver.submit(task)?;
        Ok(made)
    }
}

/// Runs a call that blocks on the committer on a thread of its own.
fn on_own_thread<T: Send>(open: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let opened = std::thread::scope(|scope| scope.spawn(open).join());
    opened.map_err(|_| RackError::Internal { detail: "opening the rack panicked".to_owned() })?
}

/// Opens the ledger of spin-ups, or begins a new one if it is damaged.
fn open_ledger(directory: &Path) -> Result<LedgerFile> {
    let (ledger, reloaded) = LedgerFile::open_or_quarantine(&directory.join("ledger"))?;
    if let Some((aside, problem)) = &reloaded.set_aside {
        tracing::error!(
            "the spin-up ledger is damaged ({problem}): it is {aside:?} now, and a new one \
             starts with what could be read of it"
        );
    }
    if reloaded.torn_bytes > 0 {
        tracing::warn!(
            bytes = reloaded.torn_bytes,
            "dropped a torn last line of the spin-up ledger"
        );
    }
    Ok(ledger)
}

/// Restores the spin-ups of the last day into the controller, for its budgets.
fn remember(rack: &mut Rack, ledger: &LedgerFile, clock: &Clock) {
    let now = clock.now();
    for (place, totals) in ledger.ledger().places() {
        let spin_ups = totals.hours().map(|(end, count)| (now.since(end), count));
        rack.record_past_spin_ups(clock.passed(), place, spin_ups);
    }
}

/// Returns the coding for a shape's code.
fn coding(code: Code) -> Result<Coding> {
    let part = |count: u32| u8::try_from(count).unwrap_or(u8::MAX);
    Coding::new(part(code.data), part(code.redundancy))
}

/// Creates the verification schedule from the rows of the index.
fn scrubs(
    ctx: &DiskContext,
    assignment: &Assignment,
    policy: ScrubPolicy,
    clock: &Clock,
) -> Result<Scrubs> {
    let groups: Vec<GroupId> = assignment.groups().collect();
    let rows = ctx.index.scrubs(&groups, clock.now().as_millis())?;
    let known = groups.into_iter().zip(rows);
    let known = known.map(|(group, row)| (group, assignment.class_of(group).get(), row));
    Ok(Scrubs::new(policy, known))
}

/// Opens the index of an existing rack or creates one. Returns it with the rack's id.
fn open_index(
    (directory, fail): (&Path, &FailPoints),
    new: Option<New>,
    coding: Coding,
    clock: &Clock,
) -> Result<(RackId, Index)> {
    let path = directory.join(INDEX);
    let is_there = path.try_exists().map_err(RackError::io("find", &path))?;
    if !is_there && new.is_none() {
        let detail = format!("there is no rack in {directory:?}: it has no index");
        return Err(RackError::Invalid { detail });
    }
    let index = Index::open(&path)?.with_clock(clock.clone());
    fail.pass("rack-index-made");
    let rack = match (index.rack()?, new) {
        (Some(found), Some(New::Adopt(rack))) if found.rack != rack => {
            index.claim_empty(found.rack, rack, coding)?;
            rack
        }
        (Some(found), _) => found.rack,
        (None, Some(New::Init(rack) | New::Adopt(rack))) => rack,
        (None, None) => return Err(RackError::Incomplete { folder: directory.to_owned() }),
    };
    index.claim(rack, coding)?;
    Ok((rack, index))
}

/// Creates the guard with all places, and checks that no two share a directory.
fn guarded(
    options: &RackOptions,
    assignment: &Assignment,
    index: &Index,
) -> Result<(Guard, Places)> {
    let invalid = |detail: String| Err(RackError::Invalid { detail });
    let (guard, places) = (Guard::new(), Places::default());
    let disks: BTreeMap<PlaceId, _> = index.disks()?.into_iter().collect();
    let rooms: BTreeMap<PlaceId, _> = index.rooms()?.into_iter().collect();
    let pacer = options.backend.pace().map(|pace| Pacer::new(options.clock.clone(), pace));
    let mut taken: BTreeMap<&Path, PlaceId> = BTreeMap::new();
    for place in options.shape.places() {
        let slot = assignment.slot(place);
        let group = slot.group;
        let Some(root) = options.roots.get(&place) else {
            return invalid(format!("place {place} has no directory"));
        };
        if let Some(other) = taken.insert(root, place) {
            return invalid(format!(
                "places {other} and {place} have the same directory, {root:?}"
            ));
        }
        match &pacer {
            Some(pacer) => guard.add_paced(place, root.clone(), pacer.clone()),
            None => guard.add(place, root.clone()),
        }
        places.add(place, group, disks.get(&place).cloned(), rooms.get(&place).copied());
    }
    if options.roots.len() > taken.len() {
        let (configured, expected) = (options.roots.len(), taken.len());
        return invalid(format!(
            "{configured} directories are configured, but the rack has {expected} places"
        ));
    }
    Ok((guard, places))
}

fn all_sets(assignment: &Assignment) -> Vec<Vec<PlaceId>> {
    assignment.groups().flat_map(|group| assignment.sets(group).to_vec()).collect()
}

/// Spreads stacks evenly over the sets of a group, preferring disks with the most free space.
#[derive(Debug)]
struct SetPlacement {
    code: Code,
    sets: Vec<Vec<PlaceId>>,
}

impl PlacementPolicy for SetPlacement {
    fn choose(&self, rooms: &[Room], taken: &[PlaceId], count: usize) -> Vec<PlaceId> {
        let room_of = |place: &PlaceId| rooms.iter().find(|room| room.place == *place);
        let is_here = |set: &&Vec<PlaceId>| set.iter().any(|place| room_of(place).is_some());
        let here: Vec<&Vec<PlaceId>> = self.sets.iter().filter(is_here).collect();
        if taken.is_empty() && count == usize::try_from(self.code.width()).unwrap_or(usize::MAX) {
            return self.complete(&here, rooms);
        }
        // For a few stacks: each goes to the set with the fewest stacks of the blob, and there to
        // the disk with the most free space.
        let mut chosen: Vec<PlaceId> = Vec::new();
        while chosen.len() < count {
            let stack_count = |set: &Vec<PlaceId>| {
                set.iter().filter(|place| taken.contains(place) || chosen.contains(place)).count()
            };
            let free = |set: &Vec<PlaceId>| {
                let open =
                    set.iter().filter(|place| !taken.contains(place) && !chosen.contains(place));
                open.filter_map(room_of).max_by_key(|room| room.free).copied()
            };
            let best = here.iter().filter_map(|set| Some((stack_count(set), free(set)?)));
            let best = best.min_by_key(|(count, room)| (*count, std::cmp::Reverse(room.free)));
            let Some((_, room)) = best else { break };
            chosen.push(room.place);
        }
        chosen
    }
}

impl SetPlacement {
    fn complete(&self, here: &[&Vec<PlaceId>], rooms: &[Room]) -> Vec<PlaceId> {
        let sets: Vec<Vec<PlaceId>> = here.iter().map(|set| (*set).clone()).collect();
        let spare =
            |place: PlaceId| rooms.iter().find(|room| room.place == place).map(|room| room.free);
        let placed = fulgurite_rack_core::place(&sets, self.code, ByteCount::ZERO, spare);
        let Some(placed) = placed else { return Vec::new() };
        if !placed.is_set_tolerant {
            tracing::debug!("a blob would not survive the loss of a whole set of its disks");
        }
        placed.places
    }
}
