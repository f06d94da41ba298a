//! Processes of a set according to `tomes.toml`: one that serves a tome, and what the set needs to
//! reach those.
//!
//! Not here: command lines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fulgurite_disks::Backend;
use fulgurite_rpc::bind;
use fulgurite_tome_core::TomeId;
use fulgurite_units::Clock;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::runtime::Handle;

use crate::remote::dial::BackoffLimits;
use crate::remote::file::TomesFile;
use crate::remote::remote_tome::{RemoteOptions, RemoteTome};
use crate::remote::server::{ServerOptions, TomeServer};
use crate::remote::tls::{PeerName, Tls};
use crate::remote::{NetError, Result};
use crate::{
    Entropy, FaultInjector, Network, RemoteHandle, SetHandshake, StandaloneOptions, StandaloneTome,
};
use crate::{FAIL_POINTS, FailPoints};

/// Options for serving a tome, besides the file.
#[derive(Debug)]
pub struct ServeOptions {
    /// The tome.
    pub tome: TomeId,
    /// Socket to listen on, if not the address in the file.
    pub listener: Option<TcpListener>,
    /// Folder that contains its metadata folder.
    pub directory: PathBuf,
    /// Folder of its disk.
    pub root: PathBuf,
    /// Spins the disk up and down, at the place of its number.
    pub backend: Arc<dyn Backend>,
    /// The tome's clock.
    pub clock: Clock,
    /// Source of seeds.
    pub entropy: Entropy,
}

/// Serves a tome until `shutdown` ends; then its disk is spun down.
///
/// # Errors
/// When the file has no address for it, its certificate is for another name, or the address cannot
/// be bound.
pub fn serve<'a>(
    file: &'a TomesFile,
    mut options: ServeOptions,
    shutdown: BoxFuture<'a, ()>,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let tome = options.tome;
        let tls = Tls::read(&file.tls, file.set, PeerName::Tome(tome))?;
        let others = file.addresses();
        let own = others.get(&tome).ok_or_else(|| NetError::Refused {
            what: format!("tome {tome} has no address in the file of its set"),
        })?;
        let listener = match options.listener.take() {
            Some(listener) => listener,
            None => bind(own).await?,
        };
        let server = TomeServer::start(ServerOptions {
            tome,
            listener,
            tls,
            tomes_at_set: file.roots().into_keys().collect(),
            others,
            backoff_limits: BackoffLimits::default(),
            open: Box::new(opening(file, options)),
        })
        .await?;
        tracing::info!(%tome, "answers at {}", server.address());
        shutdown.await;
        server.stop().await;
        Ok(())
    })
}

/// The result of opening a tome.
type Opened = crate::Result<StandaloneTome>;

fn opening(
    file: &TomesFile,
    options: ServeOptions,
) -> impl Fn(Arc<dyn Network>, Option<&SetHandshake>) -> Opened + use<> {
    let set = file.set;
    move |network, set_handshake| {
        let standalone = StandaloneOptions {
            set,
            tome: options.tome,
            directory: options.directory.clone(),
            root: options.root.clone(),
            backend: Arc::clone(&options.backend),
            spin_ups_a_day: None,
            idle: fulgurite_tome_core::limits::IDLE,
            network,
            clock: options.clock.clone(),
            entropy: options.entropy.clone(),
            fail: FailPoints::unarmed(&FAIL_POINTS),
            faults: FaultInjector::default(),
        };
        StandaloneTome::open(standalone, set_handshake)
    }
}

/// Returns the tomes of the file in other processes, for the `SetOptions` of the set.
///
/// # Errors
/// When the certificate is not that of the token manager.
pub fn remotes(
    file: &TomesFile,
    clock: &Clock,
    runtime: &Handle,
) -> Result<BTreeMap<TomeId, Arc<dyn RemoteHandle>>> {
    let tls = Tls::read(&file.tls, file.set, PeerName::TokenManager)?;
    let remote = |(tome, address)| {
        let options = RemoteOptions {
            tome,
            address,
            tls: tls.clone(),
            backoff_limits: BackoffLimits::default(),
            clock: clock.clone(),
            runtime: runtime.clone(),
        };
        (tome, Arc::new(RemoteTome::new(options)) as Arc<dyn RemoteHandle>)
    };
    Ok(file.addresses().into_iter().map(remote).collect())
}
