//! The doctor: checks that a store does what sites rely on, and reports what it observed.
//!
//! Some stores accept a conditional write and answer as if they had checked the condition, but have
//! not. Nothing built on such a store is correct. So a store is examined before it holds a row that
//! matters, and is refused if it fails; the report can be stored.
//!
//! Everything happens below one key, which must be empty before and is empty after, and without a
//! clock. Not here: the speed of a store, and its behavior in a power cut.

mod blobs;
mod lossy;
mod races;
mod report;
mod singles;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;

use crate::{Blob, Entropy, Key, Row, Table, TableError};
pub use lossy::{Loss, LossyTable};
pub use report::{Check, CheckName, DoctorError, Outcome, Report};

/// A table under examination.
struct Patient<'a> {
    table: &'a dyn Table,
    /// The same table over another connection.
    second: &'a dyn Table,
    prefix: &'a Key,
    entropy: &'a Entropy,
    /// Keys that may have rows, to be cleaned up.
    used: Mutex<BTreeSet<Key>>,
}

/// What a check observed, or the violation that it found.
type Seen = Result<(Outcome, String), String>;
/// A check and its name.
type Examination<'a> = (CheckName, BoxFuture<'a, Seen>);

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
        let patient = Patient { table, second, prefix, entropy, used: Mutex::default() };
        // A table that lies may hide it from a scan.
        let first = patient.key("kept", 0);
        if table.read(&first).await?.is_some() {
            return Err(DoctorError::Occupied { key: first });
        }
        let checks: [Examination<'_>; 13] = [
            (CheckName::Kept, Box::pin(singles::kept(&patient))),
            (CheckName::CreateRace, Box::pin(races::create(&patient))),
            (CheckName::UpdateRace, Box::pin(races::update(&patient))),
            (CheckName::StaleTag, Box::pin(singles::stale_tag(&patient))),
            (CheckName::TagOfNothing, Box::pin(singles::tag_of_nothing(&patient))),
            (CheckName::Counter, Box::pin(races::counter(&patient))),
            (CheckName::SecondConnection, Box::pin(singles::second_connection(&patient))),
            (CheckName::LostReply, Box::pin(singles::lost_reply(&patient))),
            (CheckName::ConditionalDelete, Box::pin(singles::conditional_delete(&patient))),
            (CheckName::TagReuse, Box::pin(singles::tag_reuse(&patient))),
            (CheckName::SizeLimit, Box::pin(singles::size_limit(&patient))),
            (CheckName::ScanOrder, Box::pin(singles::scan_order(&patient))),
            (CheckName::CleanUp, Box::pin(patient.clean_up())),
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
        let patient = blobs::Patient::new(blobs, second, prefix, entropy);
        patient.check_empty().await?;
        let checks: [Examination<'_>; 6] = [
            (CheckName::Kept, Box::pin(patient.kept())),
            (CheckName::CreateRace, Box::pin(patient.create_race())),
            (CheckName::SecondConnection, Box::pin(patient.second_connection())),
            (CheckName::Ranges, Box::pin(patient.ranges())),
            (CheckName::Removal, Box::pin(patient.removal())),
            (CheckName::CleanUp, Box::pin(patient.clean_up())),
        ];
        Ok(Report { store: store.to_owned(), checks: run(checks).await })
    })
}

/// Runs the checks one after the other.
async fn run<const N: usize>(checks: [Examination<'_>; N]) -> Vec<Check> {
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

impl Patient<'_> {
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
    async fn clean_up(&self) -> Seen {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut left = 0;
        for key in &used {
            self.table.erase(key).await.map_err(|error| said("an erase", &error))?;
            left += usize::from(read(self.table, key).await?.is_some());
        }
        if left > 0 {
            return Err(format!("{left} of {} rows were erased and are still there", used.len()));
        }
        passed(format!("{} rows erased, none is left", used.len()))
    }
}

fn passed(seen: impl Into<String>) -> Seen {
    Ok((Outcome::Passed, seen.into()))
}

fn unsupported(seen: impl Into<String>) -> Seen {
    Ok((Outcome::Unsupported, seen.into()))
}

/// Describes an unexpected error.
fn said(what: &str, error: &dyn std::error::Error) -> String {
    format!("{what} failed: {}", fulgurite_units::error_chain(error))
}

async fn read(table: &dyn Table, key: &Key) -> Result<Option<Row>, String> {
    table.read(key).await.map_err(|error| said("a read", &error))
}

/// Executes a write that must succeed.
async fn write(
    table: &dyn Table,
    key: &Key,
    expect: crate::Expect,
    bytes: &Bytes,
) -> Result<crate::Tag, String> {
    table.cas(key, expect, bytes.clone()).await.map_err(|error| said("a write", &error))
}

/// Executes a write that must be refused and leave `there`.
async fn refused(
    table: &dyn Table,
    key: &Key,
    expect: crate::Expect,
    bytes: &Bytes,
    there: Option<&Bytes>,
) -> Result<(), String> {
    let what = match table.cas(key, expect, bytes.clone()).await {
        Ok(_) => "was acknowledged".to_owned(),
        Err(TableError::Conflict(_)) => String::new(),
        Err(error) => return Err(said("a write that should meet a conflict", &error)),
    };
    let found = read(table, key).await?.map(|row| row.bytes);
    match (what.is_empty(), found.as_ref() == there) {
        (true, true) => Ok(()),
        (false, true) => Err(format!("a write that should be refused {what}, and has no effect")),
        (false, false) => Err(format!("a write that should be refused {what}, and took place")),
        (true, false) => Err("a write was refused, and changed the row".to_owned()),
    }
}
