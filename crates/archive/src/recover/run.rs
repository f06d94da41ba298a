//! Which of the shards found of a body make up its bytes.
//!
//! A body whose platter could not give a shard back went on, from that shard, in a later set, and
//! a body that staging had damaged was written again whole. So there may be several shards of one
//! place, of other lengths, and some that end where none begins.
//!
//! ```text
//! set 1   [0      ][10     ][20 bad ][30     ]
//! set 2                     [20         ][35 ]
//! ```

use std::collections::BTreeMap;

use crate::rows::Shard;

/// An unbroken run of shards over all `bytes` of a body; empty when there is none. `found` has the
/// shards by their first byte, those of later sets last: where two do, the later one is taken.
pub(super) fn unbroken(found: &BTreeMap<u64, Vec<Shard>>, bytes: u64) -> Vec<Shard> {
    // By first byte: the shard from which on everything to the end is there.
    let mut ways: BTreeMap<u64, Shard> = BTreeMap::new();
    for (&first, shards) in found.iter().rev() {
        let leads_on = |shard: &&Shard| {
            let end = first + shard.bytes;
            end == bytes || shard.bytes > 0 && ways.contains_key(&end)
        };
        if let Some(&shard) = shards.iter().rev().find(leads_on) {
            ways.insert(first, shard);
        }
    }
    let mut run = Vec::new();
    let mut end = 0;
    while let Some(&shard) = ways.get(&end) {
        run.push(shard);
        end += shard.bytes;
        if end == bytes {
            return run;
        }
    }
    assert!(run.is_empty(), "a way leads to the end");
    run
}
