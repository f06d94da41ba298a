//! Access to a rack: through a running server, over its admin API; or, when none runs, opened by
//! this process, which locks it meanwhile.

use std::sync::Arc;

use fulgurite_disks::{PlaceId, SpinUp};
use fulgurite_rack::{Found, Progress, RackStore, Report, Result, Snapshot};
use fulgurite_terminal::progress;

use super::{configured, open};
use crate::admin::TierClient;
use crate::tier_selection::TierSelection;

/// Access to a rack.
#[derive(Debug)]
pub(super) enum RackAccess {
    /// Through a running server.
    Server(TierClient),
    /// Opened by this process.
    Store(RackStore),
}

/// Runs `action` with access to the rack, and closes it.
pub(super) async fn run_with(
    args: &TierSelection,
    action: impl AsyncFnOnce(&RackAccess) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if let Some(server) = args.server().await? {
        return action(&RackAccess::Server(server)).await;
    }
    let store = open(&configured(args)?)?;
    let done = action(&RackAccess::Store(store.clone())).await;
    open::close(store).await;
    done
}

impl RackAccess {
    pub(super) async fn status(&self) -> anyhow::Result<Snapshot> {
        match self {
            Self::Server(server) => server.get("rack").await,
            Self::Store(store) => Ok(store.status().await?),
        }
    }

    pub(super) async fn ledger(&self) -> anyhow::Result<Vec<SpinUp>> {
        match self {
            Self::Server(server) => server.get("rack-ledger").await,
            Self::Store(store) => Ok(store.ledger().await?),
        }
    }

    pub(super) async fn verify(&self, is_quiet: bool) -> anyhow::Result<Report> {
        match self {
            Self::Server(server) => server.run("rack-verify", None, is_quiet).await,
            Self::Store(store) => {
                let store = store.clone();
                run_with_progress("verify", is_quiet, async move |progress| {
                    store.verify_with_progress(&progress).await
                })
                .await
            }
        }
    }

    pub(super) async fn rebuild(&self, place: PlaceId, is_quiet: bool) -> anyhow::Result<Report> {
        match self {
            Self::Server(server) => server.run("rack-rebuild", target(place), is_quiet).await,
            Self::Store(store) => {
                let store = store.clone();
                let work = async move |progress: Arc<Progress>| {
                    store.rebuild_with_progress(place, &progress).await
                };
                run_with_progress("rebuild", is_quiet, work).await
            }
        }
    }

    pub(super) async fn replace(&self, place: PlaceId, is_quiet: bool) -> anyhow::Result<Report> {
        match self {
            Self::Server(server) => server.run("rack-replace", target(place), is_quiet).await,
            Self::Store(store) => {
                let store = store.clone();
                let work = async move |progress: Arc<Progress>| {
                    store.replace_with_progress(place, &progress).await
                };
                run_with_progress("replace", is_quiet, work).await
            }
        }
    }

    pub(super) async fn recover(&self, is_quiet: bool) -> anyhow::Result<Found> {
        match self {
            Self::Server(server) => server.run("rack-recover", None, is_quiet).await,
            Self::Store(store) => Ok(store.recover().await?),
        }
    }
}

fn target(place: PlaceId) -> Option<(&'static str, String)> {
    Some(("place", place.to_string()))
}

/// Runs `work` and shows its progress.
async fn run_with_progress<T>(
    what: &'static str,
    is_quiet: bool,
    work: impl AsyncFnOnce(Arc<Progress>) -> Result<T>,
) -> anyhow::Result<T> {
    Ok(progress::run_with_progress(what, is_quiet, Progress::bytes, work).await?)
}
