//! Where platters are, whatever interrupts or blocks a carrier.

use super::*;
use crate::far::tests::Memory;
use crate::seal::SealTrigger;
use crate::testing::Bench;

type Libraries = [Arc<Memory>; 2];

/// Creates a sealed set of 3 + 2 at most, and two far libraries for both of its redundancy
/// platters.
fn sealed() -> (Bench, Libraries, SetRow) {
    let libraries = [Memory::named("oslo"), Memory::named("turin")];
    let far = libraries.iter().map(|library| Arc::clone(library) as Arc<dyn FarLibrary>);
    let bench = Bench::with_far(2, far.collect());
    for name in ["a", "b", "c"] {
        bench.held.put(name, 50_000);
    }
    let report = bench.sealer.seal_all(SealTrigger::Order).unwrap();
    let row: SetRow =
        rows::get(&*bench.context.catalog, SETS, &report.sets[0].set.to_bytes()).unwrap().unwrap();
    (bench, libraries, row)
}

fn carrier(bench: &Bench) -> Carrier {
    Carrier::new(&bench.context)
}

fn run(bench: &Bench) -> Result<()> {
    carrier(bench).run(&|_| {})
}

fn far_row(bench: &Bench, platter: PlatterId) -> Option<FarRow> {
    crate::far::place(&*bench.context.catalog, platter).unwrap()
}

fn slot(bench: &Bench, platter: PlatterId) -> Option<u32> {
    let row: Option<PlatterRow> =
        rows::get(&*bench.context.catalog, PLATTERS, &platter.to_bytes()).unwrap();
    row.unwrap().slot
}

/// Checks that each platter is at home with a slot, or away without one, and can be opened.
fn check(bench: &Bench, row: &SetRow) {
    for (_, platter) in row.platters() {
        let is_away = far_row(bench, platter).is_some_and(|row| row.is_there);
        assert_eq!(bench.files.exists(platter), !is_away, "{platter}");
        assert_eq!(slot(bench, platter).is_some(), !is_away, "{platter}");
        let open = bench.context.open(platter).unwrap();
        assert_eq!(matches!(open, crate::far::OpenPlatter::Far(_)), is_away);
    }
    let slots = row.platters().filter(|(_, platter)| slot(bench, *platter).is_some()).count();
    assert_eq!(bench.count(SLOTS), slots);
}

#[test]
fn the_last_redundancy_platters_go_one_to_each_library_and_stay_what_they_were() {
    let (bench, libraries, row) = sealed();
    let before: Vec<Vec<u8>> = row
        .redundancy
        .iter()
        .map(|platter| std::fs::read(bench.files.path(*platter)).unwrap())
        .collect();
    let away = usize::from(bench.context.far_redundancy).min(row.redundancy.len());
    run(&bench).unwrap();
    check(&bench, &row);
    let stay = row.redundancy.len() - away;
    for (at, (platter, bytes)) in row.redundancy.iter().zip(&before).enumerate() {
        let held: Vec<bool> =
            libraries.iter().map(|library| library.held().get(platter) == Some(bytes)).collect();
        assert_eq!(held.iter().filter(|held| **held).count(), usize::from(at >= stay), "{held:?}");
    }
    assert!(libraries.iter().all(|library| library.held().len() == 1));
    let status = status(&bench.context).unwrap();
    let statuses: Vec<(&str, u64, u64)> =
        status.iter().map(|s| (s.library.as_str(), s.platters, s.waiting)).collect();
    assert_eq!(statuses, [("oslo", 1, 0), ("turin", 1, 0)]);
    // Nothing is left to do, and nothing is repeated.
    let reads = || libraries.each_ref().map(|library| library.reads.load(ORDER));
    let before = reads();
    run(&bench).unwrap();
    assert_eq!(reads(), before);
}

const ORDER: std::sync::atomic::Ordering = std::sync::atomic::Ordering::SeqCst;

#[test]
fn a_library_that_is_away_keeps_no_other_waiting_and_goes_on_when_it_is_back() {
    let (bench, [oslo, turin], row) = sealed();
    oslo.set_away(true);
    let error = run(&bench).unwrap_err();
    assert!(matches!(&error, PlattersError::FarUnavailable { library, .. } if library == "oslo"));
    check(&bench, &row);
    assert_eq!((oslo.held().len(), turin.held().len()), (0, 1));
    assert_eq!(status(&bench.context).unwrap()[0].waiting, 1);
    oslo.set_away(false);
    run(&bench).unwrap();
    check(&bench, &row);
    assert_eq!((oslo.held().len(), turin.held().len()), (1, 1));
}

#[test]
fn what_a_library_gives_back_otherwise_stays_at_home_and_is_put_again() {
    let (bench, [oslo, turin], row) = sealed();
    oslo.set_corrupting(true);
    let error = run(&bench).unwrap_err().to_string();
    assert!(error.contains("as it did not get it"), "{error}");
    check(&bench, &row);
    oslo.set_corrupting(false);
    run(&bench).unwrap();
    check(&bench, &row);
    assert_eq!((oslo.held().len(), turin.held().len()), (1, 1));
}

#[test]
fn a_crash_between_the_row_and_the_file_leaves_a_file_that_goes_if_the_library_has_its_own() {
    let (bench, [oslo, turin], row) = sealed();
    let files: Vec<(PlatterId, Vec<u8>)> = row
        .redundancy
        .iter()
        .map(|platter| (*platter, std::fs::read(bench.files.path(*platter)).unwrap()))
        .collect();
    run(&bench).unwrap();
    for (platter, bytes) in &files {
        std::fs::write(bench.files.path(*platter), bytes).unwrap();
    }
    // One library lost what it acknowledged: then the file at home is the only copy.
    let lost = *oslo.held().keys().next().unwrap();
    oslo.lose(lost);
    run(&bench).unwrap();
    assert!(!bench.files.exists(lost) && oslo.held().contains_key(&lost), "it went once more");
    check(&bench, &row);
    let other = *turin.held().keys().next().unwrap();
    assert!(!bench.files.exists(other));
}

#[test]
fn a_platter_at_home_stays_when_the_library_has_as_many_other_bytes() {
    let (bench, [oslo, turin], row) = sealed();
    // The library's copy differs in a bit, and the platter at home cannot be opened for a moment.
    oslo.set_corrupting(true);
    assert!(run(&bench).is_err());
    let platter = *oslo.held().keys().next().unwrap();
    let (path, hidden) = (bench.files.path(platter), bench.files.path(platter).with_extension("x"));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::rename(&path, &hidden).unwrap();
    // A symlink to itself exists, and cannot be opened.
    std::os::unix::fs::symlink(&path, &path).unwrap();
    assert!(run(&bench).is_err());
    assert!(!far_row(&bench, platter).unwrap().is_there, "it is not lost at home");
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(&hidden, &path).unwrap();
    // The same if its row nevertheless says that it is away.
    let carrier = carrier(&bench);
    let far = far_row(&bench, platter).unwrap();
    carrier.record_away(platter, FarRow { is_there: true, ..far }).unwrap();
    oslo.set_corrupting(false);
    run(&bench).unwrap();
    assert_eq!(oslo.held()[&platter], bytes, "the good one went there once more");
    assert_eq!(turin.held().len(), 1);
    check(&bench, &row);
}

#[test]
fn a_platter_of_which_no_row_says_where_it_is_is_looked_for() {
    let (bench, libraries, row) = sealed();
    run(&bench).unwrap();
    let away: Vec<PlatterId> =
        row.redundancy.iter().copied().filter(|platter| !bench.files.exists(*platter)).collect();
    let keys: Vec<Vec<u8>> = away.iter().map(|platter| platter.to_bytes().to_vec()).collect();
    let forget = move |tx: &mut Transaction<'_>| -> Result<()> {
        keys.into_iter().try_for_each(|key| Ok(tx.delete(FAR, key)?))
    };
    bench.context.committer.commit_blocking(forget).unwrap();
    libraries[0].set_away(true);
    let mut carrier = carrier(&bench);
    assert!(carrier.run(&|_| {}).is_err());
    libraries[0].set_away(false);
    carrier.run(&|_| {}).unwrap();
    check(&bench, &row);
    assert!(away.iter().all(|platter| far_row(&bench, *platter).is_some_and(|row| row.is_there)));
}

#[test]
fn a_platter_that_is_lost_at_home_keeps_no_other_from_going() {
    let (bench, [oslo, turin], row) = sealed();
    carrier(&bench).assign().unwrap();
    let lost = row.redundancy[row.redundancy.len() - 2];
    bench.files.remove(lost).unwrap();
    assert!(run(&bench).is_err());
    assert_eq!(oslo.held().len() + turin.held().len(), 1);
    assert!(!far_row(&bench, lost).unwrap().is_there);
}

#[test]
fn without_far_libraries_nothing_is_done() {
    let bench = Bench::new();
    bench.held.put("a", 50_000);
    bench.sealer.seal_all(SealTrigger::Order).unwrap();
    run(&bench).unwrap();
    assert_eq!(bench.count(FAR), 0);
}
