//! The doctor: checks that a store does what sites rely on, and reports what it observed.
//!
//! Some stores accept a conditional write and acknowledge it without checking the condition.
//! Nothing built on such a store is correct. So a store is examined before it holds any rows, and
//! is refused if it fails; the report can be stored.
//!
//! Everything happens below one key, which must be empty before and is empty after, and without a
//! clock. Not here: the speed of a store, and its behavior in a power cut.

mod blobs;
mod lossy_table;
mod races;
mod report;
mod sequential;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;

use crate::stores::{Blob, Entropy, Key, Row, Table, TableError};
pub use lossy_table::{Loss, LossyTable};
pub use report::{Check, CheckName, DoctorError, Outcome, Report};

/// A table under examination.
struct Subject<'a> {
    table: &'a dyn Table,
    /// The same table over another connection.
    second: &'a dyn Table,
    prefix: &'a Key,
    entropy: &'a Entropy,
    /// Keys that may have rows, to be cleaned up.
    used: Mutex<BTreeSet<Key>>,
}

/// What a check observed, or the violation that it found.
type CheckResult = Result<(Outcome, String), String>;
/// A check and its name.
type NamedCheck<'a> = (CheckName, BoxFuture<'a, CheckResult>);

/// Examines a table below `prefix`, over two connections. `store` only appears in the report.
///
/// # Errors
/// [`DoctorError::Occupied`] if something exists below `prefix`, and [`DoctorError::Table`] if the
/// table cannot be read at all. Failed checks are in the report: [`Report::accept`].
pub fn examine<'a>(
    store: &'a str,
    table: &'a dyn Table,
    second: &'a dyn Table,
    prefix: &'a Key,
    entropy: &'a Entropy,
) -> BoxFuture<'a, Result<Report, DoctorError>> {
    Box::pin(async move {
        if let Some(found) = table.scan(Some(prefix), None).next().await {
            let (key, _) = found?;
            return Err(DoctorError::Occupied { key });
        }
        let subject = Subject { table, second, prefix, entropy, used: Mutex::default() };
        // A faulty table may hide rows from a scan.
        let first = subject.key("kept", 0);
        if table.read(&first).await?.is_some() {
            return Err(DoctorError::Occupied { key: first });
        }
        let checks: [NamedCheck<'_>; 13] = [
            (CheckName::Kept, Box::pin(sequential::check_read_back(&subject))),
            (CheckName::CreateRace, Box::pin(races::create(&subject))),
            (CheckName::UpdateRace, Box::pin(races::update(&subject))),
            (CheckName::StaleTag, Box::pin(sequential::stale_tag(&subject))),
            (CheckName::TagOfNothing, Box::pin(sequential::tag_of_nothing(&subject))),
            (CheckName::Counter, Box::pin(races::counter(&subject))),
            (CheckName::SecondConnection, Box::pin(sequential::second_connection(&subject))),
            (CheckName::LostReply, Box::pin(sequential::lost_reply(&subject))),
            (CheckName::ConditionalDelete, Box::pin(sequential::conditional_delete(&subject))),
            (CheckName::TagReuse, Box::pin(sequential::tag_reuse(&subject))),
            (CheckName::SizeLimit, Box::pin(sequential::size_limit(&subject))),
            (CheckName::ScanOrder, Box::pin(sequential::scan_order(&subject))),
            (CheckName::CleanUp, Box::pin(subject.clean_up())),
        ];
        Ok(Report { store: store.to_owned(), checks: run(checks).await })
    })
}

/// Examines blobs below `prefix`, over two connections.
///
/// # Errors
/// As [`examine`].
pub fn examine_blobs<'a>(
    store: &'a str,
    blobs: &'a dyn Blob,
    second: &'a dyn Blob,
    prefix: &'a Key,
    entropy: &'a Entropy,
) -> BoxFuture<'a, Result<Report, DoctorError>> {
    Box::pin(async move {
        let subject = blobs::Subject::new(blobs, second, prefix, entropy);
        subject.check_empty().await?;
        let checks: [NamedCheck<'_>; 6] = [
            (CheckName::Kept, Box::pin(subject.check_read_back())),
            (CheckName::CreateRace, Box::pin(subject.create_race())),
            (CheckName::SecondConnection, Box::pin(subject.second_connection())),
            (CheckName::Ranges, Box::pin(subject.ranges())),
            (CheckName::Removal, Box::pin(subject.removal())),
            (CheckName::CleanUp, Box::pin(subject.clean_up())),
        ];
        Ok(Report { store: store.to_owned(), checks: run(checks).await })
    })
}

/// Runs the checks one after the other.
async fn run<const N: usize>(checks: [NamedCheck<'_>; N]) -> Vec<Check> {
    let mut done = Vec::with_capacity(N);
    for (name, check) in checks {
        let (outcome, seen) = match check.await {
            Ok(seen) => seen,
            Err(seen) => (Outcome::Failed, seen),
        };
        done.push(Check { name, outcome, seen });
    }
    done
}

impl Subject<'_> {
    /// Returns a key of a check's own.
    fn key(&self, check: &str, number: usize) -> Key {
        let key = self.prefix.join(&format!("{check}-{number}")).expect("a prefix has room");
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        key
    }

    /// Returns bytes that nobody else writes.
    fn image(&self) -> Bytes {
        Bytes::copy_from_slice(&self.entropy.draw())
    }

    /// Removes what the checks left.
    async fn clean_up(&self) -> CheckResult {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut left = 0;
        for key in &used {
            self.table.erase(key).await.map_err(|error| describe("an erase", &error))?;
            left += usize::from(read(self.table, key).await?.is_some());
        }
        if left > 0 {
            return Err(format!("{left} of {} erased rows still exist", used.len()));
        }
        passed(format!("{} rows erased, none is left", used.len()))
    }
}

fn passed(seen: impl Into<String>) -> CheckResult {
    Ok((Outcome::Passed, seen.into()))
}

fn unsupported(seen: impl Into<String>) -> CheckResult {
    Ok((Outcome::Unsupported, seen.into()))
}

/// Describes an unexpected error.
fn describe(what: &str, error: &dyn std::error::Error) -> String {
    format!("{what} failed: {}", fulgurite_units::error_chain(error))
}

async fn read(table: &dyn Table, key: &Key) -> Result<Option<Row>, String> {
    table.read(key).await.map_err(|error| describe("a read", &error))
}

/// Executes a write that must succeed.
async fn write(
    table: &dyn Table,
    key: &Key,
    expect: crate::stores::Expect,
    bytes: &Bytes,
) -> Result<crate::stores::Tag, String> {
    table.cas(key, expect, bytes.clone()).await.map_err(|error| describe("a write", &error))
}

/// Executes a write that must be refused and leave `current`.
async fn refused(
    table: &dyn Table,
    key: &Key,
    expect: crate::stores::Expect,
    bytes: &Bytes,
    current: Option<&Bytes>,
) -> Result<(), String> {
    let what = match table.cas(key, expect, bytes.clone()).await {
        Ok(_) => "was acknowledged".to_owned(),
        Err(TableError::Conflict(_)) => String::new(),
        Err(error) => return Err(describe("a write that should conflict", &error)),
    };
    let found = read(table, key).await?.map(|row| row.bytes);
    match (what.is_empty(), found.as_ref() == current) {
        (true, true) => Ok(()),
        (false, true) => Err(format!("a write that should be refused {what}, but has no effect")),
        (false, false) => Err(format!("a write that should be refused {what} and took effect")),
        (true, false) => Err("a write was refused, but changed the row".to_owned()),
    }
}
