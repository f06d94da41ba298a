//! The operator's calls of a tier, whatever its kind.
//!
//! ```text
//!   GET  /-/admin/tiers                     all of them: name, kind, failures, operations
//!   GET  /-/admin/tiers/NAME                the state of one; by its kind
//!   GET  /-/admin/tiers/NAME/ledger         the last spin-ups of its disks
//!   GET  /-/admin/tiers/NAME/events         server-sent events
//!   POST /-/admin/tiers/NAME/OPERATION[?target=UNIT]    lines of JSON, the last one a report
//! ```
//!
//! Calls that show state touch no disk; calls that spin up disks or take long are POSTs.

use std::sync::Arc;

use bytes::Bytes;
use fulgurite_archive::WatchEnd;
use fulgurite_archive::config::TierName;
use fulgurite_tier::{Operation, OperationArgs, Tier, TierEvent};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{Response, StatusCode};
use s3s::Body;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::events::{EventSource, Events, event};
use super::routes::TierCall;
use super::{Admin, Failure, OperationProgress, refuse, reply, respond, too_many_subscribers};
use crate::TierSummary;
use crate::percent::query_value;

impl Admin {
    /// Returns the summaries of all tiers.
    pub(super) async fn list_tiers(&self) -> Response<Body> {
        let summaries = self.tiers.iter().map(|(name, tier)| TierSummary::of(name, &**tier));
        reply(StatusCode::OK, &json!(futures::future::join_all(summaries).await))
    }

    /// Serves a call of the tier `name`.
    pub(super) async fn serve_tier(
        &self,
        name: &str,
        call: TierCall,
        query: &str,
        slot: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let is_meant = |known: &&TierName| known.as_str() == name;
        let Some(name) = self.tiers.keys().find(is_meant) else {
            let message = format!(
                "this server has no tier \"{name}\"; `fulgurite tier list` shows those it has"
            );
            return refuse(StatusCode::NOT_FOUND, "NotFound", &message);
        };
        let tier = &self.tiers[name];
        match call {
            TierCall::Snapshot => respond(tier.snapshot().await),
            TierCall::Ledger => respond(tier.ledger().await),
            TierCall::Events => self.tier_events(&**tier).await,
            TierCall::Run(operation) => self.run_operation(tier, operation, query, slot),
        }
    }

    async fn tier_events(&self, tier: &dyn Tier) -> Response<Body> {
        let Some(slot) = self.acquire_subscriber_slot() else { return too_many_subscribers() };
        match tier.watch().await {
            Ok(events) => Events::new(TierWatch(events), self.stopping.clone(), slot).response(),
            Err(error) => Failure::from(error).response(),
        }
    }

    fn run_operation(
        &self,
        tier: &Arc<dyn Tier>,
        operation: Operation,
        query: &str,
        slot: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let value = |name| query_value(query, name);
        let args =
            OperationArgs { target: value("target"), table: value("table"), blobs: value("blobs") };
        if let Err(error) = tier.check(operation, &args) {
            return Failure::from(error).response();
        }
        let (tier, progress) = (Arc::clone(tier), Arc::default());
        let progress_source = OperationProgress(Arc::clone(&progress));
        self.stream(
            slot,
            progress_source,
            async move { tier.run(operation, &args, &progress).await },
        )
    }
}

/// The events of a tier for one subscriber.
struct TierWatch(BoxStream<'static, TierEvent>);

impl EventSource for TierWatch {
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        let end = match self.0.next().await {
            Some(TierEvent::Event { name, step, data }) => {
                return Some((event(name, Some(step), &data), false));
            }
            Some(TierEvent::Late) => WatchEnd::Late,
            None => WatchEnd::Stopped,
        };
        Some((event("end", None, &end), true))
    }
}
