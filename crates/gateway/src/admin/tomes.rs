//! The operator's calls of the set of tomes.
//!
//! What shows it touches no disk; what wakes disks is a POST.

use fulgurite_tome_store::TomeStore;
use http::{Response, StatusCode};
use s3s::Body;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::routes::TomesCall;
use super::{Admin, Failure, Told, answer, refuse};

/// How long a call of the set has gone on, and how much there is.
struct ToldByTomes(TomeStore);

impl Told for ToldByTomes {
    async fn tell(&self, seconds: f64) -> Option<Value> {
        let totals = self.0.totals().ok()?;
        Some(json!({ "seconds": seconds, "objects": totals.objects }))
    }
}

impl Admin {
    /// Serves a call of the set of tomes.
    pub(super) async fn serve_tomes(
        &self,
        call: TomesCall,
        slot: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let Some(tomes) = self.cold.tomes.clone() else {
            let message = "this server has no tomes: [tomes] of the configuration describes some";
            return refuse(StatusCode::NOT_FOUND, "NotFound", message);
        };
        match call {
            TomesCall::Status => answer(tomes.snapshot().await),
            TomesCall::Recover => {
                let told = ToldByTomes(tomes.clone());
                self.stream(slot, told, async move {
                    Ok::<Value, Failure>(json!(tomes.recover().await?))
                })
            }
        }
    }
}
