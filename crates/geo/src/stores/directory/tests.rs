//! A table in a directory when steps fail, disks are full, locks are held and files are damaged.

use std::fs;
use std::sync::Mutex;

use futures::StreamExt as _;

use super::*;
use crate::stores::tests::entropy;
use crate::stores::{Decision, Guess, NoBackoff, transact};

fn row_key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// A step that fails until the fault is cleared.
#[derive(Clone, Default)]
struct Fault(Arc<Mutex<Option<(DirectoryStep, i32)>>>);

impl Fault {
    fn set(&self, fault: Option<(DirectoryStep, i32)>) {
        *self.0.lock().unwrap() = fault;
    }

    fn fault_hook(&self) -> FaultHook {
        let fault = self.clone();
        FaultHook::new(move |step| match *fault.0.lock().unwrap() {
            Some((failing, code)) if failing == step => {
                Err(std::io::Error::from_raw_os_error(code))
            }
            _ => Ok(()),
        })
    }
}

const FULL: i32 = rustix::io::Errno::NOSPC.raw_os_error();
const BROKEN: i32 = rustix::io::Errno::IO.raw_os_error();

#[tokio::test]
async fn failed_step_is_reported_and_table_recovers() {
    use DirectoryStep::{
        CloseChange, MakeFolders, OpenChange, Rename, SyncFolders, SyncImage, WriteImage,
    };
    let folder = tempfile::tempdir().unwrap();
    let fault = Fault::default();
    let table = DirectoryTable::open(folder.path(), true, entropy(1)).unwrap();
    let table = table.with_fault_hook(fault.fault_hook());
    let mut before = Bytes::from_static(b"first");
    let mut tag = table.cas(&row_key("a/b"), Expect::Absent, before.clone()).await.unwrap();
    for code in [FULL, BROKEN] {
        for step in DirectoryStep::ALL {
            let new = Bytes::from(format!("{step:?} {code}"));
            fault.set(Some((step, code)));
            let answer = table.cas(&row_key("a/b"), Expect::Is(tag.clone()), new.clone()).await;
            let during = table.read(&row_key("a/b")).await;
            fault.set(None);
            let after = table.read(&row_key("a/b")).await.unwrap().unwrap();
            match step {
                // Nothing changed, and the error says so.
                MakeFolders | WriteImage | SyncImage | OpenChange => {
                    let error = answer.unwrap_err();
                    assert!(matches!(error, TableError::Unavailable(_)), "{step:?} {error:?}");
                    assert_eq!(during.unwrap().unwrap().bytes, before);
                    assert_eq!(after.bytes, before);
                }
                // The outcome is unknown, and as long as it cannot be resolved the row is not read.
                Rename | SyncFolders => {
                    let error = answer.unwrap_err();
                    assert!(matches!(error, TableError::Unknown(_)), "{step:?} {error:?}");
                    let during = during.unwrap_err();
                    assert!(matches!(during, TableError::Unavailable(_)), "{step:?} {during:?}");
                    let changed = step == SyncFolders;
                    assert_eq!(after.bytes, if changed { &new } else { &before });
                }
                CloseChange => {
                    assert_eq!(answer.unwrap(), after.tag);
                    assert_eq!(after.bytes, new);
                }
            }
            (before, tag) = (after.bytes, after.tag);
        }
    }
    // A transaction succeeds as well.
    fault.set(Some((SyncFolders, BROKEN)));
    let decide = |_: Option<&[u8]>| Decision::Write(Bytes::from_static(b"last"), ());
    assert!(transact(&table, &row_key("a/b"), Guess::Nothing, &NoBackoff, decide).await.is_err());
    fault.set(None);
    transact(&table, &row_key("a/b"), Guess::Nothing, &NoBackoff, decide).await.unwrap();
    assert_eq!(&*table.read(&row_key("a/b")).await.unwrap().unwrap().bytes, b"last");
}

#[tokio::test]
async fn damaged_row_does_not_block_other_rows() {
    let folder = tempfile::tempdir().unwrap();
    let table = DirectoryTable::open(folder.path(), true, entropy(2)).unwrap();
    for row in ["a", "b"] {
        table.cas(&row_key(row), Expect::Absent, "row".into()).await.unwrap();
    }
    let path = folder.path().join("rows/a!");
    let whole = fs::read(&path).unwrap();
    for index in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[index] ^= 0x40;
        fs::write(&path, damaged).unwrap();
        let error = table.read(&row_key("a")).await.unwrap_err();
        assert!(matches!(error, TableError::Corrupt(_)), "byte {index}: {error:?}");
    }
    // A row of another key, one that is truncated, one that is too long.
    let other = fs::read(folder.path().join("rows/b!")).unwrap();
    for wrong in [&other, &whole[..whole.len() - 1], &[&whole[..], b"x"].concat(), &[]] {
        fs::write(&path, wrong).unwrap();
        let error = table.cas(&row_key("a"), Expect::Absent, "x".into()).await.unwrap_err();
        assert!(matches!(error, TableError::Corrupt(_)), "{error:?}");
    }
    assert!(table.read(&row_key("b")).await.is_ok());
    // A caller that knows that it is damaged can erase it.
    table.erase(&row_key("a")).await.unwrap();
    table.cas(&row_key("a"), Expect::Absent, "again".into()).await.unwrap();
}

#[tokio::test]
async fn directory_that_is_not_a_table_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let open = |may_create| DirectoryTable::open(folder.path(), may_create, entropy(3));
    assert!(matches!(open(false), Err(OpenError::Missing { .. })));
    fs::write(folder.path().join("holiday.txt"), "photos").unwrap();
    let error = open(true).unwrap_err();
    assert!(error.to_string().contains("holiday.txt"), "{error}");
    fs::remove_file(folder.path().join("holiday.txt")).unwrap();
    // As left by a power cut while it was being created.
    fs::create_dir(folder.path().join("locks")).unwrap();
    let table = open(true).unwrap();
    fs::write(folder.path().join("fulgurite-table"), "fulgurite table 2\n").unwrap();
    let error = open(true).unwrap_err();
    assert!(error.to_string().contains("table 2"), "{error}");
    // A table whose files are gone is not an empty table.
    fs::remove_dir_all(folder.path()).unwrap();
    fs::create_dir(folder.path()).unwrap();
    let error = table.read(&row_key("a")).await.unwrap_err();
    assert!(matches!(error, TableError::Unavailable(_)), "{error:?}");
    let error = table.cas(&row_key("a"), Expect::Absent, "x".into()).await.unwrap_err();
    assert!(matches!(error, TableError::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn waiting_for_a_held_lock_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let table = DirectoryTable::open(folder.path(), true, entropy(4)).unwrap();
    let locks = Arc::new(Locks::new(folder.path(), 20));
    let table = DirectoryTable { locks, ..table };
    table.cas(&row_key("a"), Expect::Absent, "row".into()).await.unwrap();
    // Another process that holds all locks.
    let mut held_locks = Vec::new();
    for stripe in fs::read_dir(folder.path().join("locks")).unwrap() {
        let file = fs::File::open(stripe.unwrap().path()).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
        held_locks.push(file);
    }
    for answer in [
        table.read(&row_key("a")).await.map(|_| ()),
        table.cas(&row_key("b"), Expect::Absent, "row".into()).await.map(|_| ()),
    ] {
        let error = answer.unwrap_err();
        assert!(matches!(error, TableError::Unavailable(_)), "{error:?}");
        assert!(error.to_string().contains("lock"), "{error}");
    }
    held_locks.clear();
    assert!(table.read(&row_key("a")).await.unwrap().is_some());
}

#[test]
fn row_file_format_is_stable() {
    let row = Row { bytes: Bytes::from_static(b"a row"), tag: Tag::new(vec![7; 16]) };
    let file = encode(&row_key("a/b"), &row);
    expect_test::expect![["46554c4753524f570110030005000000070707070707070707070707070707076\
         12f626120726f77"]]
    .assert_eq(&hex::encode(&file[..file.len() - 8]));
    assert_eq!(decode(&row_key("a/b"), &file), Ok(row));
    assert!(decode(&row_key("a/c"), &file).unwrap_err().contains("a/b"));
}

#[tokio::test]
async fn missing_directory_is_unavailable_not_recreated() {
    let temporary = tempfile::tempdir().unwrap();
    let (folder, away) = (temporary.path().join("table"), temporary.path().join("away"));
    let table = DirectoryTable::open(&folder, true, entropy(1)).unwrap();
    table.cas(&row_key("a/b"), Expect::Absent, Bytes::from_static(b"row")).await.unwrap();
    // In the middle of a change.
    let (from, to) = (folder.clone(), away.clone());
    let goes = FaultHook::new(move |step| {
        if step == DirectoryStep::MakeFolders { fs::rename(&from, &to) } else { Ok(()) }
    });
    let written = table.clone().with_fault_hook(goes);
    let error = written.cas(&row_key("c/d"), Expect::Absent, Bytes::new()).await.unwrap_err();
    assert!(matches!(error, TableError::Unavailable(_)), "{error:?}");
    assert!(!folder.exists());
    // Past the lock, which was acquired while the directory existed.
    for key in ["a/b", "c/d"] {
        let error = table.files.read(&row_key(key)).unwrap_err();
        assert!(matches!(error, TableError::Unavailable(_)), "{error:?}");
    }
    for prefix in [None, Some(row_key("a")), Some(row_key("x"))] {
        let first = table.scan(prefix.as_ref(), None).next().await;
        assert!(matches!(first, Some(Err(TableError::Unavailable(_)))), "{prefix:?}: {first:?}");
    }
    fs::rename(&away, &folder).unwrap();
    assert_eq!(table.read(&row_key("a/b")).await.unwrap().unwrap().bytes, "row");
    assert_eq!(table.read(&row_key("c/d")).await, Ok(None));
}
