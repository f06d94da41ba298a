//! A tome at an address: a peer must authenticate before anything is read from it.
//!
//! Connections and handshakes are limited, and a handshake has a timeout: a client without a
//! certificate takes no room from others (`fulgurite_accept`). On stop, all calls end, the disk is
//! spun down, and connections are closed. Not here: the calls themselves
//! ([`crate::remote::tome_service`]).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use fulgurite_rpc::{Server, ServerOptions as RpcOptions};
use fulgurite_tome_core::TomeId;
use fulgurite_units::error_chain;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::remote::dial::BackoffLimits;
use crate::remote::limits::{CONNECT_TIMEOUT, CONNECTION, HANDSHAKES, WIRE_BYTES_MAX};
use crate::remote::peer_network::PeerNetwork;
use crate::remote::route::Route;
use crate::remote::tls::{PeerName, Tls};
use crate::remote::tome_service::{Open, Served};
use crate::remote::{Result, wire};
use crate::{Network, SetHandshake, StandaloneTome};

/// Opens the tome that is served, on the given network; with a handshake, if it was created
/// before or that permits it.
pub type Opening = Box<
    dyn Fn(Arc<dyn Network>, Option<&SetHandshake>) -> crate::Result<StandaloneTome> + Send + Sync,
>;

/// Options of a server.
pub struct ServerOptions {
    /// The tome.
    pub tome: TomeId,
    /// Socket that it listens on.
    pub listener: TcpListener,
    /// Its certificate, and the authority that it trusts.
    pub tls: Tls,
    /// Other tomes with processes of their own, and their addresses.
    pub others: BTreeMap<TomeId, String>,
    /// Tomes in the process of the set.
    pub tomes_at_set: BTreeSet<TomeId>,
    /// Backoff between connections to others.
    pub backoff_limits: BackoffLimits,
    /// Opens the tome.
    pub open: Opening,
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions").field("tome", &self.tome).finish_non_exhaustive()
    }
}

/// A tome that listens at an address.
#[derive(Debug)]
pub struct TomeServer {
    server: Server,
    served: Arc<Served>,
}

impl TomeServer {
    /// Starts the server. An existing tome is opened at once, and a new one when its set sends its
    /// handshake.
    ///
    /// # Errors
    /// When the address of its socket is unknown.
    pub fn start(options: ServerOptions) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let ServerOptions { tome, listener, tls, others, tomes_at_set, backoff_limits, open } =
                options;
            let route = |(to, address): (TomeId, String)| {
                let route = Route::new(
                    PeerName::Tome(to),
                    address,
                    tls.clone(),
                    backoff_limits,
                    &Handle::current(),
                );
                (to, route)
            };
            let others = others.into_iter().filter(|(other, _)| *other != tome);
            let peer_network = Arc::new(PeerNetwork::new(tls.set(), others.map(route).collect()));
            let network = Arc::clone(&peer_network) as Arc<dyn Network>;
            let open: Arc<Open> = Arc::new(move |set_handshake: Option<&SetHandshake>| {
                open(Arc::clone(&network), set_handshake)
            });
            let (stop, stopping) = watch::channel(false);
            let served = Arc::new(Served {
                set: tls.set(),
                tome,
                tomes_at_set,
                peer_network,
                open,
                standalone: Mutex::default(),
                opening: tokio::sync::Mutex::default(),
                stopping,
            });
            open_early(&served).await;
            let options = RpcOptions {
                listener,
                identity: tls.identity(),
                handshakes: HANDSHAKES,
                connection: CONNECTION,
                // Sessions last, and puts and reads wait for disks.
                call_timeout: None,
                peer: move |stream: &_| tls.peer_name(stream).map_err(|error| error.to_string()),
                stop,
            };
            let service = Arc::clone(&served);
            let answer = move |request| wire::answer(Arc::clone(&service), WIRE_BYTES_MAX, request);
            let server = Server::start(&format!("the socket of tome {tome}"), options, answer)?;
            Ok(Self { server, served })
        })
    }

    /// Returns its address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the tome, once it is open.
    #[must_use]
    pub fn tome(&self) -> Option<Arc<StandaloneTome>> {
        self.served.standalone()
    }

    /// Number of the tome's messages dropped before they were sent.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.served.peer_network.lost()
    }

    /// Ends all calls, spins the disk down and closes all connections.
    pub fn stop(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.server.begin_stop();
            self.served.peer_network.close();
            // A concurrent opening now sees that the server is stopping.
            let _one = self.served.opening.lock().await;
            if let Some(standalone) = self.served.standalone() {
                let stopped = tokio::task::spawn_blocking(move || standalone.stop()).await;
                if let Err(error) = stopped {
                    tracing::error!("a tome could not be stopped: {error}");
                }
            }
            self.server.stop(CONNECT_TIMEOUT).await;
        })
    }
}

/// Opens an existing tome that has member slots. It is no error when there is none.
async fn open_early(served: &Arc<Served>) {
    match served.opened(None).await {
        Ok(standalone) => {
            if !standalone
                .object_page(None, 0)
                .await
                .is_ok_and(|object_page| object_page.regions > 0)
            {
                // Its creation by the set was interrupted, and is repeated.
                *served.standalone.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
                if tokio::task::spawn_blocking(move || drop(standalone)).await.is_err() {
                    tracing::error!("a tome could not be stopped");
                }
            }
        }
        Err(error) => {
            tracing::info!(tome = %served.tome, "waits for its set: {}", error_chain(&error));
        }
    }
}
