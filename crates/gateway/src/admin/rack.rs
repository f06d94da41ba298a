//! The operator's calls of the rack of cold disks.
//!
//! Calls that show state touch no disk; calls that spin up disks are POSTs.

use std::sync::Arc;

use fulgurite_rack::{PlaceId, Progress, RackStore};
use http::{Response, StatusCode};
use s3s::Body;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::events::Events;
use super::routes::RackCall;
use super::{Admin, ByteProgress, Failure, parse_parameter, refuse, respond, too_many_subscribers};
use crate::{TierKind, TierStore};

impl Admin {
    /// Serves a call of the rack.
    pub(super) async fn serve_rack(
        &self,
        call: RackCall,
        query: &str,
        slot: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let rack = match self.tier(query, TierKind::Rack, TierStore::rack) {
            Ok(rack) => rack.clone(),
            Err(refusal) => return *refusal,
        };
        match call {
            RackCall::Status => return respond(rack.status().await),
            RackCall::Ledger => return respond(rack.ledger().await),
            RackCall::Events => return self.rack_events(&rack).await,
            RackCall::Verify | RackCall::Rebuild | RackCall::Replace | RackCall::Recover => {}
        }
        let needs_place = matches!(call, RackCall::Rebuild | RackCall::Replace);
        let place = match parse_parameter(query, "place") {
            Ok(Some(place)) if needs_place => PlaceId::new(place),
            Ok(None) if !needs_place => PlaceId::default(),
            _ if needs_place => {
                let message = "place must be given: the number of a place in the rack";
                return refuse(StatusCode::BAD_REQUEST, "Invalid", message);
            }
            _ => {
                let message = "this call is for the whole rack and takes no place";
                return refuse(StatusCode::BAD_REQUEST, "Invalid", message);
            }
        };
        self.run_call(call, rack, place, slot)
    }

    async fn rack_events(&self, rack: &RackStore) -> Response<Body> {
        let Some(slot) = self.acquire_subscriber_slot() else { return too_many_subscribers() };
        match rack.watch().await {
            Ok(watch) => Events::new(watch, self.stopping.clone(), slot).response(),
            Err(error) => Failure::from(error).response(),
        }
    }

    fn run_call(
        &self,
        call: RackCall,
        rack: RackStore,
        place: PlaceId,
        slot: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let progress = Arc::<Progress>::default();
        let progress_source = ByteProgress(Arc::clone(&progress));
        self.stream(slot, progress_source, async move {
            let report = match call {
                RackCall::Rebuild => json!(rack.rebuild_with_progress(place, &progress).await?),
                RackCall::Replace => json!(rack.replace_with_progress(place, &progress).await?),
                RackCall::Recover => json!(rack.recover().await?),
                RackCall::Verify | RackCall::Status | RackCall::Ledger | RackCall::Events => {
                    json!(rack.verify_with_progress(&progress).await?)
                }
            };
            Ok::<Value, Failure>(report)
        })
    }
}
