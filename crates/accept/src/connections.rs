//! How many connections there are, and which of them gives way when there is no room for one more.
//!
//! Every connection holds a descriptor, and the program needs descriptors for its files: so there
//! is a bound, below what the system allows. At the bound, new connections wait in the listener's
//! queue until a slot is free, and the connection that has asked for nothing for longest is ended
//! to free one. A connection in the middle of a request is never ended for another.
//!
//! Age counts, and not what was sent: a request or a handshake that comes a byte at a time is none
//! until it is whole.
//!
//! ```text
//!   accepted -> idle --head of a request--> busy --answer sent--> idle ...
//!                 `--- oldest, no slot free: told to end
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

/// The slots for connections.
#[derive(Debug)]
pub struct Connections {
    max: usize,
    protected: Duration,
    table: Mutex<Table>,
    /// A slot was freed.
    freed: Notify,
    ended_idle: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    open: usize,
    next: u64,
    /// Connections without a request, by how long they have been so.
    idle: BTreeMap<(Instant, u64), Arc<Notify>>,
}

impl Connections {
    /// So many at a time. One that is idle does not give way before it has been so for `protected`.
    #[must_use]
    pub fn new(max: usize, protected: Duration) -> Arc<Self> {
        assert!(max > 0, "a server without connections serves nobody");
        Arc::new(Self {
            max,
            protected,
            table: Mutex::default(),
            freed: Notify::new(),
            ended_idle: AtomicU64::new(0),
        })
    }

    /// Most at a time.
    #[must_use]
    pub const fn max(&self) -> usize {
        self.max
    }

    /// How many there are.
    #[must_use]
    pub fn open(&self) -> usize {
        self.table().open
    }

    /// How many were ended while idle, to make room.
    #[must_use]
    pub fn ended_idle(&self) -> u64 {
        self.ended_idle.load(Ordering::Relaxed)
    }

    /// The next connection and who it is from, once there is room for it. It is taken from the
    /// queue before, because nobody is ended for a connection that may never come.
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
                        // It gives back the descriptor that is missing, if that is what failed.
                        self.end_oldest(Instant::now());
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        })
    }

    /// A slot for one more connection, once there is room.
    async fn slot(self: &Arc<Self>) -> Arc<Slot> {
        loop {
            // Before the look, so that a slot freed after it wakes us.
            let freed = self.freed.notified();
            if let Some(slot) = self.try_slot() {
                return slot;
            }
            self.end_oldest(Instant::now());
            // An idle connection may be too young to be ended now and old enough at the next look.
            let _ = tokio::time::timeout(CHECK_PERIOD, freed).await;
        }
    }

    /// Returns when no connection is left.
    pub fn all_ended(&self) -> BoxFuture<'_, ()> {
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
        let end = Arc::new(Notify::new());
        let since = Instant::now();
        table.idle.insert((since, id), Arc::clone(&end));
        let state = Mutex::new(State { busy: 0, idle_since: since, has_asked: false });
        Some(Arc::new(Slot { connections: Arc::clone(self), id, end, state }))
    }

    fn end_oldest(&self, now: Instant) {
        let mut table = self.table();
        let Some((&(since, id), _)) = table.idle.first_key_value() else { return };
        if now.saturating_duration_since(since) < self.protected {
            return;
        }
        if let Some(end) = table.idle.remove(&(since, id)) {
            end.notify_one();
            self.ended_idle.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing within the lock can leave the table half changed.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of one connection, free again when the last of its holders drops it.
#[derive(Debug)]
pub struct Slot {
    connections: Arc<Connections>,
    id: u64,
    end: Arc<Notify>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Requests that are being answered: one, or two while an answer is on its way out.
    busy: u32,
    idle_since: Instant,
    has_asked: bool,
}

impl Slot {
    /// Completes when the connection shall make room.
    pub fn told_to_end(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.end.notified())
    }

    /// Whether the connection never had a request: then nothing can be on its way out.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        self.state().has_asked
    }

    /// From now on until the guard is dropped, the connection has a request.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> Busy {
        let mut state = self.state();
        state.has_asked = true;
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
            let place = (state.idle_since, slot.id);
            slot.connections.table().idle.insert(place, Arc::clone(&slot.end));
        }
    }
}

#[cfg(test)]
mod tests;
