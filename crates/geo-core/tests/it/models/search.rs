//! Search of worlds: exhaustive, up to a number of states, or at random.

use std::time::Instant;

use fulgurite_units::{RandomStream, Seed};
use stateright::{Checker, HasDiscoveries, Model};

use super::world::{State, World};

/// Whether this is a nightly run.
#[expect(clippy::disallowed_methods, reason = "the caller of a test sets how long it may take")]
pub(super) fn is_nightly() -> bool {
    std::env::var("FULGURITE_TEST_MODELS").is_ok_and(|wanted| wanted == "nightly")
}

/// Extent of a search.
#[derive(Clone, Copy, Debug)]
pub(super) enum Extent {
    /// Every state.
    All,
    /// So many states, counting repeats.
    Most(usize),
}

/// Returns a partial extent, or in a nightly run as much as fits into memory.
pub(super) fn nightly_extent() -> Extent {
    Extent::Most(if is_nightly() { 40_000_000 } else { 300_000 })
}

/// Searches a world that must be correct. Prints what it found and how long it took.
pub(super) fn is_safe(name: &str, world: World, extent: Extent) {
    let found = search(name, world, extent, false);
    assert!(found.is_empty(), "{name}: {found:?}");
}

/// Searches a world with a fault, which must be found.
pub(super) fn is_broken(name: &str, world: World, extent: Extent) {
    let found = search(name, world, extent, true);
    assert!(!found.is_empty(), "{name}: the search did not detect the fault");
}

fn search(name: &str, world: World, extent: Extent, mutant: bool) -> Vec<String> {
    let started = now();
    let mut builder = world.checker().threads(2);
    if let Extent::Most(states) = extent {
        builder = builder.target_state_count(states);
    }
    if mutant {
        builder = builder.finish_when(HasDiscoveries::AnyFailures);
    }
    let checker = builder.spawn_bfs().join();
    let all = match extent {
        Extent::All => checker.is_done(),
        Extent::Most(states) => checker.is_done() && checker.state_count() < states,
    };
    let mut found = Vec::new();
    let mut is_over = false;
    for (property, path) in checker.discoveries() {
        if property == "all is done" {
            is_over = true;
            continue;
        }
        let actions = path.into_actions();
        found.push(format!("not {property:?} after {} actions: {actions:?}", actions.len()));
    }
    let states = checker.unique_state_count();
    let rows = checker.model().table.rows();
    let seconds = started.elapsed().as_secs_f64();
    let coverage = if found.is_empty() && all { "all of them" } else { "not all" };
    print(&format!("{name}: {states} states ({coverage}), {rows} rows, {seconds:.1} s, {found:?}"));
    assert!(mutant || !all || is_over, "{name}: no run reaches its end");
    found
}

/// Walks at random until a state is wrong, or so many steps were taken. Returns the last state if
/// it is wrong.
pub(super) fn walk(name: &str, world: &World, seed: u64, steps: u64) -> Option<State> {
    let started = now();
    let mut random = Seed::new(seed).stream();
    let (mut taken, mut walks) = (0, 0);
    let mut wrong = None;
    while taken < steps && wrong.is_none() {
        walks += 1;
        let mut state = world.init_states().remove(0);
        while let Some(next) = any_next(world, &state, &mut random) {
            state = next;
            taken += 1;
        }
        wrong = (!world.holds(&state)).then_some(state);
    }
    let coverage = if wrong.is_some() { "violation found" } else { "nothing found" };
    let seconds = started.elapsed().as_secs_f64();
    print(&format!(
        "{name}: {taken} steps, {walks} random walks, seed {seed}, {seconds:.1} s, {coverage}"
    ));
    wrong
}

/// Returns a random next state, if any: a wrong state has none.
fn any_next(world: &World, state: &State, random: &mut RandomStream) -> Option<State> {
    let mut actions = Vec::new();
    world.actions(state, &mut actions);
    while !actions.is_empty() {
        let index = random.below(u64::try_from(actions.len()).unwrap());
        let action = actions.swap_remove(usize::try_from(index).unwrap());
        if let Some(next) = world.next_state(state, action) {
            return Some(next);
        }
    }
    None
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a search took is printed and decides nothing"
)]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::print_stderr, reason = "what a search took belongs to its result")]
fn print(line: &str) {
    eprintln!("model {line}");
}
