//! Group commit: rows and the messages that depend on them are held, so that several events share
//! one commit and one sync.
//!
//! A parity receives 64 blocks one after the other, and acknowledges each to its data member; a
//! commit for each would dominate the latency of a put. Nothing is sent before its rows are
//! committed, and messages stay in order. Not here: when held rows are committed.

use fulgurite_tome_core::Command;
use fulgurite_tome_core::message::Message;
use fulgurite_tome_core::metadata::Row;

use crate::limits::{COMMIT_BATCH_BYTES_MAX, COMMIT_BATCH_COMMANDS_MAX};

/// Rows and messages that wait for a commit.
#[derive(Debug, Default)]
pub(super) struct CommitBatch {
    rows: Vec<Row>,
    commands: Vec<Command>,
    bytes: u64,
}

impl CommitBatch {
    /// Whether no row waits, and so messages need not wait.
    pub(super) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether to commit before accepting more.
    pub(super) const fn is_full(&self) -> bool {
        let count = self.rows.len() + self.commands.len();
        count >= COMMIT_BATCH_COMMANDS_MAX || self.bytes >= COMMIT_BATCH_BYTES_MAX.get()
    }

    /// Adds rows to the next commit.
    pub(super) fn add_rows(&mut self, rows: Vec<Row>) {
        self.bytes += rows.iter().map(row_bytes).sum::<u64>();
        self.rows.extend(rows);
    }

    /// Adds a message to send after the next commit.
    pub(super) fn add_command(&mut self, command: Command) {
        assert!(!self.is_empty(), "a command that waits for no row is sent at once");
        if let Command::Send { message, .. } = &command {
            self.bytes += message_bytes(message);
        }
        self.commands.push(command);
    }

    /// Takes what waits: rows, and the messages that depend on them.
    pub(super) fn take(&mut self) -> (Vec<Row>, Vec<Command>) {
        let Self { rows, commands, .. } = std::mem::take(self);
        (rows, commands)
    }
}

/// Returns the bytes of blocks in a message.
fn message_bytes(message: &Message) -> u64 {
    match message {
        Message::Delta { bytes, .. } => bytes.len() as u64,
        Message::Holdings { held: Some(held), .. } => {
            let changes = held.iter().flat_map(|held| &held.changes).map(|known| &known.bytes);
            let all = held.iter().map(|held| &held.block).chain(changes);
            all.map(|bytes| bytes.len() as u64).sum()
        }
        Message::Holdings { held: None, .. }
        | Message::Query { .. }
        | Message::Status { .. }
        | Message::ReportWanted { .. }
        | Message::Report { .. }
        | Message::NodesWanted { .. }
        | Message::Nodes { .. }
        | Message::Freeze(_)
        | Message::Ready { .. }
        | Message::Thaw(_)
        | Message::Moved(_)
        | Message::Learned { .. }
        | Message::HoldingsWanted { .. }
        | Message::Share { .. } => 0,
    }
}

/// Returns the bytes of blocks in a row.
fn row_bytes(row: &Row) -> u64 {
    if let Row::Stored { bytes, .. } = row { bytes.len() as u64 } else { 0 }
}
