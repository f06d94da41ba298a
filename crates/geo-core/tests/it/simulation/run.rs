//! One run from its plan to its verdict.

use std::sync::Arc;

use fulgurite_geo_core::{
    Change, Coded, Collect, Condition, Data, Fragment, Heal, HealPolicy, Operation, Put, Read,
    ReadResult, ReadTarget, Restore, Retention, SiteIndex, Sweep, SweepResult, Value, Write,
    WriteId, WriteResult,
};
use fulgurite_units::{Seed, UnixTime};

use super::history::{Entry, Observation};
use super::plan::Plan;
use super::world::{Running, World};

/// A planted fault that must be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A fast quorum that two values can both reach.
    SmallQuorum,
    /// A site that lost its rows votes as if it had never had any.
    ForgottenVotes,
    /// A site that does not answer counts as one without the fragment.
    UnknownIsAbsent,
}

impl Fault {
    pub(super) const ALL: [Self; 3] =
        [Self::SmallQuorum, Self::ForgottenVotes, Self::UnknownIsAbsent];
}

/// Totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) acknowledged: usize,
    pub(super) reads: usize,
    pub(super) refused: usize,
    pub(super) unavailable: usize,
    pub(super) indeterminate: usize,
    pub(super) crashed: usize,
    pub(super) replaced: usize,
    pub(super) lost_messages: usize,
    pub(super) healed: usize,
    pub(super) swept: usize,
    pub(super) collected: usize,
    pub(super) rounds: usize,
    pub(super) hash: u64,
}

impl Totals {
    pub(super) fn mix(&mut self, number: u64) {
        self.hash = (self.hash ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.reads += other.reads;
        self.refused += other.refused;
        self.unavailable += other.unavailable;
        self.indeterminate += other.indeterminate;
        self.crashed += other.crashed;
        self.replaced += other.replaced;
        self.lost_messages += other.lost_messages;
        self.healed += other.healed;
        self.swept += other.swept;
        self.collected += other.collected;
        self.rounds += other.rounds;
        self.mix(other.hash);
    }
}

/// A client: its nearest site, and its operation.
#[derive(Clone, Debug)]
struct Client {
    near: usize,
    busy: Option<(u64, u64)>,
    left: usize,
}

/// Runs a plan.
///
/// # Errors
/// What went wrong.
pub(super) fn run(plan: &Plan) -> Result<Totals, String> {
    let random = Seed::new(plan.seed).child(b"run").stream();
    let mut world = World::new(plan.clone(), random);
    let mut clients: Vec<Client> = (0..plan.clients)
        .map(|_| Client { near: world.draw_index(plan.sites), busy: None, left: plan.operations })
        .collect();
    let span = plan.delay_ms * 1_000_000 * 10 * plan.operations as u64;
    for _ in 0..plan.failures {
        let (site, length) = (world.draw_index(plan.sites), 1 + world.random.below(span / 3));
        let after = world.random.below(span);
        world.fail_site(site_index(site), after, length);
    }
    // If all sites must promise, a lost one cannot be replaced while a version is open.
    let quorums =
        fulgurite_geo_core::Quorums::new(plan.sites, plan.sizes).map_err(|e| e.to_string())?;
    if plan.replace && quorums.promise() < plan.sites {
        let (site, after) = (world.draw_index(plan.sites), world.random.below(span));
        world.replace_site(site_index(site), after);
    }
    for client in &mut clients {
        begin(&mut world, client);
    }
    let mut events = 0_u64;
    while clients.iter().any(|client| client.busy.is_some()) {
        if !world.run_next_event()? {
            return Err("no events are left, but operations have not ended".into());
        }
        events += 1;
        if events > 2_000_000 {
            return Err("the run does not end".into());
        }
        end_all(&mut world, &mut clients)?;
        kill_some(&mut world, &mut clients);
    }
    heal(&mut world)?;
    world.history.check()?;
    Ok(world.totals)
}

fn site_index(site: usize) -> SiteIndex {
    SiteIndex(u8::try_from(site).unwrap())
}

/// Starts a client's next operation, if any is left.
fn begin(world: &mut World, client: &mut Client) {
    client.busy = None;
    if client.left == 0 {
        return;
    }
    client.left -= 1;
    let key = world.random.below(world.plan.keys);
    let (terms, random) = (world.terms(client.near), world.child());
    let began = world.now;
    let running = match world.random.below(20) {
        0..8 => {
            let condition = match world.random.below(4) {
                0 => Condition::Absent,
                _ => Condition::Always,
            };
            let value = put(world);
            write(world, (key, terms), (value, condition), random)
        }
        8..10 if world.plan.failures + world.plan.clients > 1 => {
            let value = value(world, Change::Delete);
            write(world, (key, terms), (value, Condition::Present), random)
        }
        10 if world.plan.clients > 1 => {
            Running::Heal(Box::new(Heal::new(terms, policy(&world.plan), time(world.now), random)))
        }
        11 if world.plan.clients > 1 => {
            Running::Collect(Box::new(Collect::new(terms, keep(world), random)))
        }
        12..14 => Running::Read(Box::new(Read::new(terms, ReadTarget::Metadata, random))),
        _ => Running::Read(Box::new(Read::new(terms, ReadTarget::Latest, random))),
    };
    let operation = world.begin(key, running);
    client.busy = Some((operation, began));
}

fn write(
    world: &mut World,
    (key, terms): (u64, fulgurite_geo_core::Terms),
    (value, condition): (Value, Condition),
    random: fulgurite_units::RandomStream,
) -> Running {
    world.history.begin(value.id, key, world.now);
    let id = value.id;
    let needed = needed(&world.plan);
    Running::Write(Box::new(Write::new(terms, (value, condition), needed, None, random)), id)
}

fn policy(plan: &Plan) -> HealPolicy {
    HealPolicy { needed: needed(plan), finish: true, keep: plan.keep }
}

fn needed(plan: &Plan) -> usize {
    // If a site is lost while another does not have its fragments yet, that is one loss too many.
    if plan.replace {
        return plan.sites;
    }
    usize::from(plan.data) + usize::from(plan.parity > 1)
}

/// Allows the removal of obsolete versions once no earlier read can still be running.
fn keep(world: &World) -> Retention {
    let longest = 3 * 40 * world.plan.delay_ms;
    let after = (world.now / 1_000_000).saturating_sub(longest);
    Retention { newest: world.plan.keep, obsolete_after: UnixTime::from_millis(after) }
}

fn time(now: u64) -> UnixTime {
    UnixTime::from_millis(now / 1_000_000)
}

fn value(world: &mut World, change: Change) -> Value {
    let id = WriteId::draw(&mut world.random);
    Value { id, time: time(world.now), change: Arc::new(change) }
}

fn put(world: &mut World) -> Value {
    let inline = world.random.below(4) == 0;
    let data = if inline {
        Data::Inline(vec![1])
    } else {
        let sites = world.voters().collect();
        let (data, parity) = (world.plan.data, world.plan.parity);
        let (parts, written) = (Vec::new(), false);
        Data::Coded(Coded { data, parity, chunk: 1 << 20, parts, sites, written })
    };
    let put = Put { size: 1, digest: [0; 32], data, attributes: Vec::new() };
    value(world, Change::Put(put))
}

/// Handles operations that have ended, and lets their clients continue.
fn end_all(world: &mut World, clients: &mut [Client]) -> Result<(), String> {
    for operation in std::mem::take(&mut world.ended) {
        let Some((key, running)) = world.take(operation) else { continue };
        let client =
            clients.iter_mut().find(|client| client.busy.is_some_and(|(id, _)| id == operation));
        let Some(client) = client else { continue };
        let began = client.busy.map_or(0, |(_, began)| began);
        record(world, (key, began), &running)?;
        while world.plan.settle && world.run_next_event()? {}
        begin(world, client);
    }
    Ok(())
}

/// Records the answer that an operation's client got.
fn record(world: &mut World, (key, began): (u64, u64), running: &Running) -> Result<(), String> {
    let ended = world.now;
    let observation = match running {
        Running::Write(write, id) => {
            world.history.witness(key, write.known())?;
            world.totals.rounds += write.rounds().total() as usize;
            match write.end() {
                Some(WriteResult::Done { version, .. }) => {
                    world.totals.acknowledged += 1;
                    Observation::Wrote(*id, *version)
                }
                Some(WriteResult::Refused) => {
                    world.totals.refused += 1;
                    Observation::Refused
                }
                Some(WriteResult::Unavailable) | None => {
                    world.totals.unavailable += 1;
                    Observation::Maybe(*id)
                }
                Some(WriteResult::Indeterminate(_) | WriteResult::Unwritten(_)) => {
                    world.totals.indeterminate += 1;
                    Observation::Maybe(*id)
                }
            }
        }
        Running::Read(read) => {
            world.history.witness(key, read.known())?;
            world.totals.rounds += read.rounds() as usize;
            world.totals.reads += 1;
            match read.end() {
                Some(ReadResult::Found(version, value)) => Observation::Read(value.id, *version),
                Some(ReadResult::Nothing) => Observation::Nothing,
                Some(ReadResult::Unavailable) | None => {
                    world.totals.unavailable += 1;
                    return Ok(());
                }
                Some(ReadResult::Lost(version)) => {
                    return Err(format!("version {version} is lost"));
                }
            }
        }
        Running::Heal(heal) => {
            world.totals.healed += 1;
            let lost = heal.end().map(|end| end.lost.clone()).unwrap_or_default();
            if !lost.is_empty() {
                return Err(format!("versions {lost:?} are lost"));
            }
            return Ok(());
        }
        Running::Collect(collect) => {
            world.totals.collected += collect.end().map_or(0, |end| end.gone.len());
            return Ok(());
        }
        Running::Sweep(_) | Running::Restore(_) => return Ok(()),
    };
    world.history.add(Entry { key, began, ended, observation });
    Ok(())
}

/// Kills some clients; others take their place.
fn kill_some(world: &mut World, clients: &mut [Client]) {
    let crash = world.plan.crash;
    if crash == 0 || world.random.below(20_000) >= crash {
        return;
    }
    let one = world.draw_index(clients.len());
    let client = &mut clients[one];
    let Some((operation, began)) = client.busy else { return };
    let Some((key, running)) = world.kill(operation) else { return };
    if let Running::Write(_, id) = running {
        let ended = world.now;
        world.history.add(Entry { key, began, ended, observation: Observation::Maybe(id) });
    }
    begin(world, client);
}

/// Runs a single operation to its end.
fn run_single(world: &mut World, key: u64, running: Running) -> Result<Running, String> {
    let operation = world.begin(key, running);
    for _ in 0..200_000 {
        if let Some(index) = world.ended.iter().position(|id| *id == operation) {
            world.ended.swap_remove(index);
            let (_, running) = world.take(operation).ok_or("the operation is missing")?;
            return Ok(running);
        }
        if !world.run_next_event()? {
            return Err("no events are left".into());
        }
    }
    Err("a single operation does not end".into())
}

/// Ends all faults and repairs every object; each must become whole.
fn heal(world: &mut World) -> Result<(), String> {
    world.calm = true;
    for site in &mut world.sites {
        site.up = true;
    }
    // Messages in flight arrive.
    while world.run_next_event()? {
        world.ended.clear();
    }
    for key in world.keys() {
        restore_rows(world, key)?;
    }
    world.mark_restored();
    for key in world.keys() {
        // Twice, since versions that the first pass makes obsolete are removed in the second.
        for _ in 0..2 {
            let (terms, random) = (world.terms(0), world.child());
            let heal = Heal::new(terms, policy(&world.plan), time(world.now), random);
            let ended = run_single(world, key, Running::Heal(Box::new(heal)))?;
            record(world, (key, 0), &ended)?;
            check_whole(key, &ended)?;
            let terms = world.terms(0);
            let random = world.child();
            let all = Retention {
                newest: world.plan.keep,
                obsolete_after: UnixTime::from_millis(u64::MAX),
            };
            let collect = Collect::new(terms, all, random);
            let ended = run_single(world, key, Running::Collect(Box::new(collect)))?;
            record(world, (key, 0), &ended)?;
        }
        while world.run_next_event()? {}
    }
    sweep(world)?;
    while world.run_next_event()? {}
    check_converged(world)
}

/// Checks that a single repair made an object whole and reports it so, whatever it had to settle or
/// make obsolete. All sites answer in time, and nobody else is running.
fn check_whole(key: u64, ended: &Running) -> Result<(), String> {
    let Running::Heal(heal) = ended else { return Err("not a repair".into()) };
    match heal.end() {
        Some(end) if end.whole => Ok(()),
        end => Err(format!("{key} is not reported as whole: {end:?}")),
    }
}

fn restore_rows(world: &mut World, key: u64) -> Result<(), String> {
    for site in world.voters() {
        let row = world.sites[site.index()].rows.get(&key);
        let silent = row.map_or_else(|| world.replacing == Some(site), |row| row.silent);
        if !silent {
            continue;
        }
        let (terms, random) = (world.terms(0), world.child());
        let restore = Restore::new(terms, site, random);
        let ended = run_single(world, key, Running::Restore(Box::new(restore)))?;
        let Running::Restore(restore) = ended else { return Err("not a restore".into()) };
        if restore.end() != Some(&fulgurite_geo_core::RestoreResult::Done) {
            return Err(format!("the row of {key} at {site} is not restored: {restore:?}"));
        }
    }
    Ok(())
}

/// Sweeps every fragment of every site for orphans.
fn sweep(world: &mut World) -> Result<(), String> {
    for site in world.voters() {
        for (write, index) in world.sites[site.index()].fragments.clone() {
            let fragment = Fragment { write, index, site };
            // A fragment's header names its object.
            let key = world.history.key(write).ok_or("a fragment of no write")?;
            let known = world.sites.iter().filter_map(|site| site.rows.get(&key));
            let mut decided = known.flat_map(|row| row.known.decided.values());
            let wanted =
                decided.any(|decided| decided.value.id == write && !decided.value.is_gone());
            let (terms, random) = (world.terms(0), world.child());
            let sweep = Sweep::new(terms, fragment, random);
            let ended = run_single(world, key, Running::Sweep(Box::new(sweep)))?;
            let Running::Sweep(sweep) = ended else { return Err("not a sweep".into()) };
            let right = if wanted { SweepResult::Kept } else { SweepResult::Erased };
            if sweep.end() != Some(&right) {
                return Err(format!("not {right:?}: {sweep:?}"));
            }
            world.totals.swept += usize::from(!wanted);
        }
    }
    Ok(())
}

/// Checks that all sites hold the same, nothing is open, and no fragment is missing or an orphan.
fn check_converged(world: &World) -> Result<(), String> {
    let mut wanted = std::collections::BTreeSet::new();
    for key in world.keys() {
        // A missing row counts as one that knows nothing.
        let row = |site: &super::site::Site| site.rows.get(&key).cloned().unwrap_or_default();
        let rows: Vec<_> = world.sites.iter().map(row).collect();
        let first = &rows[0];
        for row in &rows {
            if row.known != first.known {
                return Err(format!("{key}: rows differ: {:?} and {:?}", row.known, first.known));
            }
            if row.open.values().any(|instance| instance.accepted.is_some()) || row.silent {
                return Err(format!("{key}: {row:?} still has an open version or does not vote"));
            }
        }
        for (version, decided) in &first.known.decided {
            for fragment in fulgurite_geo_core::fragments(&decided.value) {
                wanted.insert((fragment.write, fragment.index, fragment.site));
                if !world.sites[fragment.site.index()].has(fragment) {
                    return Err(format!("{key}: {fragment:?} of version {version} is missing"));
                }
            }
        }
    }
    for site in world.voters() {
        for (write, index) in &world.sites[site.index()].fragments {
            if !wanted.contains(&(*write, *index, site)) {
                return Err(format!("fragment {index} of {write} at {site} is an orphan"));
            }
        }
    }
    Ok(())
}
