//! Live equals twin: when the events of a live rack's controller are replayed to a fresh one of the
//! same shape and policy, it returns the same commands. Timing has no influence.

use fulgurite_rack::{Notification, RackOptions, RackStore};
use fulgurite_rack_core::{Command, Event, Policy, Rack, solve};
use fulgurite_units::{Controller as _, Instant, Outbox};
use object_store::{ObjectStoreExt as _, path::Path};

use crate::shelf::{Shelf, noise, shape};
use crate::spin_up::needed;

type Trace = Vec<(Instant, Event, Vec<Command>)>;

/// Returns the position of the first event for which a fresh controller returns other commands.
fn first_difference(trace: &Trace, policy: Policy) -> Option<usize> {
    let assignment = solve(&shape()).unwrap();
    let mut rack = Rack::new(&shape(), assignment, policy);
    trace.iter().position(|(at, event, commands)| {
        let mut out = Outbox::new();
        rack.step(*at, *event, &mut out);
        rack.check();
        !out.drain().eq(commands.iter().copied())
    })
}

/// Puts blobs until `groups` groups have one each, by making each group full after its first.
async fn fill(shelf: &Shelf, rack: &RackStore, groups: usize) -> Vec<Path> {
    use fulgurite_rack::work::Failing;
    let assignment = solve(&shape()).unwrap();
    let mut keys = Vec::new();
    for (number, group) in assignment.groups().take(groups).enumerate() {
        let key = Path::from(format!("blob-{number}"));
        rack.put(&key, noise(number as u64, 50_000).into()).await.unwrap();
        for &place in assignment.places(group) {
            shelf.injected.fail(place, Failing::Full { after: 0 });
        }
        keys.push(key);
    }
    shape().places().for_each(|place| shelf.injected.repair(place));
    keys
}

/// Records the events and commands of the controller of a rack with this policy.
async fn record_trace(policy: Policy) -> Trace {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let keys = fill(&shelf, &rack, 6).await;
    rack.stop();
    drop(rack);

    let rack = RackStore::open(RackOptions { policy, ..shelf.options() }).unwrap();
    let mut watch = rack.watch().await.unwrap();
    // Reads two groups at a time, in turn, so that groups of the same class alternate as well.
    for round in 0..3 {
        for pair in keys.chunks(2) {
            let reads = pair.iter().map(|key| rack.get(key));
            for read in futures::future::join_all(reads).await {
                assert_eq!(read.unwrap().bytes().await.unwrap().len(), 50_000, "{round}");
            }
        }
    }
    rack.delete(&keys[0]).await.unwrap();
    rack.stop();
    let mut trace = Trace::new();
    while let Some(seen) = watch.next().await {
        if let Notification::Step { at, event, commands, .. } = seen.unwrap() {
            trace.push((at, event, commands));
        }
    }
    trace
}

fn spin_ups(trace: &Trace) -> usize {
    let commands = trace.iter().flat_map(|(_, _, commands)| commands);
    commands.filter(|command| matches!(command, Command::SpinUp { .. })).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replay_of_a_live_rack_returns_the_same_commands() {
    let policy = Policy::default();
    let trace = record_trace(policy).await;
    assert_eq!(first_difference(&trace, policy), None);
    let runs = trace.iter().flat_map(|(_, _, commands)| commands);
    let runs = runs.filter(|command| matches!(command, Command::Run { .. })).count();
    assert!(runs >= 18, "{runs} reads ran");
    assert!(spin_ups(&trace) > 6 * 8, "classes went from group to group");

    // Canaries: one event is left out, and one is replaced by another.
    let is_up = |(_, event, _): &&(Instant, Event, Vec<Command>)| matches!(event, Event::Up { .. });
    let up = trace.iter().position(|line| is_up(&line)).unwrap();
    let mut short = trace.clone();
    short.remove(up);
    assert!(first_difference(&short, policy).is_some(), "a missing Up event is detected");
    let mut other = trace;
    let (_, Event::Up { place }, _) = other[up] else { unreachable!("it is an Up event") };
    other[up].1 = Event::UpFailed { place };
    assert!(first_difference(&other, policy).is_some(), "a replaced event is detected");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replay_matches_when_only_needed_disks_spin_up() {
    let policy = needed(0);
    let trace = record_trace(policy).await;
    assert_eq!(first_difference(&trace, policy), None);
    assert!(
        first_difference(&trace, Policy::default()).is_some(),
        "another policy gives other commands"
    );
    let all = spin_ups(&record_trace(Policy::default()).await);
    assert!(spin_ups(&trace) < all, "fewer disks are spun up");
}
