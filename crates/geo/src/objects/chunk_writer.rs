//! Writes the chunks of a streamed object to their sites.
//!
//! Once enough sites have what was written, it does not wait for a site that did not answer lately:
//! a partition gives no error, and every chunk would take the whole blob timeout. Not here: objects
//! of one chunk, whose fragments are written in parallel with their agreement
//! ([`crate::objects::driver`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use fulgurite_geo_core::{Fragment, OpResult};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::runtime::Handle;

use crate::objects::driver::Context;
use crate::objects::fragments::{self, EncodedFragments, Stripe};
use crate::objects::live_map::LiveMap;
use crate::objects::site::Site;

/// Writes all fragments of some chunks, except those that failed before. Returns those that failed
/// now.
pub(crate) async fn write_fragments(
    live: &Arc<LiveMap>,
    stripe: &Stripe,
    encoded: &EncodedFragments,
    failed: &BTreeSet<u8>,
) -> BTreeSet<u8> {
    let all = fragments_of(stripe);
    let targets: Vec<Fragment> = all.filter(|one| !failed.contains(&one.index)).collect();
    let is_down = |fragment: &&Fragment| live.site(fragment.site).is_none_or(Site::is_down);
    let mut writes: FuturesUnordered<_> = targets
        .iter()
        .map(|fragment| async {
            (fragment.index, fragments::write(live, *fragment, encoded).await)
        })
        .collect();
    let mut lacking: BTreeSet<u8> = targets.iter().map(|fragment| fragment.index).collect();
    let mut open = lacking.clone();
    let needed = usize::from(live.map.needed());
    loop {
        let is_enough = targets.len() - lacking.len() >= needed;
        let mut awaited = targets.iter().filter(|fragment| open.contains(&fragment.index));
        if is_enough && awaited.all(|fragment| is_down(&fragment)) {
            break;
        }
        let Some((index, result)) = writes.next().await else { break };
        open.remove(&index);
        if result == OpResult::Done {
            lacking.remove(&index);
        }
    }
    // Writes abandoned here may still succeed; if not, the fragment is rebuilt.
    drop(writes);
    lacking
}

/// Erases the chunks of a write that was never proposed to a row and never will be, so that no
/// version uses it. It runs in the background, and nothing depends on it: an orphan sweep removes
/// fragments that are not erased or arrive later. The same holds if too many are being erased.
pub(crate) fn discard(live: &Arc<LiveMap>, ctx: &Context, stripe: Stripe) {
    let (Ok(room), Ok(runtime)) =
        (Arc::clone(&ctx.discards).try_acquire_owned(), Handle::try_current())
    else {
        return;
    };
    let live = Arc::clone(live);
    runtime.spawn(async move {
        let _room = room;
        let all = fragments_of(&stripe);
        let erased = all.map(|fragment| fragments::erase(&live, &stripe, fragment));
        futures::future::join_all(erased).await;
    });
}

fn fragments_of(stripe: &Stripe) -> impl Iterator<Item = Fragment> + '_ {
    let all = (0..).zip(&stripe.coded.sites);
    all.map(|(index, site)| Fragment { write: stripe.write, index, site: *site })
}
