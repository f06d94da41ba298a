//! The operator's calls of the set of tomes.
//!
//! Calls that show state touch no disk; calls that spin up disks or take long are POSTs.

use std::sync::Arc;

use fulgurite_tome_store::{TomeId, TomeStore, Work};
use http::{Response, StatusCode};
use s3s::Body;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::events::Events;
use super::routes::TomesCall;
use super::{Admin, Failure, ToldInBytes, answer, parsed, refuse, too_many_watch};

/// Whether a call takes a tome.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    None,
    Maybe,
    One,
}

impl TomesCall {
    const fn names(self) -> Names {
        match self {
            Self::Status | Self::Ledger | Self::Verify | Self::Recover | Self::Events => {
                Names::None
            }
            Self::Scrub => Names::Maybe,
            Self::Rebuild | Self::Retire | Self::Survey => Names::One,
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
        let Some(tomes) = self.cold.tomes.clone() else {
            let message = "this server has no tomes: [tomes] of the configuration describes some";
            return refuse(StatusCode::NOT_FOUND, "NotFound", message);
        };
        let tome = match (parsed(query, "tome"), call.names()) {
            (Ok(Some(_)) | Err(()), Names::None) => {
                let message = "this call is of the whole set and takes no tome";
                return refuse(StatusCode::BAD_REQUEST, "Invalid", message);
            }
            (Err(()), Names::Maybe | Names::One) | (Ok(None), Names::One) => {
                let message = "tome must be given: the number of a tome of the set";
                return refuse(StatusCode::BAD_REQUEST, "Invalid", message);
            }
            (Ok(Some(tome)), Names::Maybe | Names::One) => Some(TomeId::new(tome)),
            (Ok(None), Names::None | Names::Maybe) => None,
        };
        match call {
            TomesCall::Status => answer(tomes.snapshot().await),
            TomesCall::Events => match self.watcher() {
                Some(slot) => Events::new(tomes.watch(), self.stopping.clone(), slot).response(),
                None => too_many_watch(),
            },
            TomesCall::Ledger => answer(Ok::<_, Failure>(tomes.ledger().await)),
            TomesCall::Verify
            | TomesCall::Scrub
            | TomesCall::Rebuild
            | TomesCall::Retire
            | TomesCall::Survey
            | TomesCall::Recover => {
                let work = Arc::<Work>::default();
                let told = Arc::clone(&work);
                let told = ToldInBytes(move || told.bytes());
                self.stream(slot, told, async move { done(call, tome, &tomes, &work).await })
            }
        }
    }
}

/// Runs a long call and returns its report.
async fn done(
    call: TomesCall,
    tome: Option<TomeId>,
    tomes: &TomeStore,
    work: &Work,
) -> Result<Value, Failure> {
    let one = tome.unwrap_or_default();
    Ok(match call {
        TomesCall::Scrub => json!(tomes.scrub(tome, work).await?),
        TomesCall::Rebuild => json!(tomes.rebuild(one, work).await?),
        TomesCall::Retire => json!(tomes.retire(one, work).await?),
        TomesCall::Survey => json!(tomes.survey(one, work).await?),
        TomesCall::Recover => json!(tomes.recover(work).await?),
        TomesCall::Verify | TomesCall::Status | TomesCall::Ledger | TomesCall::Events => {
            json!(tomes.compare(work).await?)
        }
    })
}
