//! Access to a tier: through a running server, over its admin API; or, when none runs, opened by
//! this process, which locks it meanwhile. Both answer with the same JSON.

use std::sync::Arc;

use fulgurite_archive::GlassTier;
use fulgurite_archive::config::TierName;
use fulgurite_gateway::TierSummary;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::progress;
use fulgurite_tier::{
    Operation, OperationArgs, Progress, Tier as OperatedTier, TierEvent, TierOperation,
};
use futures::StreamExt as _;
use serde_json::Value;

use super::{NamedTier, open};
use crate::archive::AdminClient;
use crate::serve;

/// Access to a tier.
#[derive(Debug)]
pub(super) struct TierAccess {
    summary: TierSummary,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Server(AdminClient),
    Opened(Arc<dyn OperatedTier>),
}

/// Runs `action` with access to the tier, and closes it.
pub(super) async fn run_with<T>(
    named: &NamedTier,
    action: impl AsyncFnOnce(&TierAccess) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let name = &named.name;
    if let Some(server) = named.source.server().await? {
        let known = server.tiers().await?;
        let summary = known.iter().find(|tier| tier.name == *name).cloned();
        let summary =
            summary.ok_or_else(|| not_found(name, known.iter().map(|tier| &tier.name)))?;
        return action(&TierAccess { summary, way: Way::Server(server) }).await;
    }
    let (config, data) = (named.source.config()?, named.source.data()?);
    if *name == TierName::glass() {
        let (archive, tiers) = serve::open_existing(&config, &data).await?;
        let tier = Arc::new(GlassTier::new(archive.clone()));
        let summary = TierSummary::of(name, &*tier).await;
        let done = action(&TierAccess { summary, way: Way::Opened(tier) }).await;
        serve::close(&archive, tiers).await?;
        return done;
    }
    let tier = config.tiers.get(name).ok_or_else(|| not_found(name, config.tiers.keys()))?;
    let tier = open(name, tier, &data).await?.tier;
    let summary = TierSummary::of(name, &*tier).await;
    let access = TierAccess { summary, way: Way::Opened(Arc::clone(&tier)) };
    let done = action(&access).await;
    open::stop(name, tier).await;
    done
}

/// Returns the error of a name that no tier has.
pub(super) fn not_found<'a>(
    name: &TierName,
    known: impl Iterator<Item = &'a TierName>,
) -> anyhow::Error {
    let known: Vec<&str> = known.map(TierName::as_str).collect();
    if known.is_empty() {
        let message = format!(
            "no configuration names a tier \"{name}\": give --config FILE with [tiers.{name}], or \
             --tier {name}=KIND:VALUE"
        );
        return ExitError::new(Exit::Config, message).into();
    }
    let message = format!("there is no tier \"{name}\"; there are: {}", known.join(", "));
    ExitError::new(Exit::NotFound, message).into()
}

impl TierAccess {
    pub(super) const fn summary(&self) -> &TierSummary {
        &self.summary
    }

    /// Whether a running server has the tier.
    pub(super) const fn is_served(&self) -> bool {
        matches!(self.way, Way::Server(_))
    }

    pub(super) async fn snapshot(&self) -> anyhow::Result<Value> {
        match &self.way {
            Way::Server(server) => server.get_of_tier(&self.summary.name, "").await,
            Way::Opened(tier) => Ok(tier.snapshot().await?),
        }
    }

    pub(super) async fn ledger(&self) -> anyhow::Result<Value> {
        match &self.way {
            Way::Server(server) => server.get_of_tier(&self.summary.name, "/ledger").await,
            Way::Opened(tier) => Ok(tier.ledger().await?),
        }
    }

    /// Passes events to `on_event`, with their names, until there are no more.
    pub(super) async fn watch(
        &self,
        on_event: &mut (dyn FnMut(&str, &Value) -> anyhow::Result<()> + Send),
    ) -> anyhow::Result<()> {
        match &self.way {
            Way::Server(server) => server.watch_tier(&self.summary.name, on_event).await,
            Way::Opened(tier) => {
                let mut events = tier.watch().await?;
                while let Some(TierEvent::Event { name, data, .. }) = events.next().await {
                    on_event(name, &data)?;
                }
                Ok(())
            }
        }
    }

    /// Runs an operation and shows its progress.
    pub(super) async fn run(
        &self,
        operation: Operation,
        args: &OperationArgs,
        is_quiet: bool,
    ) -> anyhow::Result<Value> {
        let TierSummary { name, kind, operations, .. } = &self.summary;
        TierOperation::check(*kind, operations, operation, args)
            .map_err(|error| ExitError::new(Exit::Usage, format!("tier {name}: {error}")))?;
        match &self.way {
            Way::Server(server) => server.operate(name, operation, args, is_quiet).await,
            Way::Opened(tier) => {
                let work =
                    async |progress: Arc<Progress>| tier.run(operation, args, &progress).await;
                let read = |progress: &Progress| {
                    let (done, total) = progress.bytes();
                    (done, total, progress.message())
                };
                Ok(progress::run_with_progress(operation.name(), is_quiet, read, work).await?)
            }
        }
    }
}
