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
    /// Whether nothing waits.
    pub(super) const fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.said.is_empty()
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

    /// Something is to be said then.
    pub(super) fn say(&mut self, command: Command) {
        if let Command::Tell { message: Message::Delta { bytes, .. }, .. } = &command {
            self.bytes += bytes.len() as u64;
        }
        self.said.push(command);
    }

    /// What waits: rows, and what is said when they are kept. From then on nothing does.
    pub(super) fn take(&mut self) -> (Vec<Row>, Vec<Command>) {
        let Self { rows, said, .. } = std::mem::take(self);
        (rows, said)
    }
}

/// Bytes that a row has of blocks.
fn bytes_of(row: &Row) -> u64 {
    if let Row::Stored { bytes, .. } = row { bytes.len() as u64 } else { 0 }
}
