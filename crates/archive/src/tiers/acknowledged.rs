//! Bodies that lie in a tier before their client is answered, so that what is acknowledged does not
//! hang on the disk of one machine (design note 0034).
//!
//! ```text
//! PUT: log synced --> "removals" names the bodies --> put in the tier --> commit --> 200
//!        commit:  the object is there, "removals" names them no more, and "copies" does, unless
//!                 the tier is their home
//! on glass, in its home, deleted: "copies" --> "removals" --> removed
//! ```
//!
//! A crash before the commit leaves what the mover of the tier removes, and an object that was
//! there before as it was. A put is then as it ever was: staged, queued, brought to its home.

use std::sync::Arc;

use fulgurite_catalog::Transaction;
use fulgurite_units::{ObjectId, error_chain};
use futures::{StreamExt as _, TryStreamExt as _};

use super::ObjectTier;
use super::moves::{cargo, note_taken};
use super::objects::Pin;
use crate::bodies::digest::Checksum;
use crate::bodies::entry::Entry;
use crate::ground::Ground;
use crate::objects::classes::{Home, TierName};
use crate::objects::commit::require_bucket;
use crate::objects::names::ObjectName;
use crate::rows::{self, BodyRow, COPIES, ObjectRow, REMOVALS};
use crate::{ArchiveError, Result};

/// Bodies in a tier, of an object that is not committed yet. They stay there while this is kept.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledged {
    tier: Arc<ObjectTier>,
    bodies: Vec<ObjectId>,
    _pins: Arc<Vec<Pin>>,
}

impl Acknowledged {
    /// Brings the bodies of an object, of parts with their checksums, to the tier at which puts are
    /// acknowledged. `None` when
    /// there is no such tier, and for objects that lie online: those have no other home.
    ///
    /// # Errors
    /// `TierUnavailable` when the tier does not take them. What it took is removed later.
    pub(crate) async fn bring(
        ground: &Arc<Ground>,
        name: &ObjectName,
        object: &ObjectRow,
        bodies: &[(BodyRow, Option<Checksum>)],
    ) -> Result<Option<Self>> {
        let Some(tier) = &ground.config.acknowledged_at else { return Ok(None) };
        if object.home == Home::Online {
            return Ok(None);
        }
        let tier = Arc::clone(ground.tiers.get(tier)?);
        let brought = Self::bring_to(&tier, ground, name, object, bodies).await;
        if let Err(error) = &brought {
            tracing::warn!(
                tier = %tier.name(), error = error_chain(error),
                "a put is refused: it cannot be brought to where puts are acknowledged"
            );
        }
        brought.map(Some)
    }

    async fn bring_to(
        tier: &Arc<ObjectTier>,
        ground: &Arc<Ground>,
        name: &ObjectName,
        object: &ObjectRow,
        bodies: &[(BodyRow, Option<Checksum>)],
    ) -> Result<Self> {
        let created = require_bucket(&*ground.kv, &name.bucket)?.created;
        let mut cargoes = Vec::with_capacity(bodies.len());
        for (index, (body, checksum)) in (0..).zip(bodies) {
            let place = (index, body.bytes, body.digest);
            let entry = Entry::of(name.clone(), created, object, place);
            let entry = entry.with_part(checksum.clone());
            let Some((kind, extents)) = body.log.clone() else {
                let what = format!("body {} is in no log before it is committed", body.body_id);
                return Err(ArchiveError::Internal { what });
            };
            cargoes.push(cargo(ground, &entry, body, ground.log(kind).reader(extents))?);
        }
        let mut pins = Vec::with_capacity(bodies.len());
        for (body, _) in bodies {
            // Parts may have been brought by a completion that failed; all others are new.
            pins.push(match object.part_count {
                Some(_) => tier.pin_again(body.body_id).await,
                None => tier.pin(body.body_id),
            });
        }
        note_taken((&ground.kv, &ground.committer), tier).await?;
        let named: Vec<_> = bodies
            .iter()
            .map(|(body, _)| (rows::removal_key(tier.name(), body.body_id), body.key_slot))
            .collect();
        let note = move |tx: &mut Transaction<'_>| -> Result<()> {
            named.into_iter().try_for_each(|(key, slot)| rows::put(tx, REMOVALS, key, &slot))
        };
        ground.committer.commit(note).await?;
        ground.fail.pass("put-named");
        // The threads of tiers may wait for a disk; those of clients may not.
        let shared = Arc::clone(tier);
        let brought = tier.runtime().spawn(async move {
            let puts = futures::stream::iter(cargoes).map(|cargo| shared.bring(cargo));
            let puts = puts.buffer_unordered(shared.bodies_at_once()).try_collect::<()>();
            if shared.may_be_unmounted() {
                shared.confirm().await?;
                puts.await?;
                return shared.confirm().await;
            }
            // Of a bucket it is asked at the same time: it is as far away as sites are.
            tokio::try_join!(shared.confirm(), puts).map(drop)
        });
        brought
            .await
            .map_err(|error| ArchiveError::Internal { what: format!("a put died: {error}") })??;
        ground.fail.pass("put-brought");
        let bodies = bodies.iter().map(|(body, _)| body.body_id).collect();
        Ok(Self { tier: Arc::clone(tier), bodies, _pins: Arc::new(pins) })
    }

    /// Has rows say that the bodies are there, in the transaction that makes their object.
    pub(crate) fn settle(&self, tx: &mut Transaction<'_>, home: &Home) -> Result<()> {
        let tier = self.tier.name();
        for &body in &self.bodies {
            tx.delete(REMOVALS, rows::removal_key(tier, body))?;
            if is_home(home, tier) {
                self.tier.note_brought(body);
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
