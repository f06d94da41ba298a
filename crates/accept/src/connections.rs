//! Limits the number of open connections and evicts the longest-idle one when the limit is reached.
//!
//! Every connection holds a file descriptor, and the program needs descriptors for its files, so
//! the limit is below what the system allows. At the limit, new connections wait in the listen
//! backlog until a slot is free, and the connection that has been idle for longest is closed to
//! free one. A connection in the middle of a request is never closed for another.
//!
//! Only idle time counts, not bytes received: a request or a handshake that trickles in byte by
//! byte does not count until it is complete.
//!
//! ```text
//!   accepted -> idle --head of a request--> busy --response sent--> idle ...
//!                 `--- longest idle, no slot free: asked to close
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How often a full table is searched for a connection that has been idle long enough.
const CHECK_PERIOD: Duration = Duration::from_millis(50);
/// Pause after a failed accept (out of file descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connection slots, with eviction of the longest-idle connection.
#[derive(Debug)]
pub struct Connections {
    max: usize,
    min_idle: Duration,
    table: Mutex<Table>,
    /// Signaled when a slot is freed.
    freed: Notify,
    evictions: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    open: usize,
    next: u64,
    /// Idle connections, ordered by the time they became idle.
    idle: BTreeMap<(Instant, u64), Arc<Notify>>,
}

impl Connections {
    /// Creates `max` slots. An idle connection is evicted only after it has been idle for
    /// `min_idle`.
    #[must_use]
    pub fn new(max: usize, min_idle: Duration) -> Arc<Self> {
        assert!(max > 0, "the limit must allow at least one connection");
        Arc::new(Self {
            max,
            min_idle,
            table: Mutex::default(),
            freed: Notify::new(),
            evictions: AtomicU64::new(0),
        })
    }

    /// Maximum number of open connections.
    #[must_use]
    pub const fn max(&self) -> usize {
        self.max
    }

    /// Number of open connections.
    #[must_use]
    pub fn open(&self) -> usize {
        self.table().open
    }

    /// Number of idle connections that were closed to make room.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    /// Returns the next connection and its address, once there is a slot for it. Accepts before it
    /// frees a slot, so that no connection is evicted for one that may never come.
    pub fn accept<'a>(
        self: &'a Arc<Self>,
        listener: &'a TcpListener,
    ) -> BoxFuture<'a, (TcpStream, SocketAddr, Arc<Slot>)> {
        Box::pin(async move {
            loop {
                match listener.accept().await {
                    Ok((socket, from)) => return (socket, from, self.slot().await),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        // Frees a descriptor, in case the process ran out of them.
                        self.evict_oldest(Instant::now());
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        })
    }

    /// Waits for a free slot and takes it.
    async fn slot(self: &Arc<Self>) -> Arc<Slot> {
        loop {
            // Registered before the check, so that a slot freed after it wakes us.
            let freed = self.freed.notified();
            if let Some(slot) = self.try_slot() {
                return slot;
            }
            self.evict_oldest(Instant::now());
            // An idle connection may be too young to be closed now and old enough at the next
            // check.
            let _ = tokio::time::timeout(CHECK_PERIOD, freed).await;
        }
    }

    /// Waits until no connection is open.
    pub fn all_closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let freed = self.freed.notified();
                if self.open() == 0 {
                    return;
                }
                freed.await;
            }
        })
    }

    fn try_slot(self: &Arc<Self>) -> Option<Arc<Slot>> {
        let mut table = self.table();
        if table.open >= self.max {
            return None;
        }
        table.open += 1;
        table.next += 1;
        let id = table.next;
        let evict = Arc::new(Notify::new());
        let since = Instant::now();
        table.idle.insert((since, id), Arc::clone(&evict));
        let state = Mutex::new(State { busy: 0, idle_since: since, has_requested: false });
        Some(Arc::new(Slot { connections: Arc::clone(self), id, evict, state }))
    }

    fn evict_oldest(&self, now: Instant) {
        let mut table = self.table();
        let Some((&(since, id), _)) = table.idle.first_key_value() else { return };
        if now.saturating_duration_since(since) < self.min_idle {
            return;
        }
        if let Some(evict) = table.idle.remove(&(since, id)) {
            evict.notify_one();
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // No code under the lock can leave the table half changed.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of one connection, freed when the last holder drops it.
#[derive(Debug)]
pub struct Slot {
    connections: Arc<Connections>,
    id: u64,
    evict: Arc<Notify>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Requests in progress: one, or two while a response is still being sent.
    busy: u32,
    idle_since: Instant,
    has_requested: bool,
}

impl Slot {
    /// Completes when the connection must close to make room.
    pub fn evicted(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.evict.notified())
    }

    /// Whether the connection ever had a request. If not, no response can be in flight.
    #[must_use]
    pub fn has_requested(&self) -> bool {
        self.state().has_requested
    }

    /// Marks the connection as busy until the guard is dropped.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> Busy {
        let mut state = self.state();
        state.has_requested = true;
        state.busy += 1;
        if state.busy == 1 {
            self.connections.table().idle.remove(&(state.idle_since, self.id));
        }
        drop(state);
        Busy(Arc::clone(self))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let since = self.state().idle_since;
        let mut table = self.connections.table();
        table.idle.remove(&(since, self.id));
        table.open -= 1;
        drop(table);
        self.connections.freed.notify_waiters();
    }
}

/// A request in progress on a connection.
#[derive(Debug)]
pub struct Busy(Arc<Slot>);

impl Drop for Busy {
    fn drop(&mut self) {
        let slot = &self.0;
        let mut state = slot.state();
        state.busy -= 1;
        if state.busy == 0 {
            state.idle_since = Instant::now();
            let entry = (state.idle_since, slot.id);
            slot.connections.table().idle.insert(entry, Arc::clone(&slot.evict));
        }
    }
}

#[cfg(test)]
mod tests;
