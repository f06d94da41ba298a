//! Rows that are to be kept, and what is to be said when they are: what several messages lead to
//! is kept in one commit, with one sync.
//!
//! A parity is told of 64 blocks one after the other, and its data member is told as often that
//! they are there; a commit for each would be most of what a put waits for. Nothing is said before
//! its rows are kept, and what is said stays in order. Not here: when what is held is kept.

use fulgurite_tome::Command;
use fulgurite_tome::awake::Row;
use fulgurite_tome::message::Message;

use crate::limits::{HELD_BYTES_MAX, HELD_COMMANDS_MAX};

/// What waits for a commit.
#[derive(Debug, Default)]
pub(super) struct Held {
    rows: Vec<Row>,
    said: Vec<Command>,
    bytes: u64,
}

impl Held {
    /// Whether no row waits, and so nothing is to be said later.
    pub(super) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether it is to be kept before more comes.
    pub(super) const fn is_full(&self) -> bool {
        let count = self.rows.len() + self.said.len();
        count >= HELD_COMMANDS_MAX || self.bytes >= HELD_BYTES_MAX.get()
    }

    /// Rows are to be kept.
    pub(super) fn keep(&mut self, rows: Vec<Row>) {
        self.bytes += rows.iter().map(bytes_of).sum::<u64>();
        self.rows.extend(rows);
    }

    /// Something is to be said when the rows are kept that wait.
    pub(super) fn say(&mut self, command: Command) {
        assert!(!self.is_empty(), "what waits for nothing is said at once");
        if let Command::Tell { message, .. } = &command {
            self.bytes += bytes_told(message);
        }
        self.said.push(command);
    }

    /// What waits: rows, and what is said when they are kept. From then on nothing does.
    pub(super) fn take(&mut self) -> (Vec<Row>, Vec<Command>) {
        let Self { rows, said, .. } = std::mem::take(self);
        (rows, said)
    }
}

/// Bytes that a message has of blocks.
fn bytes_told(message: &Message) -> u64 {
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

/// Bytes that a row has of blocks.
fn bytes_of(row: &Row) -> u64 {
    if let Row::Stored { bytes, .. } = row { bytes.len() as u64 } else { 0 }
}
