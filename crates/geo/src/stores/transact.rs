//! A transaction on one row by optimistic concurrency: read, decide, write if unchanged, else
//! retry.
//!
//! ```text
//!          +--------- conflict ---------+
//!          v                            |
//!   row -> decide -> write if unchanged +--> done
//!          ^                            |
//!          |          unknown outcome: read back
//!          |            |  our bytes        -> done
//!          |            |  the previous row -> the same write again; both cannot be applied
//!          +------------+  another row
//! ```
//!
//! What is written must contain a nonce, so that no two writes have the same bytes: then a row that
//! is read back with our bytes is ours. Our write may have been applied and then replaced before it
//! was read back. The decision then sees the later row and must recognize its own effect in it (for
//! that, rows contain ids of what was done). Decisions may run any number of times, and must have
//! no side effects.
//!
//! A late write may recreate a row that was removed: a missing row has no tag. Callers that remove
//! rows must tolerate that.

use std::time::Duration;

use bytes::Bytes;

use crate::stores::limits::{BACKOFF_MAX, BACKOFF_MIN, TRIES_MAX};
use crate::stores::{
    Backoff, Cause, Certainty, Expect, Key, Row, Table, TableError, Tag, TransactError,
};

/// What the caller knows of the row beforehand.
#[derive(Clone, Debug, Default)]
pub enum Guess {
    /// Nothing: the row is read first.
    #[default]
    Nothing,
    /// It probably does not exist: a new row takes one round trip.
    Absent,
    /// It is probably still this one: a write takes one round trip.
    Row(Row),
}

/// Decision on a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<R> {
    /// Write these bytes, which contain a nonce.
    Write(Bytes, R),
    /// Leave it unchanged.
    Leave(R),
}

/// A completed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done<R> {
    /// Result of the decision that took effect.
    pub result: R,
    /// The current row, as far as is known: a guess for the next transaction. If the write was
    /// confirmed by a read, it is the row that was read.
    pub row: Option<Row>,
    /// Table calls that it took.
    pub calls: u32,
}

/// What is currently known of the row.
enum KnownRow {
    Nothing,
    /// The caller's guess: good enough for a write, which is refused if the guess is wrong.
    Guessed(Option<Row>),
    /// As read from the table.
    Read(Option<Row>),
}

/// A write with an unknown outcome.
struct UnresolvedWrite<R> {
    bytes: Bytes,
    expect: Expect,
    result: R,
    cause: Cause,
}

/// Runs `decide` on the row under `key`. The decision is based on the row as it is when it is
/// written or, if it is left unchanged, as it was read.
///
/// # Errors
/// [`TransactError`], which states whether something may have been written.
pub async fn transact<R: Send>(
    table: &dyn Table,
    key: &Key,
    guess: Guess,
    backoff: &dyn Backoff,
    mut decide: impl FnMut(Option<&[u8]>) -> Decision<R> + Send,
) -> Result<Done<R>, TransactError> {
    let mut known = match guess {
        Guess::Nothing => KnownRow::Nothing,
        Guess::Absent => KnownRow::Guessed(None),
        Guess::Row(row) => KnownRow::Guessed(Some(row)),
    };
    let mut transaction = Transaction { table, key, calls: 0, last: None, maybe_applied: None };
    let mut pending: Option<UnresolvedWrite<R>> = None;
    while transaction.calls < TRIES_MAX {
        if let Some(unresolved) = pending.take() {
            match transaction.resolve(unresolved).await? {
                Resolved::Done(done) => return Ok(done),
                Resolved::OtherRow(row) => known = KnownRow::Read(row),
                Resolved::Open(unresolved) => {
                    pending = Some(unresolved);
                    backoff.wait(backoff_limit(transaction.calls)).await;
                    continue;
                }
            }
        }
        let (row, is_read) = match std::mem::replace(&mut known, KnownRow::Nothing) {
            KnownRow::Nothing => match transaction.read().await? {
                Some(row) => (row, true),
                None => {
                    backoff.wait(backoff_limit(transaction.calls)).await;
                    continue;
                }
            },
            KnownRow::Guessed(row) => (row, false),
            KnownRow::Read(row) => (row, true),
        };
        match decide(row.as_ref().map(|row| &*row.bytes)) {
            // Leaving it unchanged requires a read, not a guess.
            Decision::Leave(_) if !is_read => {}
            Decision::Leave(result) => return Ok(Done { result, row, calls: transaction.calls }),
            Decision::Write(bytes, result) => match transaction.write(row, bytes, result).await? {
                Written::Done(done) => return Ok(done),
                Written::Conflict(current) => {
                    known = current.map_or(KnownRow::Nothing, |row| KnownRow::Read(Some(row)));
                    backoff.wait(backoff_limit(transaction.calls)).await;
                }
                Written::NotDone => backoff.wait(backoff_limit(transaction.calls)).await,
                Written::Open(unresolved) => pending = Some(unresolved),
            },
        }
    }
    Err(transaction.give_up(pending.map(|write| write.cause)))
}

enum Resolved<R> {
    Done(Done<R>),
    OtherRow(Option<Row>),
    Open(UnresolvedWrite<R>),
}

enum Written<R> {
    Done(Done<R>),
    Conflict(Option<Row>),
    NotDone,
    Open(UnresolvedWrite<R>),
}

struct Transaction<'a> {
    table: &'a dyn Table,
    key: &'a Key,
    calls: u32,
    /// Why the last call failed; none after a conflict.
    last: Option<Cause>,
    /// A write that may have been applied and replaced since.
    maybe_applied: Option<Cause>,
}

impl Transaction<'_> {
    /// Reads the row; none if the table does not answer now.
    async fn read(&mut self) -> Result<Option<Option<Row>>, TransactError> {
        self.calls += 1;
        match self.table.read(self.key).await {
            Ok(row) => Ok(Some(row)),
            Err(error) if error.certainty() == Certainty::Refused => Err(self.refused(error)),
            Err(error) => {
                self.last = Some(Cause::new(error.to_string()));
                Ok(None)
            }
        }
    }

    async fn write<R>(
        &mut self,
        row: Option<Row>,
        bytes: Bytes,
        result: R,
    ) -> Result<Written<R>, TransactError> {
        let expect = row.map_or(Expect::Absent, |row| Expect::Is(row.tag));
        self.calls += 1;
        match self.table.cas(self.key, expect.clone(), bytes.clone()).await {
            Ok(tag) => Ok(Written::Done(self.done(bytes, tag, result))),
            Err(TableError::Conflict(current)) => {
                self.last = None;
                Ok(Written::Conflict(current))
            }
            Err(error) => match error.certainty() {
                Certainty::Refused => Err(self.refused(error)),
                Certainty::NotDone => {
                    self.last = Some(Cause::new(error.to_string()));
                    Ok(Written::NotDone)
                }
                Certainty::Unknown => {
                    let cause = Cause::new(error.to_string());
                    Ok(Written::Open(UnresolvedWrite { bytes, expect, result, cause }))
                }
            },
        }
    }

    /// Checks whether a write was applied, and sends it again if not.
    async fn resolve<R>(
        &mut self,
        mut unresolved: UnresolvedWrite<R>,
    ) -> Result<Resolved<R>, TransactError> {
        self.calls += 1;
        let row = match self.table.read(self.key).await {
            Ok(row) => row,
            Err(error) => {
                // Even if the read is refused, the outcome of the write stays unknown.
                unresolved.cause = Cause::new(format!("{}; and then {error}", unresolved.cause));
                if error.certainty() == Certainty::Refused {
                    return Err(self.unknown(unresolved.cause));
                }
                return Ok(Resolved::Open(unresolved));
            }
        };
        if let Some(row) = &row
            && row.bytes == unresolved.bytes
        {
            let done = self.done(unresolved.bytes, row.tag.clone(), unresolved.result);
            return Ok(Resolved::Done(done));
        }
        let is_as_before = unresolved.expect.is_met(row.as_ref());
        if !is_as_before {
            // This write can no longer be applied, but it may have been, and replaced since.
            self.maybe_applied = Some(unresolved.cause);
            return Ok(Resolved::OtherRow(row));
        }
        self.calls += 1;
        match self.table.cas(self.key, unresolved.expect.clone(), unresolved.bytes.clone()).await {
            Ok(tag) => Ok(Resolved::Done(self.done(unresolved.bytes, tag, unresolved.result))),
            // The first write may have been applied just now: read again, as after any other result
            // of the second.
            Err(TableError::Conflict(_)) => Ok(Resolved::Open(unresolved)),
            Err(error) => {
                unresolved.cause = Cause::new(format!("{}; and then {error}", unresolved.cause));
                Ok(Resolved::Open(unresolved))
            }
        }
    }

    fn done<R>(&self, bytes: Bytes, tag: Tag, result: R) -> Done<R> {
        Done { result, row: Some(Row { bytes, tag }), calls: self.calls }
    }

    fn refused(&self, source: TableError) -> TransactError {
        match &self.maybe_applied {
            Some(cause) => self.unknown(cause.clone()),
            None => TransactError::Refused { key: self.key.clone(), source },
        }
    }

    fn unknown(&self, cause: Cause) -> TransactError {
        TransactError::Unknown { key: self.key.clone(), cause }
    }

    fn give_up(self, unresolved: Option<Cause>) -> TransactError {
        let key = self.key.clone();
        match (unresolved.or(self.maybe_applied), self.last) {
            (Some(cause), _) => TransactError::Unknown { key, cause },
            (None, Some(cause)) => TransactError::Unavailable { key, cause },
            (None, None) => TransactError::Contended { key, tries: self.calls },
        }
    }
}

/// Returns the maximum backoff after this many calls.
fn backoff_limit(calls: u32) -> Duration {
    BACKOFF_MIN.saturating_mul(1 << calls.min(16)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests;
