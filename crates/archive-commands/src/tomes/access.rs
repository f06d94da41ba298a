//! Access to a set of tomes: through a running server, over its admin API; or, when none runs,
//! opened by this process, which locks it meanwhile.

use std::sync::Arc;

use fulgurite_disks::SpinUp;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::progress;
use fulgurite_tome::objects::{
    Compared, Found, InventoryResult, Progress, Rebuilt, Result, Scrubbed, Snapshot, TomeId,
    TomeStore,
};
use fulgurite_units::{ErrorKind, error_chain};

use super::{close, configured, open};
use crate::admin::TierClient;
use crate::tier_selection::TierSelection;

/// Access to a set.
pub(super) enum TomesAccess {
    /// Through a running server.
    Server(TierClient),
    /// Opened by this process.
    Store(TomeStore),
}

/// Runs `action` with access to the set, and closes it.
pub(super) async fn run_with(
    args: &TierSelection,
    action: impl AsyncFnOnce(&TomesAccess) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if let Some(server) = args.server().await? {
        return action(&TomesAccess::Server(server)).await;
    }
    let store = open(&configured(args)?).await?;
    let done = action(&TomesAccess::Store(store.clone())).await;
    close(store).await;
    done
}

impl TomesAccess {
    pub(super) async fn status(&self) -> anyhow::Result<Snapshot> {
        match self {
            Self::Server(server) => server.get("tomes").await,
            Self::Store(store) => Ok(store.snapshot().await?),
        }
    }

    pub(super) async fn ledger(&self) -> anyhow::Result<Vec<SpinUp>> {
        match self {
            Self::Server(server) => server.get("tomes-ledger").await,
            Self::Store(store) => Ok(store.ledger().await),
        }
    }

    pub(super) async fn recover(&self, is_quiet: bool) -> anyhow::Result<Found> {
        match self {
            Self::Server(server) => server.run("tomes-recover", None, is_quiet).await,
            Self::Store(store) => {
                let store = store.clone();
                run_with_progress("recover", is_quiet, async move |work| store.recover(&work).await)
                    .await
            }
        }
    }

    pub(super) async fn verify(&self, is_quiet: bool) -> anyhow::Result<Compared> {
        match self {
            Self::Server(server) => server.run("tomes-verify", None, is_quiet).await,
            Self::Store(store) => {
                let store = store.clone();
                run_with_progress("verify", is_quiet, async move |work| store.compare(&work).await)
                    .await
            }
        }
    }

    pub(super) async fn scrub(
        &self,
        tome: Option<TomeId>,
        is_quiet: bool,
    ) -> anyhow::Result<Scrubbed> {
        match self {
            Self::Server(server) => server.run("tomes-scrub", tome.map(target), is_quiet).await,
            Self::Store(store) => {
                let store = store.clone();
                run_with_progress("scrub", is_quiet, async move |work| {
                    store.scrub(tome, &work).await
                })
                .await
            }
        }
    }

    pub(super) async fn rebuild(&self, tome: TomeId, is_quiet: bool) -> anyhow::Result<Rebuilt> {
        match self {
            Self::Server(server) => server.run("tomes-rebuild", Some(target(tome)), is_quiet).await,
            Self::Store(store) => {
                let store = store.clone();
                let work = async move |work: Arc<Progress>| store.rebuild(tome, &work).await;
                run_with_progress("rebuild", is_quiet, work).await
            }
        }
    }

    /// Runs an inventory of a disk. The next start uses it, so its result is not in the report.
    pub(super) async fn inventory(
        &self,
        tome: TomeId,
        is_quiet: bool,
    ) -> anyhow::Result<InventoryResult> {
        match self {
            Self::Server(server) => {
                server.run("tomes-inventory", Some(target(tome)), is_quiet).await
            }
            Self::Store(store) => {
                let store = store.clone();
                let work = async move |work: Arc<Progress>| store.inventory(tome, &work).await;
                run_with_progress("inventory", is_quiet, work).await
            }
        }
    }

    pub(super) async fn retire(&self, tome: TomeId, is_quiet: bool) -> anyhow::Result<Rebuilt> {
        match self {
            Self::Server(server) => server.run("tomes-retire", Some(target(tome)), is_quiet).await,
            Self::Store(store) => {
                let store = store.clone();
                let work = async move |work: Arc<Progress>| store.retire(tome, &work).await;
                run_with_progress("retire", is_quiet, work).await
            }
        }
    }
}

fn target(tome: TomeId) -> (&'static str, String) {
    ("tome", tome.get().to_string())
}

/// Runs `work` and shows its progress.
async fn run_with_progress<T>(
    what: &'static str,
    is_quiet: bool,
    work: impl AsyncFnOnce(Arc<Progress>) -> Result<T>,
) -> anyhow::Result<T> {
    let done = progress::run_with_progress(what, is_quiet, Progress::bytes, work).await;
    done.map_err(|error| {
        // The request is invalid for this tome: use the same exit code as with a server.
        let is_invalid = error.kind() == ErrorKind::Invalid;
        if is_invalid {
            ExitError::new(Exit::Usage, error_chain(&error)).into()
        } else {
            error.into()
        }
    })
}
