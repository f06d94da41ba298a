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
        bench.bodies.put(name, 50_000);
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
fn last_redundancy_platters_go_one_per_far_library() {
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
        let held: Vec<bool> = libraries
            .iter()
            .map(|library| library.platters().get(platter) == Some(bytes))
            .collect();
        assert_eq!(held.iter().filter(|held| **held).count(), usize::from(at >= stay), "{held:?}");
    }
    assert!(libraries.iter().all(|library| library.platters().len() == 1));
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
fn unavailable_far_library_delays_no_other_and_resumes() {
    let (bench, [oslo, turin], row) = sealed();
    oslo.set_away(true);
    let error = run(&bench).unwrap_err();
    assert!(matches!(&error, GlassError::FarUnavailable { library, .. } if library == "oslo"));
    check(&bench, &row);
    assert_eq!((oslo.platters().len(), turin.platters().len()), (0, 1));
    assert_eq!(status(&bench.context).unwrap()[0].waiting, 1);
    oslo.set_away(false);
    run(&bench).unwrap();
    check(&bench, &row);
    assert_eq!((oslo.platters().len(), turin.platters().len()), (1, 1));
}

#[test]
fn platter_returned_altered_stays_home_and_is_sent_again() {
    let (bench, [oslo, turin], row) = sealed();
    oslo.set_corrupting(true);
    let error = run(&bench).unwrap_err().to_string();
    assert!(error.contains("with other bytes than were sent"), "{error}");
    check(&bench, &row);
    oslo.set_corrupting(false);
    run(&bench).unwrap();
    check(&bench, &row);
    assert_eq!((oslo.platters().len(), turin.platters().len()), (1, 1));
}

#[test]
fn local_file_left_by_crash_is_removed_if_far_copy_exists() {
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
    let lost = *oslo.platters().keys().next().unwrap();
    oslo.lose(lost);
    run(&bench).unwrap();
    assert!(
        !bench.files.exists(lost) && oslo.platters().contains_key(&lost),
        "the platter was sent again"
    );
    check(&bench, &row);
    let other = *turin.platters().keys().next().unwrap();
    assert!(!bench.files.exists(other));
}

#[test]
fn platter_stays_home_if_far_bytes_differ() {
    let (bench, [oslo, turin], row) = sealed();
    // The library's copy differs in a bit, and the platter at home cannot be opened for a moment.
    oslo.set_corrupting(true);
    assert!(run(&bench).is_err());
    let platter = *oslo.platters().keys().next().unwrap();
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
    assert_eq!(oslo.platters()[&platter], bytes, "the intact platter was sent again");
    assert_eq!(turin.platters().len(), 1);
    check(&bench, &row);
}

#[test]
fn platter_without_location_row_is_searched_for() {
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
fn platter_lost_at_home_does_not_block_others() {
    let (bench, [oslo, turin], row) = sealed();
    carrier(&bench).assign().unwrap();
    let lost = row.redundancy[row.redundancy.len() - 2];
    bench.files.remove(lost).unwrap();
    assert!(run(&bench).is_err());
    assert_eq!(oslo.platters().len() + turin.platters().len(), 1);
    assert!(!far_row(&bench, lost).unwrap().is_there);
}

#[test]
fn carry_without_far_libraries_does_nothing() {
    let bench = Bench::new();
    bench.bodies.put("a", 50_000);
    bench.sealer.seal_all(SealTrigger::Order).unwrap();
    run(&bench).unwrap();
    assert_eq!(bench.count(FAR), 0);
}
