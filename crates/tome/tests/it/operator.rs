//! Operator requests to a set: scrub, verify, the ledger.

use std::os::unix::fs::FileExt as _;

use fulgurite_disks::CauseKind;
use fulgurite_tome_core::TomeId;
use fulgurite_units::ErrorKind;

use crate::degraded_reads::groups;
use crate::rebuild::{all_there, busiest, fill};
use crate::shelf::{Shelf, lose, root};

#[tokio::test]
async fn scrub_repairs_a_bad_block() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 16).await;
    let tome = busiest(&set, &names);
    let status = |status: fulgurite_tome::SetStatus| {
        status.tomes.into_iter().find(|one| one.tome == tome).unwrap()
    };
    let before = status(set.status().await);
    // The first block of its file, after the header and a label.
    let files: Vec<_> = std::fs::read_dir(root(&shelf.folder, tome)).unwrap().collect();
    let blocks = files.into_iter().map(|file| file.unwrap().path());
    let blocks = blocks.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(blocks).unwrap();
    let (mut byte, at) = ([0], 4096 + 512 + 7);
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
    drop(file);
    shelf.wait(set.scrub(tome)).await.unwrap();
    let after = status(set.status().await);
    assert_eq!((after.healed, after.to_scrub), (before.healed + 1, 0));
    assert_eq!(after.scrubbed.passes, before.scrubbed.passes + 1);
    let spin_ups = set.spin_ups().await;
    let last = spin_ups.iter().rfind(|spin_up| spin_up.places[0].get() == tome.get()).unwrap();
    assert_eq!(last.cause.kind(), CauseKind::Scrub, "{last:?}");
    assert_eq!(set.scrub(TomeId::new(77)).await.unwrap_err().kind(), ErrorKind::NotFound);
    all_there(&shelf, &set, &names).await;
    set.stop();
    drop(set);
    lose(&shelf.folder, tome);
    let set = shelf.open();
    assert_eq!(set.scrub(tome).await.unwrap_err().kind(), ErrorKind::Unavailable);
    set.stop();
}

#[tokio::test]
async fn verify_compares_groups_without_spin_ups() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 16).await;
    let spin_ups = set.spin_ups().await;
    assert!(spin_ups.iter().any(|spin_up| spin_up.cause.kind() == CauseKind::Init));
    assert!(spin_ups.iter().any(|spin_up| spin_up.cause.kind() == CauseKind::Write));
    let checked = groups(&set).await;
    assert_eq!(checked.len(), set.groups().unwrap());
    for group in &checked {
        assert_eq!((group.findings.len(), group.exchanged), (0, 5), "{group:?}");
        assert_eq!((group.tomes.len(), group.failure.as_ref()), (5, None));
    }
    assert_eq!(set.spin_ups().await.len(), spin_ups.len(), "no disk spun up");
    let lost = busiest(&set, &names);
    set.stop();
    drop(set);
    lose(&shelf.folder, lost);
    let set = shelf.open();
    for group in groups(&set).await {
        let is_of_lost = group.tomes.contains(&lost);
        assert_eq!(group.failure.is_some(), is_of_lost, "{group:?}");
    }
    set.stop();
}
