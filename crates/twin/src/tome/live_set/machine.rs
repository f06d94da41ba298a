//! The machine of a tome: when its disk, its board and its network finish what the tome decided.
//!
//! ```text
//!   board   one command after the other: reads, writes, parity computation
//!   wire    messages with blocks leave one after the other
//! ```
//!
//! The rates are the scenario's, from table 5 of Pergamum (FAST 2008): a block is read or written
//! at `target`; the time that `ingest`, `segment` and `fold` take beyond that is the board's. Not
//! here: what the commands do.

use fulgurite_tome_core::message::{Held, Message};
use fulgurite_tome_core::metadata::Row;
use fulgurite_tome_core::token::TokenId;
use fulgurite_tome_core::{Alarm, Answer, Command, PhysicalBlock, Tome};
use fulgurite_units::{Duration, Instant};

use crate::tome::Scenario;
use crate::tome::scenario::bytes;

/// A tome and its machine.
#[derive(Debug)]
pub(crate) struct Node {
    /// `None` if it is lost.
    pub(crate) tome: Option<Tome>,
    pub(crate) disk: Vec<Option<Vec<u8>>>,
    /// The token under which the disk spins.
    pub(crate) spinning: Option<TokenId>,
    /// Whether it is up and has no command to spin down.
    pub(crate) is_up: bool,
    /// When the board is done with all its commands.
    pub(crate) board: Instant,
    wire: Instant,
    /// Position of the disk's head.
    head: u32,
    /// When its timer fires.
    pub(crate) timer: Option<Instant>,
}

impl Node {
    pub(crate) fn new(tome: Tome, disk: Vec<Option<Vec<u8>>>) -> Self {
        Self {
            tome: Some(tome),
            disk,
            spinning: None,
            is_up: false,
            board: Instant::ZERO,
            wire: Instant::ZERO,
            head: 0,
            timer: None,
        }
    }

    /// Occupies the board; returns when it is done.
    pub(crate) fn occupy_board(&mut self, now: Instant, duration: Duration) -> Instant {
        self.board = self.board.max(now) + duration;
        self.board
    }

    /// Sends blocks once the board is done; returns when they arrive.
    pub(crate) fn send(&mut self, now: Instant, blocks: u64, times: &Times) -> Instant {
        let from = self.board.max(now);
        if blocks == 0 {
            return from + times.latency;
        }
        self.wire = self.wire.max(from) + times.duration(blocks, times.network_s);
        self.wire + times.latency
    }

    /// Counts the seeks to these blocks, and moves the head.
    pub(crate) fn seeks(&mut self, physical_blocks: &[PhysicalBlock]) -> u64 {
        let mut count = 0;
        for block in physical_blocks {
            count += u64::from(block.get() != self.head);
            self.head = block.get() + 1;
        }
        count
    }
}

/// Times of operations, in seconds per block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) latency: Duration,
    seek_s: f64,
    network_s: f64,
    disk_s: f64,
    put_s: f64,
    fold_s: f64,
    multiply_s: f64,
    segment_data: u64,
}

impl Times {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let rates = &scenario.rates;
        let a_block = |rate: f64| bytes(scenario.driven.block) / 1e6 / rate;
        let disk_s = a_block(rates.target);
        Self {
            latency: scenario.driven.latency,
            seek_s: scenario.driven.seek.as_secs_f64(),
            network_s: a_block(rates.network),
            disk_s,
            put_s: (a_block(rates.ingest) + a_block(rates.segment) - disk_s).max(0.0),
            fold_s: (a_block(rates.fold) - 2.0 * disk_s).max(0.0),
            multiply_s: a_block(rates.multiply),
            segment_data: u64::from(scenario.segment.data),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 blocks")]
    fn duration(&self, blocks: u64, each_s: f64) -> Duration {
        Duration::from_secs_f64(blocks as f64 * each_s)
    }

    /// Returns the time to read or write blocks with this many seeks.
    pub(crate) fn disk(&self, blocks: u64, seeks: u64) -> Duration {
        self.duration(blocks, self.disk_s) + self.duration(seeks, self.seek_s)
    }

    /// Returns the computing time of the board before a command.
    pub(crate) fn computing(&self, command: &Command) -> Duration {
        if let Command::Commit(rows) = command {
            return self.rows(rows);
        }
        let Command::Alarm(Alarm::Healed { blocks, .. }) = command else { return Duration::ZERO };
        self.duration(*blocks as u64 * self.segment_data, self.multiply_s)
    }

    fn rows(&self, rows: &[Row]) -> Duration {
        let (mut put, mut folded, mut built, mut blocks) = (0, 0, false, 0);
        for row in rows {
            if let Row::Object { object, .. } = row {
                put += object.blocks.len() as u64;
            }
            folded += u64::from(matches!(row, Row::Folded { .. }));
            built |= matches!(row, Row::Building { .. });
            blocks += u64::from(matches!(row, Row::Block { .. }));
        }
        let built = if built { blocks } else { 0 };
        self.duration(put, self.put_s)
            + self.duration(folded, self.fold_s)
            + self.duration(built, self.multiply_s)
    }
}

/// Returns the number of blocks in a message.
pub(crate) fn blocks_in_message(message: &Message) -> u64 {
    if let Message::Holdings { held: Some(held), .. } = message {
        return blocks_held(held);
    }
    u64::from(matches!(message, Message::Delta { .. }))
}

/// Returns the number of blocks in an answer.
pub(crate) fn blocks_in_answer(answer: &Answer) -> u64 {
    if let Answer::Held { held, .. } = answer {
        return blocks_held(held);
    }
    let Answer::Bytes(bytes) = answer else { return 0 };
    bytes.len().div_ceil(super::settings::CORE_BLOCK) as u64
}

fn blocks_held(held: &[Held]) -> u64 {
    let blocks = |held: &Held| usize::from(!held.block.is_empty()) + held.changes.len();
    held.iter().map(blocks).sum::<usize>() as u64
}
