//! A bounded pipe from the worker that reads a blob to the client, with back-pressure and a stall
//! timeout.
//!
//! ```text
//! worker: give --> | stripe | stripe | --> next: client
//!            |                                |
//!            '- full for too long: parked     '- parked: the rest is requested again
//! ```
//!
//! A stalled client must not keep a group spinning while others wait for it. After
//! [`CLIENT_STALL_TIMEOUT`] the worker leaves, and the rest becomes a new operation when the client
//! comes back.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use fulgurite_units::Clock;

use crate::limits::{CLIENT_STALL_TIMEOUT, PIPE_STRIPES_MAX};
use crate::{RackError, Result};

/// State shared by both ends.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Signaled when there is room, or the client is gone.
    room: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Bytes>,
    end: Option<End>,
    is_closed: bool,
    waker: Option<Waker>,
}

/// How a worker ended.
#[derive(Debug)]
pub(super) enum End {
    /// All bytes were sent.
    Done,
    /// The client was too slow; the rest has to be requested again.
    Parked,
    /// Too few of the stacks that were read can be used; others may help.
    Short,
    /// It failed.
    Failed(RackError),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The worker's end. If it is dropped without an end, the client gets an error that the rack is
/// stopping.
#[derive(Debug)]
pub(super) struct Sender {
    shared: Arc<Shared>,
    clock: Clock,
}

/// The client's end.
#[derive(Debug)]
pub(super) struct Receiver(Arc<Shared>);

/// Creates an empty pipe.
pub(super) fn pipe(clock: &Clock) -> (Sender, Receiver) {
    let shared = Arc::new(Shared::default());
    // Advancing a manual clock must wake blocked workers too.
    let listener = Arc::downgrade(&shared);
    clock.listen(move || {
        if let Some(shared) = listener.upgrade() {
            shared.room.notify_all();
        }
    });
    (Sender { shared: Arc::clone(&shared), clock: clock.clone() }, Receiver(shared))
}

impl Sender {
    /// Sends bytes. Breaks when the client is gone or does not take them in time.
    pub(super) fn send(&self, bytes: Bytes) -> ControlFlow<End> {
        let until = self.clock.passed() + CLIENT_STALL_TIMEOUT;
        let mut state = self.shared.lock();
        loop {
            if state.is_closed {
                return ControlFlow::Break(End::Done);
            }
            if state.waiting.len() < PIPE_STRIPES_MAX {
                break;
            }
            if self.clock.passed() >= until {
                return ControlFlow::Break(End::Parked);
            }
            let room = &self.shared.room;
            state = match self.clock.sleep_until(until) {
                Some(time) => room
                    .wait_timeout(state, time.into())
                    .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state),
                None => room.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        state.waiting.push_back(bytes);
        wake(&mut state);
        ControlFlow::Continue(())
    }

    /// Reports how the worker ended.
    pub(super) fn end(self, end: End) {
        let mut state = self.shared.lock();
        state.end = Some(end);
        wake(&mut state);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.end.is_none() {
            state.end = Some(End::Failed(RackError::Stopping));
            wake(&mut state);
        }
    }
}

fn wake(state: &mut State) {
    if let Some(waker) = state.waker.take() {
        waker.wake();
    }
}

/// What the client receives next.
#[derive(Debug)]
pub(super) enum Next {
    /// Bytes.
    Bytes(Bytes),
    /// The end.
    End,
    /// The rest has to be requested again.
    Parked,
    /// The rest has to be requested again, from all stacks.
    Short,
}

impl Receiver {
    /// Polls for the next bytes, in order.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Next>> {
        let mut state = self.0.lock();
        if let Some(bytes) = state.waiting.pop_front() {
            self.0.room.notify_all();
            return Poll::Ready(Ok(Next::Bytes(bytes)));
        }
        match state.end.take() {
            Some(End::Done) => Poll::Ready(Ok(Next::End)),
            Some(End::Parked) => Poll::Ready(Ok(Next::Parked)),
            Some(End::Short) => Poll::Ready(Ok(Next::Short)),
            Some(End::Failed(error)) => Poll::Ready(Err(error)),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.room.notify_all();
    }
}

#[cfg(test)]
mod tests;
