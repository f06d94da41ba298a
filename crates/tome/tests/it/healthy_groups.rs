//! Objects put while a tome is lost go to groups without it, and are protected there.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_tome::{SetOptions, TomeSet};
use fulgurite_tome_core::TomeId;
use fulgurite_units::ErrorKind;

use crate::rebuild::fill;
use crate::shelf::{BLOCK, Shelf, lose, noise, root};

/// Clock steps within which anything else is protected: some hours.
const STEPS: u32 = 6000;

fn is_in_healthy_group(set: &TomeSet, name: &str, lost: TomeId) -> bool {
    let groups = set.groups_of(name).unwrap();
    assert_eq!(groups.len(), 1, "an object is in one region");
    !groups[0].slots().iter().any(|slot| slot.tome == lost)
}

#[tokio::test]
async fn new_objects_prefer_healthy_groups() {
    let shelf = Shelf::new();
    shelf.add();
    let set = shelf.init();
    fill(&shelf, &set, 0, 16).await;
    set.stop();
    drop(set);
    let lost = TomeId::new(4);
    lose(&shelf.folder, lost);

    let set = shelf.open();
    let mut put = BTreeMap::new();
    for number in 0..20 {
        let name = format!("new {number}");
        let bytes = noise(&name, (number % 5 + 1) * BLOCK);
        let tome = shelf.wait(set.put(&name, bytes.clone())).await.unwrap();
        assert!(is_in_healthy_group(&set, &name, lost), "{name} of tome {tome}");
        assert!(!set.is_stranded(&name).unwrap());
        put.insert(name, bytes);
    }
    for name in put.keys() {
        shelf.wait(set.protected(name)).await.unwrap();
    }
    let reasons = set.status().await.reasons;
    assert!(!reasons.iter().any(|why| why.contains("every group with room")), "{reasons:?}");
    // When those are full any group takes it, and the status reports that.
    let mut unhealthy = BTreeSet::new();
    for number in 0..2000 {
        let name = format!("more {number}");
        match shelf.wait(set.put(&name, noise(&name, 12 * BLOCK))).await {
            Ok(_) if is_in_healthy_group(&set, &name, lost) => {}
            Ok(_) => {
                unhealthy.insert(name);
                if unhealthy.len() == 3 {
                    break;
                }
            }
            // Until parities have applied more of the earlier puts.
            Err(error) if error.is_backlog() => {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                shelf.clock.advance(fulgurite_units::Duration::from_secs(2));
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    assert_eq!(unhealthy.len(), 3);
    let reasons = set.status().await.reasons;
    assert!(reasons.iter().any(|why| why.contains("every group with room")), "{reasons:?}");
    for (name, bytes) in &put {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), *bytes);
    }
    set.stop();
}

#[tokio::test]
async fn lack_of_healthy_groups_is_reported_until_rebuild() {
    let shelf = Shelf::new();
    let options = |count: u32| {
        let roots = (0..count).map(TomeId::new).map(|tome| (tome, root(&shelf.folder, tome)));
        SetOptions { roots: roots.collect(), ..shelf.options() }
    };
    let set = TomeSet::init(options(5)).unwrap();
    let names = fill(&shelf, &set, 0, 10).await;
    set.stop();
    drop(set);
    let lost = TomeId::new(2);
    lose(&shelf.folder, lost);

    let set = TomeSet::open(options(5)).unwrap();
    let reasons = set.status().await.reasons;
    let expected = "every group with room has a lost tome (2)";
    assert!(reasons.iter().any(|why| why.contains(expected)), "{reasons:?}");
    // Groups with a lost parity cannot protect anything.
    let mut waits = Vec::new();
    for number in 0..8 {
        let name = format!("new {number}");
        shelf.wait(set.put(&name, noise(&name, 900))).await.unwrap();
        assert!(!is_in_healthy_group(&set, &name, lost) && !set.is_stranded(&name).unwrap());
        let group = set.groups_of(&name).unwrap().remove(0);
        let data = group.split().data() as usize;
        if group.slots()[data..].iter().any(|slot| slot.tome == lost) {
            waits.push(name);
        }
    }
    assert!(!waits.is_empty());
    for name in &waits {
        let mut protected = std::pin::pin!(set.protected(name));
        for _ in 0..STEPS / 8 {
            let turn = std::time::Duration::from_micros(300);
            assert!(tokio::time::timeout(turn, &mut protected).await.is_err(), "{name}");
            shelf.clock.advance(fulgurite_units::Duration::from_secs(2));
        }
    }
    set.stop();
    drop(set);

    let set = TomeSet::init(options(6)).unwrap();
    set.rebuild(lost).await.unwrap();
    let status = shelf.moved(&set).await;
    assert!(!status.reasons.iter().any(|why| why.contains(expected)), "{:?}", status.reasons);
    for name in &waits {
        shelf.wait(set.protected(name)).await.unwrap();
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), noise(name, 900));
    }
    assert_eq!(set.list().len(), names.len() + 8, "none is lost or duplicated");
    assert_eq!(set.groups_of("nothing").unwrap_err().kind(), ErrorKind::NotFound);
    set.stop();
}
