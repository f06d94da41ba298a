//! Link to one store of a node: a connection that is opened on demand. For a call without an
//! answer, the error states whether it may have been executed.
//!
//! ```text
//! no connection -- dial, Open: version, store --> connection -- call --> answer
//!       ^                                            |
//!       '---------------- it ended -----------------'   a call that was sent: outcome unknown
//! ```
//!
//! Not here: the calls themselves.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use fulgurite_sites::limits::{ANSWER_WITHIN, CONNECT_WITHIN};
use fulgurite_sites::{BlobError, Cause, NodePlace, OpenError, TableCaps, TableError};
use fulgurite_units::error_chain;
use tokio::time::{Instant, timeout};
use tonic::{Code, ConnectError, Status};

use crate::calls::{Client, OPEN};
use crate::dial::{NoConnection, dial, ended};
use crate::limits::VERSION;
use crate::tls::TlsFiles;
use crate::told::{blob_error, is_missing, is_not_served, is_stranger, table_error};
use crate::wire::{Failure, OpenReply, OpenRequest};

/// A store of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Table,
    Blobs,
}

impl Part {
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Table => 1,
            Self::Blobs => 2,
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Blobs => "folder of blobs",
        }
    }
}

/// Why no call can be sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NoLink {
    /// There is no connection.
    No(NoConnection),
    /// The node has no such store at the moment.
    Store(Failure),
}

/// A call without an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// It did not arrive.
    NotSent(NoLink),
    /// It may have arrived.
    Lost(String),
}

/// Link to one store of a node.
#[derive(Debug)]
pub(crate) struct Link {
    place: NodePlace,
    files: TlsFiles,
    part: Part,
    dialing: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    caps: OnceLock<TableCaps>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of the current connection, or of the last one.
    number: u64,
    live: Option<Client>,
    failed: Option<(Instant, NoLink)>,
}

impl Link {
    pub(crate) fn new(place: NodePlace, part: Part) -> Self {
        let files = TlsFiles {
            ca: place.ca.clone(),
            certificate: place.certificate.clone(),
            key: place.key.clone(),
        };
        let (dialing, state, caps) = Default::default();
        Self { place, files, part, dialing, state, caps }
    }

    /// Connects, and makes the node open the store. An unreachable node is no error, unless it is
    /// to create the store: each call tries to connect again.
    pub(crate) async fn open(&self, may_create: bool) -> Result<(), OpenError> {
        match self.connected(may_create).await {
            Ok(_) => Ok(()),
            Err(NoLink::No(NoConnection::Away(why))) if !may_create => {
                tracing::warn!(node = %self.place.at, "not reached yet: {why}");
                Ok(())
            }
            Err(error) => Err(self.open_error(error)),
        }
    }

    fn open_error(&self, error: NoLink) -> OpenError {
        let place = self.place.address.clone();
        match error {
            NoLink::Store(failure) if is_missing(&failure) => {
                OpenError::Missing { what: self.part.what(), place }
            }
            NoLink::Store(failure) if is_not_served(&failure) => {
                let what = if self.part == Part::Table { "table" } else { "blobs" };
                OpenError::NotServed { what, place }
            }
            NoLink::Store(failure) if is_stranger(&failure) => {
                OpenError::Stranger { place, what: failure.what }
            }
            NoLink::No(NoConnection::Refused(what)) => OpenError::Stranger { place, what },
            error @ (NoLink::No(_) | NoLink::Store(_)) => match self.part {
                Part::Table => OpenError::Table { place, source: not_sent(error) },
                Part::Blobs => OpenError::Blob { place, source: blob_not_sent(error) },
            },
        }
    }

    /// Returns the capabilities of the table, once the node has sent them.
    pub(crate) fn caps(&self) -> Option<TableCaps> {
        self.caps.get().copied()
    }

    /// Returns a connection and its number.
    pub(crate) async fn client(&self) -> Result<(u64, Client), NoLink> {
        self.connected(false).await
    }

    async fn connected(&self, may_create: bool) -> Result<(u64, Client), NoLink> {
        let asked = Instant::now();
        if let Some(live) = self.live() {
            return Ok(live);
        }
        let _one = self.dialing.lock().await;
        if let Some(live) = self.live() {
            return Ok(live);
        }
        // A caller that waited for another's failed attempt would wait just as long for the same
        // result.
        if let Some((when, error)) = &self.state().failed
            && *when >= asked
        {
            return Err(error.clone());
        }
        // Creating a store takes longer than finding one.
        let within = if may_create { ANSWER_WITHIN } else { CONNECT_WITHIN };
        let dialed = timeout(within, self.dial(may_create)).await.unwrap_or_else(|_| {
            let why = format!("the node at {} does not answer in time", self.place.at);
            Err(NoLink::No(NoConnection::Away(why)))
        });
        let mut state = self.state();
        match dialed {
            Ok(client) => {
                state.number += 1;
                state.failed = None;
                state.live = Some(client.clone());
                Ok((state.number, client))
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> Option<(u64, Client)> {
        let state = self.state();
        Some((state.number, state.live.clone()?))
    }

    /// Records that the connection with this number has ended.
    fn over(&self, number: u64) {
        let mut state = self.state();
        if state.number == number {
            state.live = None;
        }
    }

    async fn dial(&self, may_create: bool) -> Result<Client, NoLink> {
        let NodePlace { at, name, .. } = &self.place;
        let (channel, alert) = dial(at, name, &self.files).await.map_err(NoLink::No)?;
        let mut client = Client::new(channel);
        let asked = OpenRequest { version: VERSION, part: self.part.number(), may_create };
        let reply: Result<OpenReply, Status> = client.unary(OPEN, asked, ANSWER_WITHIN).await;
        let reply = match reply {
            Ok(reply) => reply,
            Err(status) if status.code() == Code::Unimplemented => {
                return Err(other_version(at, "no node, or one of another release"));
            }
            Err(status) => return Err(NoLink::No(ended(at, &alert, &said(&status)))),
        };
        let caps = opened(at, &reply)?;
        self.caps.get_or_init(|| caps);
        Ok(client)
    }

    /// Sends one request and returns its answer. If it was not sent because the connection had
    /// ended meanwhile, it is sent once more.
    pub(crate) async fn unary<Q, A>(
        &self,
        path: &'static str,
        asked: Q,
        within: Duration,
    ) -> Result<A, Fault>
    where
        Q: prost::Message + Clone + 'static,
        A: prost::Message + Default + 'static,
    {
        let calling = async {
            let mut was_over = false;
            loop {
                let (number, mut client) = self.client().await.map_err(Fault::NotSent)?;
                match client.unary(path, asked.clone(), within).await {
                    Ok(answer) => return Ok(answer),
                    Err(status) => match self.fault(number, &status) {
                        Fault::NotSent(NoLink::No(NoConnection::Away(_))) if !was_over => {
                            was_over = true;
                        }
                        fault @ (Fault::NotSent(_) | Fault::Lost(_)) => return Err(fault),
                    },
                }
            }
        };
        let late = |_| Err(Fault::Lost(self.late(within)));
        timeout(within, calling).await.unwrap_or_else(late)
    }

    pub(crate) fn late(&self, within: Duration) -> String {
        format!("the node at {} did not answer within {} s", self.place.at, within.as_secs())
    }

    /// Interprets a status that does not come from the store.
    pub(crate) fn fault(&self, number: u64, status: &Status) -> Fault {
        let at = &self.place.at;
        if status.code() == Code::Unimplemented {
            return Fault::NotSent(other_version(at, "one without this call"));
        }
        if status.code() != Code::DeadlineExceeded {
            self.over(number);
        }
        let why = format!("the node at {at}: {}", said(status));
        if was_not_connected(status) {
            return Fault::NotSent(NoLink::No(NoConnection::Away(why)));
        }
        Fault::Lost(why)
    }
}

/// Returns the capabilities of a table that a node opened; blobs have none.
pub(crate) fn opened(at: &str, reply: &OpenReply) -> Result<TableCaps, NoLink> {
    if reply.version != VERSION {
        let theirs =
            format!("one that speaks version {} (release {})", reply.version, reply.program);
        return Err(other_version(at, &theirs));
    }
    if let Some(failure) = &reply.failure {
        return Err(NoLink::Store(failure.clone()));
    }
    Ok(TableCaps {
        max_row: usize::try_from(reply.max_row).unwrap_or(usize::MAX),
        cond_delete: reply.cond_delete,
        reply_on_conflict: reply.reply_on_conflict,
        tag_reuse: reply.tag_reuse,
        scan_order: reply.scan_order,
    })
}

fn other_version(at: &str, theirs: &str) -> NoLink {
    NoLink::No(NoConnection::Refused(format!(
        "the node at {at} is {theirs}; this program speaks version {VERSION} (release {}): run \
         the same release at both ends",
        env!("CARGO_PKG_VERSION")
    )))
}

/// Whether the request was not sent because the connection had already ended.
fn was_not_connected(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

fn said(status: &Status) -> String {
    match (std::error::Error::source(status), status.message()) {
        (Some(source), _) => error_chain(source),
        (None, "") => status.code().to_string(),
        (None, message) => message.to_owned(),
    }
}

fn not_sent(error: NoLink) -> TableError {
    match error {
        NoLink::No(NoConnection::Away(why)) => TableError::Unavailable(Cause::new(why)),
        NoLink::No(NoConnection::Refused(why)) => TableError::Denied(Cause::new(why)),
        NoLink::Store(failure) => of_read(table_error(failure)),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "whatever else there is stays what it is")]
fn blob_not_sent(error: NoLink) -> BlobError {
    match error {
        NoLink::No(NoConnection::Away(why)) => BlobError::Unavailable(Cause::new(why)),
        NoLink::No(NoConnection::Refused(why)) => BlobError::Denied(Cause::new(why)),
        // A missing store says nothing about a blob.
        NoLink::Store(failure) => match blob_error(failure) {
            BlobError::NotFound | BlobError::Exists | BlobError::Unknown(_) => {
                BlobError::Unavailable(Cause::new("the node's store cannot be opened"))
            }
            error => error,
        },
    }
}

/// Returns the table error of a call without an answer.
pub(crate) fn table_fault(fault: Fault) -> TableError {
    match fault {
        Fault::NotSent(error) => not_sent(error),
        Fault::Lost(why) => TableError::Unknown(Cause::new(why)),
    }
}

/// Returns the blob error of a call without an answer.
pub(crate) fn blob_fault(fault: Fault) -> BlobError {
    match fault {
        Fault::NotSent(error) => blob_not_sent(error),
        Fault::Lost(why) => BlobError::Unknown(Cause::new(why)),
    }
}

/// Maps the error of a call without effects: an unknown outcome becomes not done.
pub(crate) fn of_read(error: TableError) -> TableError {
    if let TableError::Unknown(cause) = error { TableError::Unavailable(cause) } else { error }
}

/// The same for blobs.
pub(crate) fn of_blob_read(error: BlobError) -> BlobError {
    if let BlobError::Unknown(cause) = error { BlobError::Unavailable(cause) } else { error }
}
