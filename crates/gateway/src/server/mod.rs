//! Sockets: listening, TLS, HTTP/1 connections, and a graceful shutdown.
//!
//! `s3`, `admin` and `page` interpret requests; this module only carries bytes and bounds time.

mod gateway;
mod outbound;
mod tls;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_accept::{Connections, Slot};
use fulgurite_archive::config::TierName;
use fulgurite_archive::{Archive, GlassTier};
use fulgurite_tier::Tier;
use futures::future::BoxFuture;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutWriter;
use tokio_rustls::TlsAcceptor;

pub(crate) use self::gateway::Gateway;
use self::tls::Tls;
use crate::limits::{IDLE_GRACE, LISTEN_BACKLOG, READ_BUFFER_BYTES};
use crate::{Credentials, GatewayError, Limits, Result, Tiers, s3};

/// Where TLS keys come from.
#[derive(Clone, Debug)]
pub enum TlsConfig {
    /// A self-signed certificate, generated on first use, stored in `directory` as `cert.pem` and
    /// `key.pem` (mode 0600), and renewed before it expires. It is valid for localhost, the
    /// loopback addresses, the listen address and `names`.
    Auto {
        /// Directory of certificate and key; created when missing.
        directory: PathBuf,
        /// Further host names or addresses of the certificate.
        names: Vec<String>,
    },
    /// The operator's own PEM files.
    Files {
        /// Certificate chain, the server's own first.
        cert: PathBuf,
        /// Private key.
        key: PathBuf,
    },
}

/// The configuration of a gateway.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// The keys of the archive.
    pub credentials: Credentials,
    /// A second pair of keys, for the operator's interface only.
    pub operator: Option<Credentials>,
    /// The tiers besides glass, which the operator can inspect and repair.
    pub tiers: Tiers,
    /// TLS; `None` serves plain HTTP.
    pub tls: Option<TlsConfig>,
    /// Base domain of virtual-host style requests (`BUCKET.DOMAIN`). `localhost` always is one, and
    /// path style works under every name.
    pub domain: Option<String>,
    /// File of nonces of operator's calls that must survive a restart. Without one, a call that was
    /// signed ahead of the clock can be replayed after a restart.
    pub nonces: Option<PathBuf>,
    /// Limits.
    pub limits: Limits,
}

impl ServerConfig {
    /// Returns a configuration for plain HTTP on `listen` with the default limits.
    #[must_use]
    pub fn new(listen: SocketAddr, credentials: Credentials) -> Self {
        let (tls, domain, limits) = (None, None, Limits::default());
        Self {
            listen,
            credentials,
            operator: None,
            tiers: Tiers::new(),
            tls,
            domain,
            nonces: None,
            limits,
        }
    }
}

/// An address that no other process can listen on. Clients are refused there until a gateway does.
#[derive(Debug)]
pub struct BoundAddress {
    socket: TcpSocket,
    address: SocketAddr,
}

impl BoundAddress {
    /// Binds an address; port 0 picks a free one.
    ///
    /// # Errors
    /// When it is not available: another process listens there, or it is not of this machine.
    pub fn new(address: SocketAddr) -> Result<Self> {
        let bound = || {
            let socket = match address {
                SocketAddr::V4(_) => TcpSocket::new_v4()?,
                SocketAddr::V6(_) => TcpSocket::new_v6()?,
            };
            // Connections of an earlier server that are still closing are not in the way.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        };
        bound().map_err(|source| GatewayError::Listen { address, source })
    }
}

/// Refuses a domain or TLS files that no gateway can use. Creates nothing.
///
/// # Errors
/// When the domain is not a host name, or certificate and key cannot be used.
pub fn check(domain: Option<&str>, tls: Option<&TlsConfig>) -> Result<()> {
    s3::check_domain(domain)?;
    tls.map_or(Ok(()), tls::check)
}

/// A gateway that listens, but does not answer before `serve`.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    gateway: Arc<Gateway>,
    tls: Option<Tls>,
    connections: Arc<Connections>,
    limits: Limits,
}

/// Binds the listening socket and prepares everything that can fail.
///
/// # Errors
/// When the address is not available, or TLS files, domain or credentials are not usable.
pub fn bind(config: ServerConfig, archive: Archive) -> BoxFuture<'static, Result<Server>> {
    Box::pin(async move { listen(BoundAddress::new(config.listen)?, config, archive).await })
}

/// The same on an address that is bound already, in place of that of the configuration.
///
/// # Errors
/// As for [`bind`].
pub fn listen(
    bound: BoundAddress,
    config: ServerConfig,
    archive: Archive,
) -> BoxFuture<'static, Result<Server>> {
    Box::pin(async move {
        let ServerConfig {
            listen: _,
            credentials,
            operator,
            mut tiers,
            tls,
            domain,
            nonces,
            limits,
        } = config;
        let BoundAddress { socket, address } = bound;
        let listener = socket
            .listen(LISTEN_BACKLOG)
            .map_err(|source| GatewayError::Listen { address, source })?;
        let tls = tls.map(|tls| Tls::read(&tls, address, Timestamp::now())).transpose()?;
        let connections = Connections::new(limits.connections, IDLE_GRACE);
        let shared_connections = Arc::clone(&connections);
        let keys = (credentials, operator);
        let glass: Arc<dyn Tier> = Arc::new(GlassTier::new(archive.clone()));
        tiers.insert(TierName::glass(), glass);
        let stores = (&archive, tiers);
        let names = (domain.as_deref(), nonces.as_deref());
        let gateway = Arc::new(Gateway::new(stores, keys, names, &limits, shared_connections)?);
        Ok(Server { listener, address, gateway, tls, connections, limits })
    })
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// The address clients connect to.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The certificate in use, for clients that must be configured to trust it.
    #[must_use]
    pub fn certificate(&self) -> Option<&Path> {
        self.tls.as_ref().map(|tls| tls.certificate.as_path())
    }

    /// Returns whether clients must use TLS.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Serves until `shutdown` completes, then lets running requests finish within the stop limit.
    ///
    /// # Errors
    /// None at present; a failing connection ends alone and is logged.
    pub fn serve(self, shutdown: BoxFuture<'static, ()>) -> BoxFuture<'static, Result<()>> {
        Box::pin(self.accept_until(shutdown))
    }

    async fn accept_until(self, mut shutdown: BoxFuture<'static, ()>) -> Result<()> {
        let Self { listener, gateway, tls, connections, limits, .. } = self;
        let (acceptor, renewal) = tls.map(|tls| (tls.acceptor, tls.renewal)).unzip();
        let mut renewing = JoinSet::new();
        if let Some(renewal) = renewal.flatten() {
            renewing.spawn(renewal.run());
        }
        let (stop, stopping) = watch::channel(false);
        loop {
            let (socket, _, slot) = tokio::select! {
                accepted = connections.accept(&listener) => accepted,
                () = &mut shutdown => break,
            };
            let connection = Connection {
                gateway: Arc::clone(&gateway),
                limits: limits.clone(),
                stopping: stopping.clone(),
                slot,
            };
            tokio::spawn(connection.run(socket, acceptor.clone()));
        }
        drop(listener);
        gateway.begin_stop();
        // Cannot fail: this function holds a receiver itself.
        let _ = stop.send(true);
        if tokio::time::timeout(limits.stop_timeout, connections.all_closed()).await.is_err() {
            tracing::warn!("requests were still running when the stop limit passed");
        }
        Ok(())
    }
}

/// A client's byte stream, with TLS or without. Boxed, so that HTTP is compiled once for both.
trait ClientStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ClientStream for S {}

struct Connection {
    gateway: Arc<Gateway>,
    limits: Limits,
    stopping: watch::Receiver<bool>,
    slot: Arc<Slot>,
}

impl Connection {
    async fn run(self, socket: TcpStream, acceptor: Option<TlsAcceptor>) {
        // Small answers must not wait for a delayed acknowledgment.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "connection was gone before it was served");
            return;
        }
        let Some(acceptor) = acceptor else { return self.serve(Box::new(socket)).await };
        let handshake =
            tokio::time::timeout(self.limits.handshake_timeout, acceptor.accept(socket));
        let outcome = tokio::select! {
            outcome = handshake => outcome,
            () = self.slot.evicted() => return,
        };
        match outcome {
            Ok(Ok(stream)) => self.serve(Box::new(stream)).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake took too long"),
        }
    }

    async fn serve(self, stream: Box<dyn ClientStream>) {
        let Self { gateway, limits, mut stopping, slot } = self;
        // Reads are bounded by the HTTP layer and by `s3::inbound`: a client may wait for a
        // response, but has to read it.
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(limits.write_timeout));
        let io = TokioIo::new(Box::pin(stream));
        let request_slot = Arc::clone(&slot);
        let service = service_fn(move |request| {
            let gateway = Arc::clone(&gateway);
            let busy = request_slot.begin();
            async move { Ok::<_, std::convert::Infallible>(gateway.handle(request, busy).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_timeout)
            .max_buf_size(READ_BUFFER_BYTES)
            .half_close(true)
            .serve_connection(io, service);
        let mut connection = std::pin::pin!(connection);
        let (mut is_ending, mut is_stopping) = (false, false);
        loop {
            tokio::select! {
                biased;
                ended = &mut connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "connection ended early");
                    }
                    return;
                }
                () = slot.evicted(), if !is_ending => {
                    if !slot.has_requested() {
                        return;
                    }
                    // Responses in progress are completed; then the connection is closed.
                    is_ending = true;
                    connection.as_mut().graceful_shutdown();
                }
                _ = stopping.wait_for(|stopping| *stopping), if !is_stopping => {
                    is_stopping = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}
