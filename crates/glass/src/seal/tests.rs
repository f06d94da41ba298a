//! Slots of new platters, and sets that fail, wait, are given up, or are resumed.

use super::*;
use crate::testing::Bench;

#[test]
fn spare_slots_are_never_assigned() {
    let shape = fulgurite_glass_core::control::LibraryShape {
        slots_per_shelf: 3,
        spare_slots_per_shelf: 1,
        ..fulgurite_glass_core::control::LibraryShape::small()
    };
    let first = SlotIndex::new(0);
    assert_eq!(shape.zone(first), shape.zone(SlotIndex::new(2)), "one shelf is one zone");
    let zones = zones(&shape, &BTreeSet::from([0]));
    assert_eq!(zones.len(), 70);
    assert_eq!((zones[0].total, zones[0].free, zones[0].next), (2, 1, Some(SlotIndex::new(1))));
    assert!(zones[1..].iter().all(|zone| (zone.total, zone.free) == (2, 2)));
    assert!(zones.iter().filter_map(|zone| zone.next).all(|slot| !shape.is_spare(slot)));
}

#[test]
fn faulty_set_is_replanned_on_other_platters() {
    let bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.bodies.put(name, 50_000);
    }
    let set = bench.plan();
    let (before, places) = (bench.sealer.row(set).unwrap(), bench.bodies.places());
    for fault in 1..=SET_FAULTS_MAX {
        let row = bench.sealer.row(set).unwrap();
        assert_eq!(row.state, SetState::Planned);
        bench.sealer.write(set, &row).unwrap();
        bench.damage(row.information[0]);
        let row = bench.sealer.row(set).unwrap();
        let verdict = bench.sealer.verify(set, &row).unwrap();
        assert!(matches!(verdict, Verdict::Scrap(_)), "{verdict:?}");
        assert_eq!(bench.sealer.count_fault(set).unwrap(), fault);
    }
    let reason = GlassError::Internal { what: "it was bad".to_owned() };
    bench.sealer.abandon(set, Some(reason)).unwrap();
    assert!(before.platters().all(|(_, platter)| !bench.files.exists(platter)));
    for space in [SETS, PLATTERS, SLOTS, PLANS, FAULTS, rows::VERIFIED, rows::MARGINS] {
        assert_eq!(bench.count(space), 0, "{space:?}");
    }
    let moved: Vec<u64> = places.iter().map(|place| place + 3).collect();
    assert_eq!(bench.bodies.places(), moved, "the bodies are behind everything else");
    assert!(moved.iter().all(|place| bench.bodies.body(*place).unwrap().is_some()));
    // They wait without an order; an order has them sealed, on new platters.
    assert_eq!(bench.sealer.seal_all(SealTrigger::Due).unwrap().objects, 0);
    let (failures, given_up) = bench.sealer.failures.status(bench.context.passed());
    assert_eq!((failures.len(), given_up), (1, 1));
    assert!(failures[0].error.contains("it was bad") && failures[0].set.is_none());
    bench.bodies.put("d", 1_000);
    let report = bench.sealer.seal_all(SealTrigger::Order).unwrap();
    assert_eq!((report.objects, report.kept_staged), (4, 0));
    let after = bench.sealer.row(report.sets[0].set).unwrap();
    assert!(after.platters().all(|(_, new)| before.platters().all(|(_, old)| old != new)));
    assert!(bench.sealer.failures.oldest().is_none());
    assert_eq!((bench.bodies.on_glass(), bench.bodies.places().len()), (4, 0));
}

/// A platter may have no room for its header if that became longer since it was planned.
#[test]
fn set_with_impossible_geometry_is_replanned_at_once() {
    let bench = Bench::new();
    for name in ["a", "b"] {
        bench.bodies.put(name, 50_000);
    }
    let set = bench.plan();
    bench.sealer.advance(set, |row| row.geometry.sector_payload_bytes = 128).unwrap();
    let report = bench.sealer.seal_all(SealTrigger::Order).unwrap();
    assert_eq!((report.objects, report.sets.len()), (2, 1));
    assert_ne!(report.sets[0].set, set);
    assert!(bench.sealer.failures.oldest().is_none());
    assert_eq!((bench.bodies.on_glass(), bench.bodies.places().len()), (2, 0));
}

#[test]
fn giving_up_is_repeated_after_a_crash() {
    let bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.bodies.put(name, 50_000);
    }
    let set = bench.plan();
    // A crash left one body moved, and the set unchanged.
    let first = bench.sealer.places(set).unwrap()[0];
    bench.bodies.give_new_places(&[first]);
    let row = bench.sealer.row(set).unwrap();
    let (_, new) = bench.sealer.give_up(set, &row).unwrap();
    assert_eq!(new.len(), 1);
    assert_eq!(new[0].clone().count(), 2, "two bodies were still to be moved");
    assert_eq!((bench.bodies.places().len(), bench.count(SETS), bench.count(PLANS)), (3, 0, 0));
    assert_eq!(bench.sealer.seal_all(SealTrigger::Order).unwrap().objects, 3);
}

#[test]
fn disk_error_blocks_no_other_set_and_never_gives_up() {
    let bench = Bench::new();
    bench.bodies.put("a", 50_000);
    let set = bench.plan();
    let row = bench.sealer.row(set).unwrap();
    // A folder blocks the path where its first platter is to be written.
    let obstacle = bench.files.path(row.information[0]).with_extension("part");
    std::fs::create_dir(&obstacle).unwrap();
    for number in 0..12_u32 {
        bench.bodies.put(&format!("other {number}"), 1_000);
        let failed = bench.sealer.seal_all(SealTrigger::Order).unwrap_err();
        assert!(matches!(failed, GlassError::Io { .. }), "{failed:?}");
        assert_eq!(bench.bodies.on_glass(), u64::from(number) + 1, "the others go on");
        assert_eq!(bench.bodies.places().len(), 1);
        let (failures, given_up) = bench.sealer.failures.status(bench.context.passed());
        assert_eq!((failures[0].set, failures[0].tries), (Some(set), number + 1));
        assert_eq!(given_up, 0);
    }
    // Without an order it is left alone until its wait is over, and waiting bodies are not due.
    assert!(!seal_readiness(&bench.context, &bench.sealer.failures).unwrap().is_ready);
    assert_eq!(bench.sealer.seal_all(SealTrigger::Due).unwrap().objects, 0);
    std::fs::remove_dir(&obstacle).unwrap();
    // The number of attempts does not matter: a crash costs an attempt like this one.
    bench.sealer.advance(set, |row| row.generation += 1_000).unwrap();
    let report = bench.sealer.seal_all(SealTrigger::Order).unwrap();
    assert_eq!((report.objects, report.sets[0].set), (1, set));
    assert!(bench.sealer.failures.oldest().is_none());
}

#[test]
fn set_of_deleted_bodies_is_removed() {
    let bench = Bench::new();
    bench.bodies.put("a", 50_000);
    let set = bench.plan();
    let row = bench.sealer.row(set).unwrap();
    let obstacle = bench.files.path(row.information[0]).with_extension("part");
    std::fs::create_dir(&obstacle).unwrap();
    bench.sealer.seal_all(SealTrigger::Order).unwrap_err();
    assert!(bench.sealer.failures.oldest().is_some());
    bench.bodies.delete("a");
    std::fs::remove_dir(&obstacle).unwrap();
    bench.bodies.put("b", 10);
    assert_eq!(bench.sealer.seal_all(SealTrigger::Order).unwrap().objects, 1);
    assert!(bench.sealer.failures.oldest().is_none());
    let gone: Option<SetRow> = rows::get(&*bench.context.catalog, SETS, &set.to_bytes()).unwrap();
    assert_eq!((gone, bench.count(PLANS)), (None, 0));
}

#[test]
fn verification_paused_at_every_track_finds_the_same() {
    let bench = Bench::new();
    bench.bodies.put("a", 400_000);
    let set = bench.plan();
    bench.sealer.write(set, &bench.sealer.row(set).unwrap()).unwrap();
    let platter = bench.sealer.row(set).unwrap().information[0];
    let whole =
        bench.sealer.verifier.read_whole(platter, &mut bench.sealer.progress.part()).unwrap();
    let (mut work, outcome) = bench.sealer.verifier.verification(platter);
    let span = fulgurite_glass_core::control::TrackSpan::new(
        fulgurite_units::TrackIndex::new(0),
        whole.tracks,
    );
    let halt = Arc::<crate::library_driver::Halt>::default();
    halt.request();
    let pace = crate::library_driver::Pace::new(halt, span, std::time::Duration::ZERO);
    let mut rests = Vec::new();
    while let crate::library_driver::Pass::Paused { tracks_done } = work(&pace) {
        rests.push(tracks_done);
    }
    assert_eq!(rests, (1..whole.tracks).collect::<Vec<u32>>());
    assert_eq!(bench.sealer.verifier.outcome(platter, &outcome).unwrap(), whole);
    assert_eq!(work(&pace), crate::library_driver::Pass::Complete, "there is nothing left to do");
}

fn bytes_of(progress: &Progress) -> (u64, u64) {
    let (done, total) = progress.bytes();
    (done.get(), total.get())
}

#[test]
fn sealing_reports_bytes_written_and_read_back() {
    let bench = Bench::new();
    bench.bodies.put("a", 400_000);
    bench.bodies.put("later", 700_000);
    let places = bench.bodies.places();
    let set = bench.plan_until(places[0]);
    let sealer = &bench.sealer;
    let (before, progress) = (1_000, Arc::clone(&sealer.progress));
    let progress_counts = || {
        sealer.update_progress(&sealer.row(set).unwrap(), before).unwrap();
        let (done, total) = bytes_of(&progress);
        (done - before, total - before)
    };
    let (done, total) = progress_counts();
    assert_eq!(done, 0);
    sealer.write(set, &sealer.row(set).unwrap()).unwrap();
    let tracks = |platter: PlatterId| {
        let reader = sealer.verifier.open(platter).unwrap();
        u64::from(reader.map().tracks()) * reader.map().geometry().track_image_bytes() as u64
    };
    let row = sealer.row(set).unwrap();
    let written: u64 = row.platters().map(|(_, platter)| tracks(platter)).sum();
    let (counted, _) = bytes_of(&progress);
    // Each of the four files ends with a record after its tracks.
    assert_eq!(counted - before, written + 4 * 1024);
    assert_eq!(progress_counts(), (written, total), "the estimated bytes were written");
    assert!(matches!(sealer.verify(set, &row).unwrap(), Verdict::Good));
    assert_eq!(bytes_of(&progress).0 - before, 2 * written);
    assert_eq!(progress_counts(), (2 * written, total));
    // The estimate of what follows the set is about what is planned later.
    let later = total - 2 * written;
    sealer.finish_set(set, &mut SealReport::default()).unwrap();
    let next = bench.plan();
    sealer.update_progress(&sealer.row(next).unwrap(), 0).unwrap();
    let (_, planned) = bytes_of(&progress);
    assert!(later.abs_diff(planned) <= later / 2, "{later} {planned}");
    assert_eq!(bench.sealer.seal_all(SealTrigger::Order).unwrap().objects, 1);
    assert_eq!(bytes_of(&progress), (planned, planned));
}

/// Once to write the platter, once to release its bodies.
#[test]
fn plan_rows_are_read_twice_per_platter() {
    let bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.bodies.put(name, 50_000);
    }
    let set = bench.plan();
    bench.plan_rows_read();
    bench.sealer.write(set, &bench.sealer.row(set).unwrap()).unwrap();
    assert_eq!(bench.plan_rows_read(), 3);
    let row = bench.sealer.row(set).unwrap();
    assert!(matches!(bench.sealer.verify(set, &row).unwrap(), Verdict::Good));
    assert_eq!(bench.plan_rows_read(), 0);
    assert_eq!(bench.sealer.release(set, &row).unwrap().bodies, 3);
    assert_eq!(bench.plan_rows_read(), 3);
}

/// A damaged row of one set is no reason to leave the others.
#[test]
fn unreadable_set_row_is_reported_and_others_continue() {
    let bench = Bench::new();
    bench.bodies.put("a", 50_000);
    let first = bench.sealer.seal_all(SealTrigger::Order).unwrap().sets[0].set;
    bench.bodies.put("b", 50_000);
    // Damages one set in progress and one that is done.
    let second = bench.plan();
    for set in [first, second] {
        let spoil = move |tx: &mut Transaction<'_>| -> Result<()> {
            Ok(tx.put(SETS, set.to_bytes().to_vec(), vec![1, 0xFF])?)
        };
        bench.context.committer.commit_blocking(spoil).unwrap();
    }
    let plans = bench.count(PLANS);
    bench.bodies.put("c", 50_000);
    let report = bench.sealer.seal_all(SealTrigger::Order).unwrap();
    let unreadable = |set| {
        report
            .sets
            .iter()
            .any(|set_status| set_status.set == set && set_status.state == "unreadable")
    };
    assert!(unreadable(first) && unreadable(second), "{report:?}");
    let released = report.sets.iter().filter(|set_status| set_status.state == "released");
    // What was planned for the set under way goes to glass with the next one.
    assert_eq!((report.objects, released.count()), (2, 1), "{report:?}");
    assert_eq!(bench.count(PLANS), plans, "the known state of the set in progress stays");
    let stored = crate::verify::stored_platters(&bench.context, None).unwrap();
    let mut whole = 0;
    let (mut errors, verifier) = (Vec::new(), &bench.sealer.verifier);
    for platter in &stored {
        let report = verifier.verify_stored(platter).unwrap();
        match report.error {
            Some(error) => errors.push((report.set, error)),
            None => whole += 1,
        }
    }
    assert!(whole > 0 && !errors.is_empty());
    assert!(
        errors.iter().all(|(set, error)| *set == first && error.contains("`fulgurite recover`"))
    );
}
