//! Copies bodies to a tier before the client is answered, so that acknowledged objects do not
//! depend on the disk of one machine (design note 0034).
//!
//! ```text
//! PUT: log synced --> "removals" names the bodies --> put in the tier --> commit --> 200
//!        commit:  the object exists, "removals" no longer names them, and "copies" does, unless
//!                 the tier is their home
//! on glass, in its home, deleted: "copies" --> "removals" --> removed
//! ```
//!
//! After a crash before the commit, the tier's mover removes the copies, and a previous object is
//! unchanged. Otherwise a put is as usual: staged, queued, moved to its home.

use std::sync::Arc;

use fulgurite_catalog::Transaction;
use fulgurite_units::{ObjectId, error_chain};
use futures::{StreamExt as _, TryStreamExt as _};

use super::ObjectTier;
use super::moves::{claim_tier, outgoing_body};
use super::objects::Pin;
use crate::bodies::digest::Checksum;
use crate::bodies::entry::Entry;
use crate::model::classes::{Home, TierName};
use crate::model::names::ObjectName;
use crate::rows::lookup::require_bucket;
use crate::rows::{self, BodyRow, COPIES, ObjectRow, REMOVALS};
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

/// Bodies in a tier, of an object that is not committed yet. They are pinned there until this is
/// dropped.
#[derive(Clone, Debug)]
pub(crate) struct AcknowledgedCopies {
    tier: Arc<ObjectTier>,
    bodies: Vec<ObjectId>,
    _pins: Arc<Vec<Pin>>,
}

impl AcknowledgedCopies {
    /// Copies the bodies of an object, given with the checksums of parts, to the tier at which puts
    /// are acknowledged. `None` if there is no such tier, and for online objects, which have no
    /// other home.
    ///
    /// # Errors
    /// `TierUnavailable` when the tier does not accept them. What it accepted is removed later.
    pub(crate) async fn upload(
        state: &Arc<ArchiveState>,
        name: &ObjectName,
        object: &ObjectRow,
        bodies: &[(BodyRow, Option<Checksum>)],
    ) -> Result<Option<Self>> {
        let Some(tier) = &state.config.acknowledged_at else { return Ok(None) };
        if object.home == Home::Online {
            return Ok(None);
        }
        let tier = Arc::clone(state.tiers.get(tier)?);
        let uploaded = Self::upload_to(&tier, state, name, object, bodies).await;
        if let Err(error) = &uploaded {
            tracing::warn!(
                tier = %tier.name(), error = error_chain(error),
                "a put is refused: it cannot be copied to the tier that acknowledges puts"
            );
        }
        uploaded.map(Some)
    }

    async fn upload_to(
        tier: &Arc<ObjectTier>,
        state: &Arc<ArchiveState>,
        name: &ObjectName,
        object: &ObjectRow,
        bodies: &[(BodyRow, Option<Checksum>)],
    ) -> Result<Self> {
        let created = require_bucket(&*state.kv, &name.bucket)?.created;
        let mut outgoing_bodies = Vec::with_capacity(bodies.len());
        for (index, (body, checksum)) in (0..).zip(bodies) {
            let place = (index, body.bytes, body.digest);
            let entry = Entry::build(name.clone(), created, object, place);
            let entry = entry.with_part(checksum.clone());
            let Some(log) = body.in_log() else {
                let what = format!("body {} is in no log before it is committed", body.body_id);
                return Err(ArchiveError::Internal { what });
            };
            outgoing_bodies.push(outgoing_body(
                state,
                &entry,
                body,
                state.log(log.kind).reader(log.extents.clone()),
            )?);
        }
        let mut pins = Vec::with_capacity(bodies.len());
        for (body, _) in bodies {
            // A failed completion may have copied its parts already; all other bodies are new.
            pins.push(match object.part_count {
                Some(_) => tier.pin_existing(body.body_id).await,
                None => tier.pin(body.body_id),
            });
        }
        claim_tier((&state.kv, &state.committer), tier).await?;
        let named: Vec<_> = bodies
            .iter()
            .map(|(body, _)| (rows::removal_key(tier.name(), body.body_id), body.key_slot))
            .collect();
        let note = move |tx: &mut Transaction<'_>| -> Result<()> {
            named.into_iter().try_for_each(|(key, slot)| rows::put(tx, REMOVALS, key, &slot))
        };
        state.committer.commit(note).await?;
        state.runtime.fail.pass("put-named");
        // Threads of tiers may block on a disk; threads of clients may not.
        let shared = Arc::clone(tier);
        let uploaded = tier.runtime().spawn(async move {
            let puts = futures::stream::iter(outgoing_bodies)
                .map(|outgoing_body| shared.upload(outgoing_body));
            let puts = puts.buffer_unordered(shared.bodies_at_once()).try_collect::<()>();
            if shared.may_be_unmounted() {
                shared.confirm().await?;
                puts.await?;
                return shared.confirm().await;
            }
            // A bucket is confirmed in parallel: a round trip to it may be as long as to another
            // site.
            tokio::try_join!(shared.confirm(), puts).map(drop)
        });
        uploaded.await.map_err(|error| ArchiveError::Internal {
            what: format!("a put panicked: {error}"),
        })??;
        state.runtime.fail.pass("put-brought");
        let bodies = bodies.iter().map(|(body, _)| body.body_id).collect();
        Ok(Self { tier: Arc::clone(tier), bodies, _pins: Arc::new(pins) })
    }

    /// Records the copies in the transaction that creates their object.
    pub(crate) fn settle(&self, tx: &mut Transaction<'_>, home: &Home) -> Result<()> {
        let tier = self.tier.name();
        for &body in &self.bodies {
            tx.delete(REMOVALS, rows::removal_key(tier, body))?;
            if is_home(home, tier) {
                self.tier.record_uploaded(body);
            } else {
                rows::put(tx, COPIES, rows::copy_key(body), tier)?;
            }
        }
        Ok(())
    }
}

fn is_home(home: &Home, tier: &TierName) -> bool {
    matches!(home, Home::Tier(name) if name == tier)
}
