//! Tables with a fault each: the doctor must find every one.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_geo::stores::doctor::{CheckName, Report, examine};
use fulgurite_geo::stores::{Expect, Key, MemoryTable, Row, Table, TableCaps, TableError, Tag};
use futures::stream::{self, BoxStream, StreamExt as _};

use crate::chance::entropy;

/// The fault of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// It ignores the expectation of a write.
    IgnoresExpect,
    /// It reads the row before the last write.
    StaleReads,
    /// It gives every image the same tag.
    LosesTheTag,
    /// It acknowledges writes without executing them.
    AcksWithoutEffect,
    /// It ignores the tag of a removal.
    IgnoresTheTagOfARemoval,
    /// It scans in another order.
    ScansBackwards,
    /// It truncates long rows.
    CutsLongRows,
    /// It accepts an update of a missing row.
    WritesOverNothing,
    /// It erases nothing.
    ErasesNothing,
}

struct Liar {
    lie: Lie,
    inner: MemoryTable,
    before: Mutex<BTreeMap<Key, Option<Row>>>,
}

#[async_trait]
impl Table for Liar {
    fn caps(&self) -> TableCaps {
        self.inner.caps()
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        if self.lie == Lie::StaleReads
            && let Some(row) = self.before.lock().unwrap().get(key)
        {
            return Ok(row.clone());
        }
        let row = self.inner.read(key).await?;
        let tag = |tag| if self.lie == Lie::LosesTheTag { Tag::new("one") } else { tag };
        Ok(row.map(|row| Row { tag: tag(row.tag), ..row }))
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        let current = self.inner.read(key).await?;
        let expectation =
            |row: &Option<Row>| row.clone().map_or(Expect::Absent, |row| Expect::Is(row.tag));
        self.before.lock().unwrap().insert(key.clone(), current.clone());
        match self.lie {
            Lie::AcksWithoutEffect => Ok(Tag::new("some")),
            Lie::IgnoresExpect => self.inner.cas(key, expectation(&current), new).await,
            Lie::WritesOverNothing if current.is_none() => {
                self.inner.cas(key, Expect::Absent, new).await
            }
            Lie::LosesTheTag => {
                let expect = if expect == Expect::Absent { expect } else { expectation(&current) };
                self.inner.cas(key, expect, new).await.map(|_| Tag::new("one"))
            }
            Lie::CutsLongRows if new.len() > 1000 && new.len() <= self.caps().max_row => {
                self.inner.cas(key, expect, new.slice(..500)).await
            }
            Lie::StaleReads
            | Lie::IgnoresTheTagOfARemoval
            | Lie::ScansBackwards
            | Lie::CutsLongRows
            | Lie::WritesOverNothing
            | Lie::ErasesNothing => self.inner.cas(key, expect, new).await,
        }
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        if self.lie == Lie::IgnoresTheTagOfARemoval {
            return self.inner.erase(key).await;
        }
        self.inner.remove(key, tag).await
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        if self.lie == Lie::ErasesNothing { Ok(()) } else { self.inner.erase(key).await }
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        let rows = self.inner.scan(prefix, after);
        if self.lie != Lie::ScansBackwards {
            return rows;
        }
        let all = rows.collect::<Vec<_>>();
        stream::once(all).flat_map(|rows| stream::iter(rows.into_iter().rev())).boxed()
    }
}

async fn examined(lie: Lie) -> (Report, Vec<CheckName>) {
    let table = Liar { lie, inner: MemoryTable::new(), before: Mutex::default() };
    let prefix = Key::new("doctor").unwrap();
    let report = examine("a liar", &table, &table, &prefix, &entropy(9)).await.unwrap();
    let failed = report.failed().map(|check| check.name).collect();
    (report, failed)
}

#[tokio::test]
async fn doctor_detects_every_faulty_table() {
    for (lie, name) in [
        (Lie::IgnoresExpect, CheckName::CreateRace),
        (Lie::IgnoresExpect, CheckName::UpdateRace),
        (Lie::IgnoresExpect, CheckName::StaleTag),
        (Lie::IgnoresExpect, CheckName::TagOfNothing),
        (Lie::IgnoresExpect, CheckName::Counter),
        (Lie::StaleReads, CheckName::Kept),
        (Lie::StaleReads, CheckName::SecondConnection),
        (Lie::LosesTheTag, CheckName::StaleTag),
        (Lie::LosesTheTag, CheckName::UpdateRace),
        (Lie::AcksWithoutEffect, CheckName::Kept),
        (Lie::AcksWithoutEffect, CheckName::SizeLimit),
        (Lie::IgnoresTheTagOfARemoval, CheckName::ConditionalDelete),
        (Lie::ScansBackwards, CheckName::ScanOrder),
        (Lie::CutsLongRows, CheckName::SizeLimit),
        (Lie::WritesOverNothing, CheckName::TagOfNothing),
        (Lie::ErasesNothing, CheckName::CleanUp),
    ] {
        let (report, failed) = examined(lie).await;
        assert!(failed.contains(&name), "{name}: {report:#?}");
        let refused = report.accept().unwrap_err().to_string();
        assert!(refused.contains(&name.to_string()), "{refused}");
    }
}

#[tokio::test]
async fn small_fault_fails_only_its_check() {
    for (lie, names) in [
        (Lie::IgnoresTheTagOfARemoval, vec![CheckName::ConditionalDelete]),
        (Lie::ScansBackwards, vec![CheckName::ScanOrder]),
        (Lie::CutsLongRows, vec![CheckName::SizeLimit]),
        (Lie::WritesOverNothing, vec![CheckName::TagOfNothing]),
    ] {
        let (report, failed) = examined(lie).await;
        assert_eq!(failed, names, "{report:#?}");
    }
}
