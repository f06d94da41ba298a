//! Shards of one body from several sets, and catalogs of future programs.

use std::collections::BTreeMap;

use fulgurite_catalog::Transaction;
use fulgurite_units::PlatterId;

use super::shard_chain::contiguous;
use super::{RecoverOptions, recover};
use crate::rows::{self, BUCKETS, BucketRow, Shard};
use crate::{ArchiveError, testing};

/// Checks shards given as (set, offset, bytes), the earliest set first; expects (set, offset).
#[track_caller]
fn check(shards: &[(u8, u64, u64)], bytes: u64, expected: &[(u8, u64)]) {
    let mut found: BTreeMap<u64, Vec<Shard>> = BTreeMap::new();
    for &(set, body_offset, bytes) in shards {
        let platter = PlatterId::from_bytes([set; 16]);
        let shard = Shard { platter, offset: 0, body_offset, bytes, crc: None };
        found.entry(body_offset).or_default().push(shard);
    }
    let run: Vec<(u8, u64)> = contiguous(&found, bytes)
        .iter()
        .map(|shard| (shard.platter.to_bytes()[0], shard.body_offset))
        .collect();
    assert_eq!(run, expected);
}

#[test]
fn body_is_assembled_from_two_sets() {
    let first = [(1, 0, 10), (1, 10, 10), (1, 20, 10), (1, 30, 10)];
    let second = [(2, 20, 15), (2, 35, 5)];
    check(&first, 40, &[(1, 0), (1, 10), (1, 20), (1, 30)]);
    check(&[&first[..], &second].concat(), 40, &[(1, 0), (1, 10), (2, 20), (2, 35)]);
    // The end of the later one is missing, and the earlier one is complete, so it is taken.
    check(&[&first[..], &second[..1]].concat(), 40, &[(1, 0), (1, 10), (1, 20), (1, 30)]);
    // The bad shard and the end of the first set are lost.
    check(&[&first[..2], &second].concat(), 40, &[(1, 0), (1, 10), (2, 20), (2, 35)]);
    check(&[&first[..3], &second].concat(), 40, &[(1, 0), (1, 10), (2, 20), (2, 35)]);
    check(&[&first[..3], &second[1..]].concat(), 40, &[]);
    check(&first[1..], 40, &[]);
}

#[test]
fn rewritten_body_is_taken_from_the_later_set() {
    check(&[(1, 0, 10), (1, 10, 10), (2, 0, 10), (2, 10, 10)], 20, &[(2, 0), (2, 10)]);
    check(&[(1, 0, 10), (1, 10, 10), (2, 0, 12), (2, 12, 8)], 20, &[(2, 0), (2, 12)]);
}

#[test]
fn empty_body_has_one_empty_shard() {
    check(&[(1, 0, 0)], 0, &[(1, 0)]);
    check(&[], 0, &[]);
    check(&[(1, 0, 0)], 5, &[]);
    check(&[(1, 0, 0), (2, 0, 5)], 5, &[(2, 0)]);
    check(&[(2, 0, 5), (1, 0, 0), (1, 5, 0)], 5, &[(2, 0)]);
}

/// It is readable, but only a newer program understands all of it: rebuilding it here would lose
/// data.
#[test]
fn newer_catalog_is_rebuilt_only_with_salvage() {
    let dir = testing::dir();
    let state = testing::state(&dir);
    let mut row = rows::encode(&BucketRow { created: testing::NOW }).unwrap();
    row[0] = 200;
    let commit = move |tx: &mut Transaction<'_>| -> Result<(), ArchiveError> {
        Ok(tx.put(BUCKETS, rows::bucket_key("vault"), row)?)
    };
    state.committer.commit_blocking(commit).unwrap();
    drop(state);
    let recovered = |salvage| {
        let options = RecoverOptions { salvage, ..RecoverOptions::default() };
        recover(testing::config(&dir), options, &|_| {})
    };
    let refused = recovered(false).unwrap_err();
    assert!(matches!(refused, ArchiveError::Unusable { .. }), "{refused}");
    for words in ["newer program", "\"buckets\"", "version 200", "--salvage"] {
        assert!(refused.to_string().contains(words), "{refused}");
    }
    let report = recovered(true).unwrap();
    assert_eq!(report.catalog_damages, ["1 rows do not decode"]);
}
