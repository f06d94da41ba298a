//! A transaction on one row: read, decide, write if nobody else did meanwhile, again if so.
//!
//! ```text
//!          +--------- conflict ---------+
//!          v                            |
//!   row -> decide -> write if unchanged +--> done
//!          ^                            |
//!          |          nobody knows what became of it: read back
//!          |            |  our bytes         -> done
//!          |            |  the row of before -> the same write again; both cannot land
//!          +------------+  another row
//! ```
//!
//! What is written has to have a nonce, so that no two writes are of the same bytes: then bytes
//! that are read back and equal ours are ours. A write of ours may have landed and have been
//! replaced by another before it was read back; the decision then sees that other row, and has to
//! know its own effect in it again (rows have ids of what was done for that). Decisions are asked
//! any number of times, and must have no effect themselves.
//!
//! A row that is removed may be made again by a write that is late: no row has no tag. Whoever
//! removes rows has to live with that.

use std::time::Duration;

use bytes::Bytes;

use crate::limits::{REST_MAX, REST_MIN, TRIES_MAX};
use crate::{Cause, Certainty, Expect, Key, Rests, Row, Table, TableError, Tag, TransactError};

/// What the caller knows of the row beforehand.
#[derive(Clone, Debug, Default)]
pub enum Guess {
    /// Nothing: it is read first.
    #[default]
    Nothing,
    /// It is likely not there: a new row takes one trip.
    Absent,
    /// It is likely still this one: a write takes one trip.
    Row(Row),
}

/// What is to become of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<R> {
    /// It is to be these bytes, which have a nonce.
    Write(Bytes, R),
    /// It is to stay as it is.
    Leave(R),
}

/// A transaction that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done<R> {
    /// What the decision that holds said.
    pub result: R,
    /// The row as it is now, as far as is known: a guess for the next transaction. After a write
    /// that was found landed it is what was read.
    pub row: Option<Row>,
    /// Calls of the table that it took.
    pub calls: u32,
}

/// What of the row is known at the moment.
enum Known {
    Nothing,
    /// As the caller guessed: to be believed for a write, which is refused when it is wrong.
    Guessed(Option<Row>),
    /// As the table said.
    Read(Option<Row>),
}

/// A write whose outcome nobody knows.
struct Sent<R> {
    bytes: Bytes,
    expect: Expect,
    result: R,
    cause: Cause,
}

/// Has `decide` say what becomes of the row under `key`, on the row as it is when it is written or,
/// if it is left, was read.
///
/// # Errors
/// [`TransactError`], which says whether something may have been written.
pub async fn transact<R: Send>(
    table: &dyn Table,
    key: &Key,
    guess: Guess,
    rests: &dyn Rests,
    mut decide: impl FnMut(Option<&[u8]>) -> Decision<R> + Send,
) -> Result<Done<R>, TransactError> {
    let mut known = match guess {
        Guess::Nothing => Known::Nothing,
        Guess::Absent => Known::Guessed(None),
        Guess::Row(row) => Known::Guessed(Some(row)),
    };
    let mut work = Work { table, key, calls: 0, last: None, maybe: None };
    let mut sent: Option<Sent<R>> = None;
    while work.calls < TRIES_MAX {
        if let Some(open) = sent.take() {
            match work.resolve(open).await? {
                Resolved::Done(done) => return Ok(done),
                Resolved::Another(row) => known = Known::Read(row),
                Resolved::Open(open) => {
                    sent = Some(open);
                    rests.rest(rest_of(work.calls)).await;
                    continue;
                }
            }
        }
        let (row, is_read) = match std::mem::replace(&mut known, Known::Nothing) {
            Known::Nothing => match work.read().await? {
                Some(row) => (row, true),
                None => {
                    rests.rest(rest_of(work.calls)).await;
                    continue;
                }
            },
            Known::Guessed(row) => (row, false),
            Known::Read(row) => (row, true),
        };
        match decide(row.as_ref().map(|row| &*row.bytes)) {
            // What is left was looked at, not guessed.
            Decision::Leave(_) if !is_read => {}
            Decision::Leave(result) => return Ok(Done { result, row, calls: work.calls }),
            Decision::Write(bytes, result) => match work.write(row, bytes, result).await? {
                Written::Done(done) => return Ok(done),
                Written::Conflict(there) => {
                    known = there.map_or(Known::Nothing, |row| Known::Read(Some(row)));
                    rests.rest(rest_of(work.calls)).await;
                }
                Written::Not => rests.rest(rest_of(work.calls)).await,
                Written::Open(open) => sent = Some(open),
            },
        }
    }
    Err(work.give_up(sent.map(|sent| sent.cause)))
}

enum Resolved<R> {
    Done(Done<R>),
    Another(Option<Row>),
    Open(Sent<R>),
}

enum Written<R> {
    Done(Done<R>),
    Conflict(Option<Row>),
    Not,
    Open(Sent<R>),
}

struct Work<'a> {
    table: &'a dyn Table,
    key: &'a Key,
    calls: u32,
    /// Why the last call came to nothing; none after a conflict.
    last: Option<Cause>,
    /// A write that may have landed and have been replaced since.
    maybe: Option<Cause>,
}

impl Work<'_> {
    /// The row, or nothing when the table does not answer now.
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
            Err(TableError::Conflict(there)) => {
                self.last = None;
                Ok(Written::Conflict(there))
            }
            Err(error) => match error.certainty() {
                Certainty::Refused => Err(self.refused(error)),
                Certainty::NotDone => {
                    self.last = Some(Cause::new(error.to_string()));
                    Ok(Written::Not)
                }
                Certainty::Unknown => {
                    let cause = Cause::new(error.to_string());
                    Ok(Written::Open(Sent { bytes, expect, result, cause }))
                }
            },
        }
    }

    /// Looks whether a write landed, and sends it again when it did not yet.
    async fn resolve<R>(&mut self, mut open: Sent<R>) -> Result<Resolved<R>, TransactError> {
        self.calls += 1;
        let row = match self.table.read(self.key).await {
            Ok(row) => row,
            Err(error) => {
                // Even who is refused a look does not know what became of the write.
                open.cause = Cause::new(format!("{}; and then {error}", open.cause));
                if error.certainty() == Certainty::Refused {
                    return Err(self.unknown(open.cause));
                }
                return Ok(Resolved::Open(open));
            }
        };
        if let Some(row) = &row
            && row.bytes == open.bytes
        {
            let done = self.done(open.bytes, row.tag.clone(), open.result);
            return Ok(Resolved::Done(done));
        }
        let is_as_before = open.expect.is_met(row.as_ref());
        if !is_as_before {
            // It can land no more, but it may have.
            self.maybe = Some(open.cause);
            return Ok(Resolved::Another(row));
        }
        self.calls += 1;
        match self.table.cas(self.key, open.expect.clone(), open.bytes.clone()).await {
            Ok(tag) => Ok(Resolved::Done(self.done(open.bytes, tag, open.result))),
            // The first may have landed just now: it is looked at again, and so it is whatever else
            // came of the second.
            Err(TableError::Conflict(_)) => Ok(Resolved::Open(open)),
            Err(error) => {
                open.cause = Cause::new(format!("{}; and then {error}", open.cause));
                Ok(Resolved::Open(open))
            }
        }
    }

    fn done<R>(&self, bytes: Bytes, tag: Tag, result: R) -> Done<R> {
        Done { result, row: Some(Row { bytes, tag }), calls: self.calls }
    }

    fn refused(&self, source: TableError) -> TransactError {
        match &self.maybe {
            Some(cause) => self.unknown(cause.clone()),
            None => TransactError::Refused { key: self.key.clone(), source },
        }
    }

    fn unknown(&self, cause: Cause) -> TransactError {
        TransactError::Unknown { key: self.key.clone(), cause }
    }

    fn give_up(self, open: Option<Cause>) -> TransactError {
        let key = self.key.clone();
        match (open.or(self.maybe), self.last) {
            (Some(cause), _) => TransactError::Unknown { key, cause },
            (None, Some(cause)) => TransactError::Unavailable { key, cause },
            (None, None) => TransactError::Contended { key, tries: self.calls },
        }
    }
}

/// The longest rest after so many calls.
fn rest_of(calls: u32) -> Duration {
    REST_MIN.saturating_mul(1 << calls.min(16)).min(REST_MAX)
}

#[cfg(test)]
mod tests;
