//! Objects of lost tomes are removed at once, and do not come back: not by a rebuild, not by a tome
//! that returns, and not by a start.

use std::collections::BTreeSet;

use fulgurite_tome::{InjectedFault, TomeSet};
use fulgurite_tome_core::TomeId;
use fulgurite_units::ErrorKind;

use crate::rebuild::{all_there, busiest, carry, content, fill};
use crate::shelf::{BLOCK, Shelf, lose, metadata, noise, pull};

fn is_gone(set: &TomeSet, name: &str) -> bool {
    let kind = set.tome_of(name).err().map(|error| error.kind());
    kind == Some(ErrorKind::NotFound) && !set.list().contains(&name.to_owned())
}

/// Returns which of some objects a tome has.
fn objects_of(set: &TomeSet, names: &[String], tome: TomeId) -> Vec<String> {
    let own = names.iter().filter(|name| set.tome_of(name).unwrap() == tome);
    own.cloned().collect()
}

/// Returns the names in the metadata stores of all tomes, each once.
fn named(shelf: &Shelf) -> Vec<String> {
    let all = (0..10).map(TomeId::new).filter(|tome| metadata(&shelf.folder, *tome).exists());
    let names = |tome| {
        let unplugged = pull(&shelf.folder, tome);
        unplugged.metadata().objects().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    all.flat_map(names).collect()
}

#[tokio::test]
async fn object_deleted_while_tome_is_lost_is_not_rebuilt() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 24).await;
    let lost = busiest(&set, &names);
    let own = objects_of(&set, &names, lost);
    assert!(own.len() > 3, "{own:?}");
    set.stop();
    drop(set);
    lose(&shelf.folder, lost);

    let set = shelf.open();
    let (removed, overwritten) = (&own[0], &own[1]);
    set.delete(removed).await.unwrap();
    assert!(is_gone(&set, removed));
    assert_eq!(set.delete(removed).await.unwrap_err().kind(), ErrorKind::NotFound);
    set.delete(overwritten).await.unwrap();
    let tome = shelf.wait(set.put(overwritten, noise("later", 700))).await.unwrap();
    assert_ne!(tome, lost);
    set.stop();
    drop(set);
    // A start knows it, and so does the tome that rebuilds it.
    shelf.add();
    let set = shelf.init();
    assert!(is_gone(&set, removed));
    set.rebuild(lost).await.unwrap();
    // Another one is removed while its member slot moves.
    let late = own.iter().skip(2).find(|name| set.tome_of(name).unwrap() == lost).unwrap();
    set.delete(late).await.unwrap();
    let status = shelf.moved(&set).await;
    assert!(status.is_well(), "{:?}", status.reasons);
    assert!(is_gone(&set, removed) && is_gone(&set, late));
    let read = shelf.wait(set.get(overwritten)).await.unwrap();
    assert_eq!(read, noise("later", 700));
    let is_left = |name: &&String| ![removed, overwritten, late].contains(name);
    for (number, name) in names.iter().enumerate().filter(|(_, name)| is_left(name)) {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name, number), "{name}");
    }
    // Its name and its blocks are free.
    shelf.wait(set.put(removed, noise(removed, BLOCK))).await.unwrap();
    shelf.wait(set.protected(removed)).await.unwrap();
    shelf.settle(&set).await;
    let known: BTreeSet<String> = set.list().into_iter().collect();
    assert_eq!(known.len(), names.len() - 1);
    set.stop();
    drop(set);
    let named = named(&shelf);
    assert_eq!(named.len(), known.len(), "no name is left of removed objects");
    assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), known);
}

#[tokio::test]
async fn object_deleted_while_tome_is_away_stays_deleted() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 24).await;
    let away = busiest(&set, &names);
    let own = objects_of(&set, &names, away);
    set.stop();
    drop(set);
    carry(&shelf, away, false);
    let set = shelf.open();
    set.delete(&own[0]).await.unwrap();
    set.delete(&own[1]).await.unwrap();
    shelf.wait(set.put(&own[1], noise("later", 700))).await.unwrap();
    set.stop();
    drop(set);
    carry(&shelf, away, true);

    for _ in 0..2 {
        let set = shelf.open();
        assert!(is_gone(&set, &own[0]));
        assert_eq!(shelf.wait(set.get(&own[1])).await.unwrap(), noise("later", 700));
        let status = set.status().await;
        assert!(status.is_well(), "no name is duplicated: {:?}", status.reasons);
        shelf.settle(&set).await;
        set.stop();
    }
    let count = named(&shelf).into_iter().filter(|name| *name == own[1]).count();
    assert_eq!(count, 1, "the tome has removed its own");
    assert!(!named(&shelf).contains(&own[0]));
    // A name that is put again stays, though it was removed before.
    let set = shelf.open();
    shelf.wait(set.put(&own[0], noise("again", 300))).await.unwrap();
    shelf.settle(&set).await;
    set.stop();
    drop(set);
    let set = shelf.open();
    assert_eq!(shelf.wait(set.get(&own[0])).await.unwrap(), noise("again", 300));
    set.stop();
}

#[tokio::test]
async fn delete_on_failed_tome_applies_at_next_start() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 16).await;
    let tome = busiest(&set, &names);
    let own = objects_of(&set, &names, tome);
    shelf.faults.inject(tome, InjectedFault::Commit);
    // It is the removal that cannot be persisted.
    set.delete(&own[0]).await.unwrap();
    let status = set.status().await;
    assert!(status.tomes[tome.get() as usize].failure.is_some(), "{:?}", status.reasons);
    assert!(is_gone(&set, &own[0]));
    set.delete(&own[1]).await.unwrap();
    set.stop();
    drop(set);
    shelf.faults.mend(tome);
    let set = shelf.open();
    assert!(is_gone(&set, &own[0]) && is_gone(&set, &own[1]));
    assert_eq!(set.list().len(), names.len() - 2);
    let left: Vec<String> = names.iter().filter(|name| !own.contains(name)).cloned().collect();
    assert!(!left.is_empty());
    for (number, name) in names.iter().enumerate().filter(|(_, name)| left.contains(name)) {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name, number), "{name}");
    }
    shelf.settle(&set).await;
    all_there(&shelf, &set, &[]).await;
    set.stop();
}
