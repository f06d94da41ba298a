//! Which orders are started.

use fulgurite_catalog::Transaction;
use fulgurite_units::{ByteCount, ManualClock};

use super::*;
use crate::bodies::log::LogKind;
use crate::jobs::{JobHandle, JobSender, Runner};
use crate::objects::commit::insert_object;
use crate::testing;

#[test]
fn order_of_a_disconnected_caller_does_not_start() {
    let dir = testing::dir();
    let state = testing::state(&dir);
    let insert = |tx: &mut Transaction<'_>| -> Result<()> {
        let row = testing::object_row(StorageClass::Standard);
        let bodies = vec![testing::body_row(LogKind::Online)];
        let (bucket, key) = (testing::bucket("vault"), testing::key("there"));
        insert_object(tx, &bucket, &key, row, bodies).map(drop)
    };
    state.committer.commit_blocking(insert).unwrap();
    let clock = ManualClock::at(testing::NOW).clock();
    let (mail, inbox) = JobSender::new(&JobHandle::new(&clock));
    let order = |name: &str, progress: &Arc<Progress>| {
        let (chosen, progress) = (ObjectSelection::One(testing::key(name)), Arc::clone(progress));
        let (bucket, class) = (testing::bucket("vault"), StorageClass::DeepArchive);
        mail.order(|reply| MoveOrder { bucket, chosen, class, progress, reply }).unwrap()
    };
    let (given_up, awaited) = (Arc::<Progress>::default(), Arc::<Progress>::default());
    drop(order("there", &given_up));
    let outcome = order("missing", &awaited);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let runner = Runner::new(&clock, &state.runtime.panics);
    let job = ReclassifyJob::new(&state, inbox, runtime.handle());
    runner.start_at(mail.handle(), job).unwrap();
    let outcome = outcome.blocking_recv().unwrap();
    assert!(matches!(outcome, Err(ArchiveError::NoSuchBucket { .. })), "{outcome:?}");
    // Starting an order sets its total immediately.
    assert_eq!(given_up.bytes(), (ByteCount::ZERO, ByteCount::ZERO));
    runner.stop();
    assert_eq!(runner.join(), 0);
}
