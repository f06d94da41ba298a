//! A queue of messages for one peer, bounded in their number and in their bytes.
//!
//! Not here: who counts what did not fit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fulgurite_rpc::prost::Message;
use tokio::sync::mpsc;

use crate::remote::limits::{ROUTE_BYTES_MAX, ROUTE_MAX};

/// Returns both ends of a queue.
pub(crate) fn queue<M>() -> (QueueSender<M>, QueueReceiver<M>) {
    let (messages, waiting) = mpsc::channel(ROUTE_MAX);
    let bytes = Arc::<AtomicUsize>::default();
    (QueueSender { messages, bytes: Arc::clone(&bytes) }, QueueReceiver { waiting, bytes })
}

/// Adds messages.
#[derive(Debug)]
pub(crate) struct QueueSender<M> {
    messages: mpsc::Sender<M>,
    bytes: Arc<AtomicUsize>,
}

impl<M: Message> QueueSender<M> {
    /// Adds a message if there is room; never blocks. The first one fits, whatever its size.
    pub(crate) fn send(&self, message: M) -> bool {
        let length = message.encoded_len();
        let waiting = self.bytes.fetch_add(length, Ordering::Relaxed);
        let fits = waiting == 0 || waiting.saturating_add(length) <= ROUTE_BYTES_MAX;
        let is_sent = fits && self.messages.try_send(message).is_ok();
        if !is_sent {
            self.bytes.fetch_sub(length, Ordering::Relaxed);
        }
        is_sent
    }
}

/// Takes messages, in their order.
#[derive(Debug)]
pub(crate) struct QueueReceiver<M> {
    waiting: mpsc::Receiver<M>,
    bytes: Arc<AtomicUsize>,
}

impl<M: Message> QueueReceiver<M> {
    /// Waits for the next message; returns `None` when the sender is gone.
    pub(crate) async fn next(&mut self) -> Option<M> {
        let message = self.waiting.recv().await?;
        self.taken(&message);
        Some(message)
    }

    /// Drops all messages that wait.
    pub(crate) fn clear(&mut self) {
        while let Ok(message) = self.waiting.try_recv() {
            self.taken(&message);
        }
    }

    fn taken(&self, message: &M) {
        self.bytes.fetch_sub(message.encoded_len(), Ordering::Relaxed);
    }
}
