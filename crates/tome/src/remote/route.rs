//! Messages of one tome to another: a bounded queue, and a connection that is made on demand and
//! reconnects.
//!
//! What does not fit is dropped and counted; messages on a connection that ended are lost as well.
//! Not here: checking the sender of messages.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use crate::remote::dial::{Backoff, BackoffLimits, dial};
use crate::remote::queue::{QueueReceiver, QueueSender, queue};
use crate::remote::tls::{PeerName, Tls};
use crate::remote::wire::{Letter, calls};
use crate::remote::{NetError, Result};

/// The route to one tome. Dropping it ends what is in progress.
#[derive(Debug)]
pub(crate) struct Route {
    letters: QueueSender<Letter>,
    lost: AtomicU64,
    _over: watch::Sender<()>,
}

impl Route {
    /// Starts the route to a tome.
    pub(crate) fn new(
        name: PeerName,
        address: String,
        tls: Tls,
        backoff_limits: BackoffLimits,
        runtime: &Handle,
    ) -> Self {
        let (letters, waiting) = queue();
        let (over, ended) = watch::channel(());
        runtime.spawn(run(waiting, ended, name, address, tls, backoff_limits));
        Self { letters, lost: AtomicU64::new(0), _over: over }
    }

    /// Queues a message if there is room; never blocks.
    pub(crate) fn send(&self, letter: Letter) {
        if !self.letters.send(letter) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of messages that did not fit.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

async fn run(
    mut queue: QueueReceiver<Letter>,
    mut ended: watch::Receiver<()>,
    name: PeerName,
    address: String,
    tls: Tls,
    backoff_limits: BackoffLimits,
) {
    let mut backoff = Backoff::new(backoff_limits);
    loop {
        let first = tokio::select! {
            first = queue.next() => first,
            _ = ended.changed() => None,
        };
        let Some(first) = first else { return };
        backoff.begin();
        let mut was_there = false;
        let error = tokio::select! {
            result = forward(first, &mut queue, &mut was_there, name, &address, &tls) => result,
            _ = ended.changed() => return,
        };
        let Err(error) = error else { return };
        let wait = backoff.end(was_there);
        tracing::debug!(to = %address, "not connected: {error}; backing off for {wait:?}");
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = ended.changed() => return,
        }
    }
}

/// Sends messages until the connection ends.
async fn forward(
    first: Letter,
    queue: &mut QueueReceiver<Letter>,
    was_there: &mut bool,
    name: PeerName,
    address: &str,
    tls: &Tls,
) -> Result<()> {
    let mut client = dial(address, name, tls).await?;
    *was_there = true;
    let (outgoing, stream) = mpsc::channel(1);
    let call = client.client_streaming::<calls::Letters>(ReceiverStream::new(stream));
    let mut call = std::pin::pin!(call);
    let mut next = Some(first);
    while let Some(letter) = next {
        tokio::select! {
            // If it takes no more, the call has ended, and its status says why.
            _ = outgoing.send(letter) => {}
            ended = &mut call => return Err(connection_ended(ended.err())),
        }
        next = tokio::select! {
            next = queue.next() => next,
            ended = &mut call => return Err(connection_ended(ended.err())),
        };
    }
    Ok(())
}

fn connection_ended(status: Option<tonic::Status>) -> NetError {
    let what = status.map_or_else(String::new, |status| status.message().to_owned());
    NetError::Ended { what }
}
