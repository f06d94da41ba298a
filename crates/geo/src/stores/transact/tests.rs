//! Transactions on a table with scripted answers.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use fulgurite_units::ErrorKind;
use futures::stream::BoxStream;

use super::*;
use crate::stores::{MemoryTable, NoBackoff, TableCaps};

/// Fate of a table call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It works.
    Fine,
    /// Unknown outcome; it was applied.
    Applied,
    /// Unknown outcome; it was applied, and then another writer wrote.
    AppliedAndReplaced,
    /// Unknown outcome; it is applied when the next call comes.
    AppliedLater,
    /// Unknown outcome; it is applied when the next write comes, right before it.
    AppliedBeforeNextWrite,
    /// Unknown outcome; it was not applied.
    Lost,
    Unavailable,
    Busy,
    Denied,
    /// Another writer writes first.
    Outrun,
}

/// A table whose calls follow the script, and then work.
struct Scripted {
    inner: MemoryTable,
    script: Mutex<VecDeque<Step>>,
    late: Mutex<Option<(Key, Expect, Bytes)>>,
    at_write: Mutex<Option<(Key, Expect, Bytes)>>,
    others: Mutex<u32>,
}

impl Scripted {
    fn new(script: &[Step]) -> Self {
        let script = Mutex::new(script.iter().copied().collect());
        let (late, at_write, others) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { inner: MemoryTable::new(), script, late, at_write, others }
    }

    async fn next(&self) -> Step {
        let late = self.late.lock().unwrap().take();
        if let Some((key, expect, bytes)) = late {
            let _ = self.inner.cas(&key, expect, bytes).await;
        }
        self.script.lock().unwrap().pop_front().unwrap_or(Step::Fine)
    }

    /// Executes another writer's write, based on the current row.
    async fn write_as_other(&self, key: &Key) {
        let row = self.inner.read(key).await.unwrap();
        let number = {
            let mut others = self.others.lock().unwrap();
            *others += 1;
            *others
        };
        let current = row.as_ref().map(|row| row.bytes.to_vec()).unwrap_or_default();
        let bytes = [current, format!(" other{number}").into_bytes()].concat();
        let expect = row.map_or(Expect::Absent, |row| Expect::Is(row.tag));
        self.inner.cas(key, expect, bytes.into()).await.unwrap();
    }

    async fn text(&self) -> String {
        let row = self.inner.read(&key()).await.unwrap();
        row.map(|row| String::from_utf8(row.bytes.to_vec()).unwrap()).unwrap_or_default()
    }
}

#[async_trait]
impl Table for Scripted {
    fn caps(&self) -> TableCaps {
        self.inner.caps()
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        match self.next().await {
            Step::Unavailable | Step::Lost => Err(TableError::Unavailable(Cause::new("away"))),
            Step::Busy => Err(TableError::Throttled(None)),
            Step::Denied => Err(TableError::Denied(Cause::new("denied"))),
            Step::Fine
            | Step::Applied
            | Step::AppliedAndReplaced
            | Step::AppliedLater
            | Step::AppliedBeforeNextWrite
            | Step::Outrun => self.inner.read(key).await,
        }
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        let unknown = Err(TableError::Unknown(Cause::new("no answer")));
        let late = self.at_write.lock().unwrap().take();
        if let Some((key, expect, bytes)) = late {
            self.inner.cas(&key, expect, bytes).await.unwrap();
        }
        match self.next().await {
            Step::Fine => self.inner.cas(key, expect, new).await,
            Step::Applied => self.inner.cas(key, expect, new).await.and(unknown),
            Step::AppliedAndReplaced => {
                self.inner.cas(key, expect, new).await?;
                self.write_as_other(key).await;
                unknown
            }
            Step::AppliedLater => {
                *self.late.lock().unwrap() = Some((key.clone(), expect, new));
                unknown
            }
            Step::AppliedBeforeNextWrite => {
                *self.at_write.lock().unwrap() = Some((key.clone(), expect, new));
                unknown
            }
            Step::Lost => unknown,
            Step::Unavailable => Err(TableError::Unavailable(Cause::new("away"))),
            Step::Busy => Err(TableError::Throttled(None)),
            Step::Denied => Err(TableError::Denied(Cause::new("denied"))),
            Step::Outrun => {
                self.write_as_other(key).await;
                self.inner.cas(key, expect, new).await
            }
        }
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        self.inner.remove(key, tag).await
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        self.inner.erase(key).await
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        self.inner.scan(prefix, after)
    }
}

fn key() -> Key {
    Key::new("row").unwrap()
}

/// Appends ` me` to the row, once.
async fn put(table: &Scripted, guess: Guess) -> Result<Done<()>, TransactError> {
    transact(table, &key(), guess, &NoBackoff, |row| {
        let text = String::from_utf8(row.unwrap_or_default().to_vec()).unwrap();
        if text.contains(" me") {
            return Decision::Leave(());
        }
        Decision::Write(format!("{text} me").into(), ())
    })
    .await
}

/// Returns the row after these steps, and the number of calls.
async fn after(script: &[Step]) -> (String, u32) {
    let table = Scripted::new(script);
    let done = put(&table, Guess::Nothing).await.unwrap_or_else(|e| panic!("{script:?}: {e}"));
    (table.text().await, done.calls)
}

#[tokio::test]
async fn write_is_applied_once_despite_lost_answers() {
    use Step::{Applied, AppliedAndReplaced, AppliedLater, Busy, Fine, Lost, Outrun, Unavailable};
    for (script, row, calls) in [
        (&[][..], " me", 2),
        (&[Unavailable, Busy, Fine, Unavailable], " me", 6),
        (&[Fine, Applied], " me", 3),
        (&[Fine, Applied, Unavailable, Busy], " me", 5),
        (&[Fine, Lost], " me", 4),
        (&[Fine, Lost, Fine, Lost, Fine, Applied], " me", 7),
        (&[Fine, AppliedLater], " me", 3),
        (&[Fine, AppliedAndReplaced], " me other1", 3),
        (&[Fine, Outrun], " other1 me", 3),
        (&[Fine, Outrun, Outrun], " other1 other2 me", 4),
        (&[Fine, Lost, Fine, Outrun], " other1 me", 6),
    ] {
        assert_eq!(after(script).await, (row.to_owned(), calls), "{script:?}");
    }
}

#[tokio::test]
async fn late_write_is_applied_once() {
    // The first write is not visible in the read-back, and is applied right before the second one
    // of the same bytes, which conflicts with it.
    let script = [Step::Fine, Step::AppliedBeforeNextWrite, Step::Fine, Step::Fine, Step::Fine];
    let table = Scripted::new(&script);
    let done = put(&table, Guess::Nothing).await.unwrap();
    assert_eq!((table.text().await, done.calls), (" me".to_owned(), 5));
}

#[tokio::test]
async fn final_error_states_whether_a_write_may_exist() {
    let always = |step| vec![step; 100];
    let table = Scripted::new(&always(Step::Unavailable));
    let error = put(&table, Guess::Nothing).await.unwrap_err();
    assert!(matches!(error, TransactError::Unavailable { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // Every write is beaten; a wrong guess is not believed.
    let table = Scripted::new(&always(Step::Outrun));
    let error = put(&table, Guess::Absent).await.unwrap_err();
    assert!(matches!(error, TransactError::Contended { tries: TRIES_MAX, .. }), "{error}");
    assert!(!table.text().await.contains("me"));
    // Sent, and never seen again.
    let mut script = vec![Step::Fine, Step::Applied];
    script.extend(always(Step::Unavailable));
    let error = put(&Scripted::new(&script), Guess::Nothing).await.unwrap_err();
    assert!(matches!(error, TransactError::Unknown { .. }), "{error}");
    // It may have been applied and replaced; without a further read the answer must not be no.
    for rest in [always(Step::Unavailable), vec![Step::Denied]] {
        let mut script = vec![Step::Fine, Step::AppliedAndReplaced, Step::Denied];
        script.extend(rest);
        let error = put(&Scripted::new(&script), Guess::Nothing).await.unwrap_err();
        assert!(matches!(error, TransactError::Unknown { .. }), "{error}");
    }
    for script in [&[Step::Denied][..], &[Step::Fine, Step::Denied]] {
        let error = put(&Scripted::new(script), Guess::Nothing).await.unwrap_err();
        assert!(matches!(error, TransactError::Refused { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

#[tokio::test]
async fn possibly_applied_write_is_never_denied() {
    // Applied, replaced by a row without it, and then other writers always win.
    let (row, table) = (key(), Scripted::new(&[Step::Fine, Step::AppliedAndReplaced]));
    let decided = Mutex::new(0);
    let done = transact(&table, &row, Guess::Nothing, &NoBackoff, |row| {
        *decided.lock().unwrap() += 1;
        match row {
            None => Decision::Write(Bytes::from_static(b" me"), "written"),
            Some(_) => Decision::Leave("seen"),
        }
    });
    assert_eq!(done.await.unwrap().result, "seen");
    assert_eq!(*decided.lock().unwrap(), 2);
    let mut script = vec![Step::Fine, Step::AppliedAndReplaced, Step::Fine];
    script.extend([Step::Outrun; 100]);
    let table = Scripted::new(&script);
    let error = transact(&table, &row, Guess::Nothing, &NoBackoff, |row| {
        Decision::Write([row.unwrap_or_default(), b"."].concat().into(), ())
    });
    let error = error.await.unwrap_err();
    assert!(matches!(error, TransactError::Unknown { .. }), "{error}");
}

#[test]
fn backoff_grows_to_its_maximum() {
    assert_eq!(backoff_limit(0), BACKOFF_MIN);
    assert_eq!(backoff_limit(1), BACKOFF_MIN * 2);
    assert_eq!(backoff_limit(TRIES_MAX), BACKOFF_MAX);
    assert_eq!(backoff_limit(u32::MAX), BACKOFF_MAX);
}
