//! Buckets, and listings of objects by prefix and delimiter.

use std::ops::ControlFlow;
use std::sync::Arc;

use fulgurite_catalog::keys::{KeyWriter, prefix_successor};
use fulgurite_catalog::{Direction, KeyRange, ReadView as _, Transaction};

use crate::bodies::ingest::truncate_to_seconds;
use crate::limits::LIST_KEYS_MAX;
use crate::model::names::BucketName;
use crate::model::object::{BucketInfo, ListPage, ListQuery};
use crate::objects::commit::retire_unconfirmed;
use crate::rows::accounting::Retired;
use crate::rows::lookup::{require_bucket, rows_in};
use crate::rows::{self, BUCKETS, BucketRow, OBJECTS, ObjectRow, UPLOADS};
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

pub(crate) async fn create_bucket(
    state: &Arc<ArchiveState>,
    bucket: &BucketName,
) -> Result<BucketInfo> {
    let row = BucketRow { created: truncate_to_seconds(state.now()) };
    let name = bucket.clone();
    let commit = move |tx: &mut Transaction<'_>| -> Result<BucketInfo> {
        let key = rows::bucket_key(name.as_str());
        if rows::get::<BucketRow>(tx, BUCKETS, &key)?.is_some() {
            return Err(ArchiveError::BucketAlreadyOwnedByYou { bucket: name.to_string() });
        }
        rows::put(tx, BUCKETS, key, &row)?;
        Ok(BucketInfo { name: name.to_string(), created: row.created })
    };
    state.committer.commit(commit).await
}

pub(crate) async fn delete_bucket(state: &Arc<ArchiveState>, bucket: &BucketName) -> Result<()> {
    let name = bucket.clone();
    let commit = move |tx: &mut Transaction<'_>| -> Result<Retired> {
        require_bucket(tx, &name)?;
        let within = rows::object_prefix(name.as_str(), "");
        let is_used = [OBJECTS, UPLOADS].into_iter().try_fold(false, |used, space| {
            Ok::<_, ArchiveError>(
                used || !tx.range(space, &within, Direction::Ascending, 1)?.is_empty(),
            )
        })?;
        if is_used {
            return Err(ArchiveError::BucketNotEmpty { bucket: name.to_string() });
        }
        rows::mark_for_purge(tx)?;
        let mut retired = Retired::default();
        retire_unconfirmed(tx, &within, &mut retired)?;
        tx.delete(BUCKETS, rows::bucket_key(name.as_str()))?;
        rows::delete_shared_record(tx, &name)?;
        Ok(retired)
    };
    // A separate task, so that a client that disconnects leaves no keys behind.
    let shared = Arc::clone(state);
    let task = async move {
        let retired = shared.committer.commit(commit).await?;
        shared.finish_retired(retired).await
    };
    tokio::spawn(task)
        .await
        .map_err(|e| ArchiveError::Internal { what: format!("a commit panicked: {e}") })?
}

pub(crate) fn list_buckets(state: &ArchiveState) -> Result<Vec<BucketInfo>> {
    let all: Vec<(Vec<u8>, BucketRow)> =
        rows_in(&*state.kv, BUCKETS, &KeyRange::prefix(b""), usize::MAX)?;
    all.into_iter()
        .map(|(key, row)| {
            let name = String::from_utf8(key).map_err(|_| ArchiveError::Corrupt {
                what: "a bucket row has a name that is not UTF-8".to_owned(),
            })?;
            Ok(BucketInfo { name, created: row.created })
        })
        .collect()
}

/// Returns one page of a bucket's objects.
pub(crate) fn list(
    state: &ArchiveState,
    bucket: &BucketName,
    query: &ListQuery,
) -> Result<ListPage> {
    require_bucket(&*state.kv, bucket)?;
    let limit = query.limit.min(LIST_KEYS_MAX);
    let mut page = ListPage::default();
    let mut range = first_range(bucket, query);
    let mut last = None;
    let now = state.now();
    if limit == 0 {
        return Ok(page);
    }
    loop {
        let mut jump = None;
        let mut failure = None;
        let mut is_full = false;
        state.kv.scan(OBJECTS, &range, Direction::Ascending, &mut |row_key, value| {
            let found = match rows::parse_object_key(row_key) {
                Ok((_, key)) => key,
                Err(error) => {
                    failure = Some(error);
                    return ControlFlow::Break(());
                }
            };
            if page.objects.len() + page.prefixes.len() == limit {
                is_full = true;
                return ControlFlow::Break(());
            }
            if let Some(prefix) = common_prefix(&found, query) {
                last = Some(prefix.to_owned());
                page.prefixes.push(prefix.to_owned());
                jump = Some(prefix.to_owned());
                return ControlFlow::Break(());
            }
            match rows::decode_row::<ObjectRow>(&*state.kv, OBJECTS, value) {
                Ok(row) => page.objects.push(row.info(&found, now)),
                Err(error) => {
                    failure = Some(error);
                    return ControlFlow::Break(());
                }
            }
            last = Some(found);
            ControlFlow::Continue(())
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        if is_full {
            page.next = last;
            break;
        }
        match jump {
            Some(prefix) => range = skip_prefix(bucket, query, &prefix),
            None => break,
        }
    }
    Ok(page)
}

fn first_range(bucket: &BucketName, query: &ListQuery) -> KeyRange {
    let whole = rows::object_prefix(bucket.as_str(), &query.prefix);
    match &query.after {
        None => whole,
        Some(after) => match common_prefix(after, query) {
            // The last page ended with a common prefix, whose keys are all covered.
            Some(prefix) if prefix == after => skip_prefix(bucket, query, prefix),
            _ => whole.after(&rows::object_key(bucket.as_str(), after)),
        },
    }
}

/// Returns the range after every key that begins with `prefix`, within the query's own prefix.
fn skip_prefix(bucket: &BucketName, query: &ListQuery, prefix: &str) -> KeyRange {
    let whole = rows::object_prefix(bucket.as_str(), &query.prefix);
    let passed = KeyWriter::new().string(bucket.as_str()).string_prefix(prefix.as_bytes()).finish();
    match prefix_successor(&passed) {
        Some(next) => whole.at_or_after(&next),
        None => KeyRange::between(Vec::new(), Vec::new()),
    }
}

/// Returns the common prefix that covers `key`, if the query has a delimiter and the key contains
/// it after the query's prefix.
pub(crate) fn common_prefix<'a>(key: &'a str, query: &ListQuery) -> Option<&'a str> {
    let delimiter = query.delimiter.as_deref().filter(|d| !d.is_empty())?;
    let rest = key.strip_prefix(query.prefix.as_str())?;
    let at = rest.find(delimiter)?;
    Some(&key[..query.prefix.len() + at + delimiter.len()])
}

#[cfg(test)]
mod tests;
