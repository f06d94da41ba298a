//! Selects the shards that make up a body.
//!
//! If a platter lost a shard, the body was written again from that shard on, to a later set; if
//! staging had damaged a body, all of it was written again. So several shards of different lengths
//! may start at one offset, and some end where none begins.
//!
//! ```text
//! set 1   [0      ][10     ][20 bad ][30     ]
//! set 2                     [20         ][35 ]
//! ```

use std::collections::BTreeMap;

use crate::rows::Shard;

/// Returns a gapless sequence of shards over all `bytes` of a body; empty when there is none.
/// `found` has the shards by offset, those of later sets last: where two lead to the end, the later
/// one is taken.
pub(super) fn contiguous(found: &BTreeMap<u64, Vec<Shard>>, bytes: u64) -> Vec<Shard> {
    // By offset: a shard from which a gapless sequence leads to the end.
    let mut chain: BTreeMap<u64, Shard> = BTreeMap::new();
    for (&first, shards) in found.iter().rev() {
        let leads_to_end = |shard: &&Shard| {
            let end = first + shard.bytes;
            end == bytes || shard.bytes > 0 && chain.contains_key(&end)
        };
        if let Some(&shard) = shards.iter().rev().find(leads_to_end) {
            chain.insert(first, shard);
        }
    }
    let mut run = Vec::new();
    let mut end = 0;
    while let Some(&shard) = chain.get(&end) {
        run.push(shard);
        end += shard.bytes;
        if end == bytes {
            return run;
        }
    }
    assert!(run.is_empty(), "a gapless sequence leads to the end");
    run
}
