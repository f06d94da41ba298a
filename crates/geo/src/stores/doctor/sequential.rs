//! Checks without concurrency.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::TryStreamExt as _;

use super::lossy_table::{Loss, LossyTable};
use super::{CheckResult, Subject, describe, passed, read, refused, unsupported, write};
use crate::stores::{Decision, Expect, Guess, NoBackoff, TableError, transact};

/// Keys whose order is easy to get wrong, in order.
const ORDER: [&str; 9] = ["A", "a", "a-b", "a-b/c", "a.b", "a/b", "a/b/c", "a=b", "ab"];
/// Repetitions of checks that must pass every time.
const ROUNDS: usize = 10;

/// Checks that acknowledged writes are read back.
pub(super) async fn check_read_back(subject: &Subject<'_>) -> CheckResult {
    let key = subject.key("kept", 0);
    let mut expect = Expect::Absent;
    for round in 0..ROUNDS {
        let image = subject.image();
        let tag = write(subject.table, &key, expect, &image).await?;
        let Some(row) = read(subject.table, &key).await? else {
            return Err(format!("write {round} was acknowledged, but there is no row"));
        };
        if row.bytes != image {
            return Err(format!("write {round} was acknowledged, but another row is stored"));
        }
        if row.tag != tag {
            return Err(format!("write {round} got {tag:?}, but its row has {:?}", row.tag));
        }
        expect = Expect::Is(tag);
    }
    let empty = subject.key("kept", 1);
    write(subject.table, &empty, Expect::Absent, &Bytes::new()).await?;
    if read(subject.table, &empty).await?.is_none_or(|row| !row.bytes.is_empty()) {
        return Err("an empty row is not stored".to_owned());
    }
    passed(format!("{ROUNDS} writes read back with their tags"))
}

/// Checks that a tag matches only one image.
pub(super) async fn stale_tag(subject: &Subject<'_>) -> CheckResult {
    let key = subject.key("stale-tag", 0);
    let (first, second, third) = (subject.image(), subject.image(), subject.image());
    let old = write(subject.table, &key, Expect::Absent, &first).await?;
    refused(subject.table, &key, Expect::Absent, &third, Some(&first)).await?;
    let new = write(subject.table, &key, Expect::Is(old.clone()), &second).await?;
    if old == new {
        return Err(format!("two images of a row have the same tag, {old:?}"));
    }
    refused(subject.table, &key, Expect::Is(old.clone()), &third, Some(&second)).await?;
    refused(subject.second, &key, Expect::Is(old), &third, Some(&second)).await?;
    passed("a write with the tag of an earlier image is refused")
}

/// Checks that a write with a tag is refused if there is no row.
pub(super) async fn tag_of_nothing(subject: &Subject<'_>) -> CheckResult {
    let (key, other) = (subject.key("no-row", 0), subject.key("no-row", 1));
    let image = subject.image();
    let tag = write(subject.table, &other, Expect::Absent, &image).await?;
    refused(subject.table, &key, Expect::Is(tag), &image, None).await?;
    // And where there was a row before.
    let tag = write(subject.table, &key, Expect::Absent, &image).await?;
    subject.table.erase(&key).await.map_err(|error| describe("an erase", &error))?;
    refused(subject.table, &key, Expect::Is(tag), &image, None).await?;
    passed("a write with a tag is refused if there is no row")
}

/// Checks that no connection reads stale rows.
pub(super) async fn second_connection(subject: &Subject<'_>) -> CheckResult {
    let key = subject.key("second", 0);
    let mut expect = Expect::Absent;
    for round in 0..ROUNDS {
        let image = subject.image();
        let tables = [subject.table, subject.second];
        let (writes, reads) = (tables[round % 2], tables[(round + 1) % 2]);
        let tag = write(writes, &key, expect, &image).await?;
        for (table, whose) in [(reads, "another"), (writes, "the same")] {
            let found = read(table, &key).await?;
            if found.is_none_or(|row| row.bytes != image) {
                return Err(format!(
                    "after write {round}, {whose} connection read the previous row"
                ));
            }
        }
        expect = Expect::Is(tag);
    }
    subject.table.erase(&key).await.map_err(|error| describe("an erase", &error))?;
    if read(subject.second, &key).await?.is_some() {
        return Err("another connection read an erased row".to_owned());
    }
    passed(format!("{ROUNDS} writes were read over another connection at once"))
}

/// Checks that a write whose reply is lost can be resolved, before or after its effect.
pub(super) async fn lost_reply(subject: &Subject<'_>) -> CheckResult {
    let mut resolved = 0;
    for (number, loss) in [Loss::AfterEffect, Loss::BeforeEffect].into_iter().enumerate() {
        let key = subject.key("lost", number);
        // Twice: for a new row, and for an existing one.
        for _ in 0..2 {
            let image = subject.image();
            let lossy = LossyTable::new(subject.table, loss, 1);
            let decide = |_: Option<&[u8]>| Decision::Write(image.clone(), ());
            let done = transact(&lossy, &key, Guess::Nothing, &NoBackoff, decide).await;
            done.map_err(|error| describe("a write with a lost reply", &error))?;
            if read(subject.second, &key).await?.is_none_or(|row| row.bytes != image) {
                return Err("a write with a lost reply was reported as done, but is not".to_owned());
            }
            resolved += 1;
        }
    }
    passed(format!("{resolved} writes with lost replies were resolved"))
}

/// Checks that a removal requires the right tag.
pub(super) async fn conditional_delete(subject: &Subject<'_>) -> CheckResult {
    let key = subject.key("delete", 0);
    let (first, second) = (subject.image(), subject.image());
    let old = write(subject.table, &key, Expect::Absent, &first).await?;
    if !subject.table.caps().cond_delete {
        return match subject.table.remove(&key, &old).await {
            Err(TableError::Unsupported(_)) => {
                unsupported("the table does not claim to support it")
            }
            Ok(()) => Err("the table does not claim to support it, but did it".to_owned()),
            Err(error) => Err(describe("a removal that is not supported", &error)),
        };
    }
    let new = write(subject.table, &key, Expect::Is(old.clone()), &second).await?;
    match subject.table.remove(&key, &old).await {
        Err(TableError::Conflict(_)) => {}
        Ok(()) => return Err("a removal with the tag of an earlier image took effect".to_owned()),
        Err(error) => return Err(describe("a removal that should conflict", &error)),
    }
    if read(subject.table, &key).await?.is_none_or(|row| row.bytes != second) {
        return Err("a removal was refused, but changed the row".to_owned());
    }
    subject.table.remove(&key, &new).await.map_err(|error| describe("a removal", &error))?;
    if read(subject.second, &key).await?.is_some() {
        return Err("a removed row still exists".to_owned());
    }
    passed("a row is removed only with its current tag")
}

/// Checks whether a row that goes from A to B to A gets its first tag again.
pub(super) async fn tag_reuse(subject: &Subject<'_>) -> CheckResult {
    let key = subject.key("reuse", 0);
    let (a, b) = (subject.image(), subject.image());
    let first = write(subject.table, &key, Expect::Absent, &a).await?;
    let second = write(subject.table, &key, Expect::Is(first.clone()), &b).await?;
    write(subject.table, &key, Expect::Is(second), &a).await?;
    let again = subject.table.cas(&key, Expect::Is(first), subject.image()).await;
    match (again, subject.table.caps().tag_reuse) {
        (Ok(_), true) => {
            unsupported("equal bytes get equal tags, as the table states: rows need a nonce")
        }
        (Ok(_), false) => {
            Err("an earlier tag matches again, though the table states otherwise".to_owned())
        }
        (Err(TableError::Conflict(_)), _) => passed("an earlier tag does not match again"),
        (Err(error), _) => Err(describe("a write with an earlier tag", &error)),
    }
}

/// Checks that the longest row is stored, and a longer one refused.
pub(super) async fn size_limit(subject: &Subject<'_>) -> CheckResult {
    let key = subject.key("size", 0);
    let max = subject.table.caps().max_row;
    let seed = subject.image();
    let long: Bytes = seed.iter().copied().cycle().take(max).collect();
    let tag = write(subject.table, &key, Expect::Absent, &long).await?;
    if read(subject.table, &key).await?.is_none_or(|row| row.bytes != long) {
        return Err(format!("a row of {max} bytes is not stored"));
    }
    let longer: Bytes = seed.iter().copied().cycle().take(max + 1).collect();
    match subject.table.cas(&key, Expect::Is(tag), longer).await {
        Err(TableError::TooLarge(_)) => {}
        Ok(_) => return Err(format!("a row of more than {max} bytes is accepted")),
        Err(error) => return Err(describe("a row that is too long", &error)),
    }
    // So that later scans need not transfer it.
    subject.table.erase(&key).await.map_err(|error| describe("an erase", &error))?;
    passed(format!("a row of {max} bytes is stored, one byte more is refused"))
}

/// Checks that a scan returns all rows in order.
pub(super) async fn scan_order(subject: &Subject<'_>) -> CheckResult {
    let root = subject.key("scan", 0);
    let mut images = BTreeMap::new();
    // Written out of order; more than a page, and one next to the prefix.
    let many = (0..70).map(|number| format!("page/{number:03}"));
    let names: Vec<String> = ORDER.iter().map(|&name| name.to_owned()).chain(many).collect();
    for name in names.iter().rev() {
        let key = root.join(name).map_err(|error| error.to_string())?;
        let image = subject.image();
        write(subject.table, &key, Expect::Absent, &image).await?;
        images.insert(key, image);
    }
    let sibling = subject.prefix.join("scan-0.b").map_err(|error| error.to_string())?;
    write(subject.table, &sibling, Expect::Absent, &subject.image()).await?;
    {
        let mut used = subject.used.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        used.extend(images.keys().cloned());
        used.insert(sibling);
    }
    let scan = |after| async {
        let rows = subject.second.scan(Some(&root), after).map_ok(|(key, row)| (key, row.bytes));
        rows.try_collect::<Vec<_>>().await.map_err(|error| describe("a scan", &error))
    };
    let expected: Vec<_> = images.into_iter().collect();
    let mut found = scan(None).await?;
    if !subject.table.caps().scan_order {
        found.sort();
    }
    if found != expected {
        let (have, need) = (found.len(), expected.len());
        found.sort();
        let problem = if found == expected { "not in order" } else { "not the existing ones" };
        return Err(format!("a scan of {need} rows returned {have}, {problem}"));
    }
    if !subject.table.caps().scan_order {
        return unsupported("a scan is complete but unordered, as the table states");
    }
    let middle = ORDER.len() / 2;
    let rest = scan(Some(expected[middle].0.clone())).await?;
    if rest != expected[middle + 1..] {
        return Err(format!("a scan after row {middle} returned {} rows", rest.len()));
    }
    passed(format!("{} rows in the order of their keys", expected.len()))
}
