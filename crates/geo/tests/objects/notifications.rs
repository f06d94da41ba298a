//! Notifications of decisions to sites are bounded, but all of them arrive in the end.

use std::time::Duration;

use fulgurite_geo::objects::limits::{NOTIFICATIONS_AT_ONCE, NOTIFICATIONS_MAX};

use crate::shelf::Shelf;
use crate::site_failures::{bytes, put, read};

#[tokio::test(start_paused = true)]
async fn dropped_notifications_leave_hints() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    let (more, one) = (40, bytes(1, 10));
    let count = NOTIFICATIONS_MAX + more;
    tokio::time::sleep(Duration::from_secs(1)).await;
    shelf.hold_notifications(true);
    for number in 0..count {
        put(&store, &format!("o/{number}"), &one).await.unwrap();
    }
    // No site knows the decision, yet everything can be read.
    let last = format!("o/{}", count - 1);
    assert_eq!(store.snapshot().hints, more as u64);
    assert_eq!(read(&store, &last).await.unwrap(), one);
    assert_eq!(shelf.hold_notifications(true), 3 * NOTIFICATIONS_AT_ONCE);
    // While the queues are full, a repair does not report that all rows are notified.
    let report = store.process_hints().await.unwrap();
    assert_eq!((report.whole, report.missing), (0, 0), "{report:?}");
    assert_eq!(store.snapshot().hints, more as u64);

    shelf.hold_notifications(false);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let report = store.process_hints().await.unwrap();
    assert_eq!((report.whole, report.objects), (more as u64, more as u64), "{report:?}");
    assert_eq!(store.snapshot().hints, 0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    for site in 0..3 {
        let rows = shelf.rows(site).await;
        assert_eq!(rows.len(), count, "at site {site}");
        let knows = |row: &fulgurite_geo_core::Row| row.known.decided.values().all(|it| it.durable);
        let notified = rows.iter().filter(|row| row.open.is_empty() && knows(row));
        assert_eq!(notified.count(), count, "at site {site}");
    }
}
