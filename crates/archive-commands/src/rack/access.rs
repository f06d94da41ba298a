//! Access to a rack: through a running server, over its admin API; or, when none runs, opened by
//! this process, which locks it meanwhile.

use std::sync::Arc;

use fulgurite_disks::{PlaceId, SpinUp};
use fulgurite_rack::{Found, Progress, RackStore, Report, Result, Snapshot};
use fulgurite_terminal::progress;

use super::{RackArgs, open};
use crate::admin::AdminClient;

/// Access to a rack.
#[derive(Debug)]
pub(super) enum RackAccess {
    /// Through a running server.
    Server(AdminClient),
    /// Opened by this process.
    Store(RackStore),
}

/// Returns whether a running server has the rack.
pub(super) async fn is_served(args: &RackArgs) -> bool {
    find_server(args).await.is_ok_and(|server| server.is_some())
}

/// Returns the server of the data directory, if it answers.
async fn find_server(args: &RackArgs) -> anyhow::Result<Option<AdminClient>> {
    AdminClient::connect(&args.remote, || args.data()).await
}

/// Runs `action` with access to the rack, and closes it.
pub(super) async fn run_with(
    args: &RackArgs,
    action: impl AsyncFnOnce(&RackAccess) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if let Some(server) = find_server(args).await? {
        return action(&RackAccess::Server(server)).await;
    }
    let store = open(&args.configured()?, &args.data()?)?;
    let done = action(&RackAccess::Store(store.clone())).await;
    open::close(store).await;
    done
}

impl RackAccess {
    pub(super) async fn status(&self) -> anyhow::Result<Snapshot> {
        match self {
            Self::Server(server) => server.rack().await,
            Self::Store(store) => Ok(store.status().await?),
        }
    }

    pub(super) async fn ledger(&self) -> anyhow::Result<Vec<SpinUp>> {
        match self {
            Self::Server(server) => server.rack_ledger().await,
            Self::Store(store) => Ok(store.ledger().await?),
        }
    }

    pub(super) async fn verify(&self, is_quiet: bool) -> anyhow::Result<Report> {
        match self {
            Self::Server(server) => server.run_rack_call("rack-verify", None, is_quiet).await,
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
            Self::Server(server) => {
                server.run_rack_call("rack-rebuild", Some(place), is_quiet).await
            }
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
            Self::Server(server) => {
                server.run_rack_call("rack-replace", Some(place), is_quiet).await
            }
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
            Self::Server(server) => server.run_rack_call("rack-recover", None, is_quiet).await,
            Self::Store(store) => Ok(store.recover().await?),
        }
    }
}

/// Runs `work` and shows its progress.
async fn run_with_progress<T>(
    what: &'static str,
    is_quiet: bool,
    work: impl AsyncFnOnce(Arc<Progress>) -> Result<T>,
) -> anyhow::Result<T> {
    Ok(progress::run_with_progress(what, is_quiet, Progress::bytes, work).await?)
}
