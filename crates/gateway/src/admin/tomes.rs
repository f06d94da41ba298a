//! The operator's calls of the set of tomes.
//!
//! Calls that show state touch no disk; calls that spin up disks or take long are POSTs.

use std::sync::Arc;

use fulgurite_tome::objects::{Progress, TomeId, TomeStore};
use http::{Response, StatusCode};
use s3s::Body;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::events::Events;
use super::routes::TomesCall;
use super::{Admin, ByteProgress, Failure, parse_parameter, refuse, respond, too_many_subscribers};
use crate::{TierKind, TierStore};

/// Whether a call takes a tome.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TomeArgument {
    None,
    Optional,
    Required,
}

impl TomesCall {
    const fn tome_argument(self) -> TomeArgument {
        match self {
            Self::Status | Self::Ledger | Self::Verify | Self::Recover | Self::Events => {
                TomeArgument::None
            }
            Self::Scrub => TomeArgument::Optional,
            Self::Rebuild | Self::Retire | Self::Inventory => TomeArgument::Required,
        }
    }
}

impl Admin {
    /// Serves a call of the set of tomes.
    pub(super) async fn serve_tomes(
        &self,
        call: TomesCall,
        query: &str,
        slot: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let tomes = match self.tier(query, TierKind::Tome, TierStore::tome) {
            Ok(tomes) => tomes.clone(),
            Err(refusal) => return *refusal,
        };
        let tome = match (parse_parameter(query, "tome"), call.tome_argument()) {
            (Ok(Some(_)) | Err(()), TomeArgument::None) => {
                let message = "this call is for the whole set and takes no tome";
                return refuse(StatusCode::BAD_REQUEST, "Invalid", message);
            }
            (Err(()), TomeArgument::Optional | TomeArgument::Required)
            | (Ok(None), TomeArgument::Required) => {
                let message = "tome must be given: the number of a tome in the set";
                return refuse(StatusCode::BAD_REQUEST, "Invalid", message);
            }
            (Ok(Some(tome)), TomeArgument::Optional | TomeArgument::Required) => {
                Some(TomeId::new(tome))
            }
            (Ok(None), TomeArgument::None | TomeArgument::Optional) => None,
        };
        match call {
            TomesCall::Status => respond(tomes.snapshot().await),
            TomesCall::Events => match self.acquire_subscriber_slot() {
                Some(slot) => Events::new(tomes.watch(), self.stopping.clone(), slot).response(),
                None => too_many_subscribers(),
            },
            TomesCall::Ledger => respond(Ok::<_, Failure>(tomes.ledger().await)),
            TomesCall::Verify
            | TomesCall::Scrub
            | TomesCall::Rebuild
            | TomesCall::Retire
            | TomesCall::Inventory
            | TomesCall::Recover => {
                let work = Arc::<Progress>::default();
                let progress_source = ByteProgress(Arc::clone(&work));
                self.stream(slot, progress_source, async move {
                    run_call(call, tome, &tomes, &work).await
                })
            }
        }
    }
}

/// Runs a long call and returns its report.
async fn run_call(
    call: TomesCall,
    tome: Option<TomeId>,
    tomes: &TomeStore,
    work: &Progress,
) -> Result<Value, Failure> {
    let tome_id = tome.unwrap_or_default();
    Ok(match call {
        TomesCall::Scrub => json!(tomes.scrub(tome, work).await?),
        TomesCall::Rebuild => json!(tomes.rebuild(tome_id, work).await?),
        TomesCall::Retire => json!(tomes.retire(tome_id, work).await?),
        TomesCall::Inventory => json!(tomes.inventory(tome_id, work).await?),
        TomesCall::Recover => json!(tomes.recover(work).await?),
        TomesCall::Verify | TomesCall::Status | TomesCall::Ledger | TomesCall::Events => {
            json!(tomes.compare(work).await?)
        }
    })
}
