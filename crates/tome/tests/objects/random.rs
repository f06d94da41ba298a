//! Random operations on a set, compared with a map, across starts.

use std::collections::BTreeMap;

use fulgurite_tome::objects::{PutGuarantee, TomeStore};
use fulgurite_units::Seed;
use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _, PutMode};

use crate::shelf::{Shelf, noise};

const STEPS: u64 = 120;

async fn agree(store: &TomeStore, model: &BTreeMap<String, (u64, usize)>) {
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    let listed: BTreeMap<String, u64> =
        listed.into_iter().map(|meta| (meta.location.to_string(), meta.size)).collect();
    let known: BTreeMap<String, u64> =
        model.iter().map(|(key, (_, length))| (key.clone(), *length as u64)).collect();
    assert_eq!(listed, known);
    let totals = store.totals().unwrap();
    assert_eq!((totals.objects, totals.bytes), (known.len() as u64, known.values().sum()));
}

#[tokio::test]
async fn random_operations_match_a_map() {
    for seed in 1..=3 {
        let shelf = Shelf::new();
        let mut store = shelf.store(PutGuarantee::Local);
        let mut random = Seed::new(seed).stream();
        let mut model = BTreeMap::<String, (u64, usize)>::new();
        for step in 0..STEPS {
            let key = format!("k/{}", random.below(12));
            let path = Path::from(key.as_str());
            let length = match random.below(4) {
                0 => random.below(20),
                1 | 2 => random.below(60_000),
                _ => random.below(2 << 20),
            };
            let length = usize::try_from(length).unwrap();
            match random.below(10) {
                0..=3 => {
                    let is_new = !model.contains_key(&key);
                    let mode =
                        if random.below(2) == 0 { PutMode::Create } else { PutMode::Overwrite };
                    let is_met = is_new || mode == PutMode::Overwrite;
                    let put = store.put_opts(&path, noise(step, length).into(), mode.into()).await;
                    assert_eq!(put.is_ok(), is_met, "seed {seed}, step {step}: {put:?}");
                    if is_met {
                        model.insert(key, (step, length));
                    }
                }
                4..=7 => match model.get(&key) {
                    Some((of, length)) if *length > 0 => {
                        let from = random.below(*length as u64);
                        let to = from + 1 + random.below(*length as u64 - from);
                        let at = |at: u64| usize::try_from(at).unwrap();
                        let found = store.get_range(&path, from..to).await.unwrap();
                        assert_eq!(found, noise(*of, *length)[at(from)..at(to)]);
                    }
                    Some(_) => {
                        assert!(store.get(&path).await.unwrap().bytes().await.unwrap().is_empty());
                    }
                    None => assert!(store.get(&path).await.is_err()),
                },
                8 => {
                    store.delete(&path).await.unwrap();
                    model.remove(&key);
                }
                _ => {
                    store.stop();
                    drop(store);
                    store = shelf.open(PutGuarantee::Local);
                }
            }
            agree(&store, &model).await;
        }
        store.stop();
    }
}
