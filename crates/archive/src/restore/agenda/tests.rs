//! Which restores are begun, in which order, and how many.

use super::*;
use crate::ArchiveError;
use crate::rows::{RestoreMark, RestoreRow};

fn wanted(number: u8, retrieval: Retrieval, asked: u64) -> Wanted {
    let requested = UnixTime::from_millis(asked);
    let mark = RestoreMark { days: 1, retrieval, requested, expiry: None };
    let name = crate::testing::name(&number.to_string());
    let row = RestoreRow { name, mark, failures: 0, error: None };
    Wanted { object_id: ObjectId::from_bytes([number; 16]), row }
}

fn look(agenda: &mut Agenda, held_max: usize, rows: &[Wanted]) {
    let each = |seen: &mut dyn FnMut(Wanted)| {
        rows.iter().cloned().for_each(seen);
        Ok(())
    };
    agenda.look_now(Instant::now(), held_max, each).unwrap();
}

/// Begins one batch of a retrieval and takes all it may.
fn batch(agenda: &mut Agenda, retrieval: Retrieval) -> Vec<Wanted> {
    assert!(agenda.may_begin(retrieval));
    let objects_max = agenda.begin(retrieval);
    (0..objects_max).map_while(|_| agenda.take(retrieval)).collect()
}

fn keys(batch: &[Wanted]) -> Vec<&str> {
    batch.iter().map(|wanted| wanted.row.name.key.as_str()).collect()
}

#[test]
fn each_tier_has_batches_of_its_own_in_the_order_of_requests() {
    let mut agenda = Agenda::new(2);
    let bulk: Vec<Wanted> =
        (1..=5).map(|n| wanted(n, Retrieval::Bulk, 100 - u64::from(n))).collect();
    look(&mut agenda, 100, &bulk);
    let first = batch(&mut agenda, Retrieval::Bulk);
    assert_eq!(keys(&first), ["5", "4", "3", "2", "1"]);
    assert!(Retrieval::URGENT_FIRST.iter().all(|retrieval| !agenda.may_begin(*retrieval)));

    // Others that come are begun beside it, and what is under way is begun once.
    let more = [wanted(6, Retrieval::Bulk, 200), wanted(7, Retrieval::Expedited, 300)];
    let rows = [bulk, more.to_vec()].concat();
    look(&mut agenda, 100, &rows);
    assert_eq!(keys(&batch(&mut agenda, Retrieval::Expedited)), ["7"]);
    let second = batch(&mut agenda, Retrieval::Bulk);
    assert_eq!(keys(&second), ["6"]);

    // No more batches of a retrieval than there are drives.
    let rows =
        [rows, vec![wanted(8, Retrieval::Bulk, 400), wanted(9, Retrieval::Standard, 400)]].concat();
    look(&mut agenda, 100, &rows);
    assert!(!agenda.may_begin(Retrieval::Bulk) && agenda.may_begin(Retrieval::Standard));
    agenda.end(Retrieval::Bulk, &second, None);
    assert_eq!(keys(&batch(&mut agenda, Retrieval::Bulk)), ["8"]);
}

#[test]
fn what_is_expedited_is_shared_out() {
    let mut agenda = Agenda::new(4);
    let rows: Vec<Wanted> = (1..=6).map(|n| wanted(n, Retrieval::Expedited, n.into())).collect();
    look(&mut agenda, 100, &rows);
    let sizes: Vec<usize> =
        (0..4).map(|_| batch(&mut agenda, Retrieval::Expedited).len()).collect();
    assert_eq!(sizes, [2, 2, 1, 1]);
    assert!(!agenda.may_begin(Retrieval::Expedited));
}

#[test]
fn all_batches_of_a_tier_together_are_bounded() {
    let mut agenda = Agenda::new(20);
    look(&mut agenda, 100, &[wanted(1, Retrieval::Bulk, 1)]);
    assert_eq!(agenda.begin(Retrieval::Bulk) * 20, 16_380);
    let mut agenda = Agenda::new(1);
    assert_eq!(agenda.begin(Retrieval::Bulk), RESTORE_BATCH_OBJECTS_MAX);
}

#[test]
fn what_failed_is_tried_later_and_what_was_left_out_is_looked_for() {
    let mut agenda = Agenda::new(1);
    let rows: Vec<Wanted> = (1..=3).map(|n| wanted(n, Retrieval::Standard, n.into())).collect();
    look(&mut agenda, 2, &rows);
    let begun = batch(&mut agenda, Retrieval::Standard);
    assert_eq!(keys(&begun), ["1", "2"]);
    assert!(agenda.lanes.values().any(Lane::is_short), "there is a third");
    let later = Instant::now() + Duration::from_secs(3600);
    agenda.put_off(begun[0].object_id, later);
    agenda.end(Retrieval::Standard, &begun, None);
    look(&mut agenda, 2, &rows);
    let begun = batch(&mut agenda, Retrieval::Standard);
    assert_eq!(keys(&begun), ["2", "3"]);
    agenda.end(Retrieval::Standard, &begun, Some(later));
    look(&mut agenda, 2, &rows);
    assert!(!agenda.may_begin(Retrieval::Standard));
}

#[test]
fn a_look_that_is_not_taken_is_made_up_for() {
    let mut agenda = Agenda::new(1);
    let failed = agenda.look(|_| Err(ArchiveError::Stopping));
    assert!(failed.is_err() && agenda.look_due().is_none(), "the next one comes as soon");
    agenda.look_at = Instant::now() + Duration::from_secs(3600);
    agenda.look(|_| panic!("it is too soon")).unwrap();
    assert!(agenda.look_due().is_some());
    agenda.look_at = Instant::now();
    agenda.look(|_| Ok(())).unwrap();
    assert!(agenda.look_due().is_none());
}
