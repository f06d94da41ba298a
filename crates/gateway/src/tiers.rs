//! The tiers that the operator can inspect and repair.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use fulgurite_archive::config::TierName;
use fulgurite_tier::{Tier, TierError, TierKind, TierOperation};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The tiers of an archive, by name.
pub type Tiers = BTreeMap<TierName, Arc<dyn Tier>>;

/// A directory or a bucket: only the archive uses it, so there is nothing to operate.
#[derive(Clone, Copy, Debug)]
pub struct ObjectsTier;

#[async_trait]
impl Tier for ObjectsTier {
    fn kind(&self) -> TierKind {
        TierKind::Objects
    }

    async fn snapshot(&self) -> Result<Value, TierError> {
        Ok(json!({}))
    }

    async fn degraded_kinds(&self) -> Result<Vec<String>, TierError> {
        Ok(Vec::new())
    }

    async fn reasons(&self) -> Result<Vec<String>, TierError> {
        Ok(Vec::new())
    }
}

/// A tier in the list of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierSummary {
    /// Its name.
    pub name: TierName,
    /// Its kind.
    pub kind: TierKind,
    /// Its failures; none if it is healthy.
    pub reasons: Vec<String>,
    /// Why its state is not known, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<String>,
    /// The operations that it has.
    pub operations: Vec<TierOperation>,
}

impl TierSummary {
    /// Returns the summary of a tier whose state is not known.
    #[must_use]
    pub fn unanswered(name: &TierName, kind: TierKind, why: &str) -> Self {
        let (reasons, operations) = (Vec::new(), Vec::new());
        Self { name: name.clone(), kind, reasons, unanswered: Some(why.to_owned()), operations }
    }

    /// Asks a tier for its summary. Accesses no disk.
    pub async fn of(name: &TierName, tier: &dyn Tier) -> Self {
        let reasons = tokio::time::timeout(crate::limits::TIER_TIMEOUT, tier.reasons());
        let (reasons, unanswered) = match reasons.await {
            Ok(Ok(reasons)) => (reasons, None),
            Ok(Err(error)) => (Vec::new(), Some(error.to_string())),
            Err(_) => (Vec::new(), Some("it does not respond in time".to_owned())),
        };
        let operations = tier.operations().to_vec();
        Self { name: name.clone(), kind: tier.kind(), reasons, unanswered, operations }
    }
}
