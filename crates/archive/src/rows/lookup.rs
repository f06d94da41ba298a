//! Finds objects, their bodies and buckets by their names, and the bodies that queue rows name.

use fulgurite_catalog::{KeyRange, ReadView, Space, row};

use super::{BODIES, BUCKETS, BodyRow, BucketRow, OBJECTS, ObjectRow, QUEUE, QueueRow, Row};
use crate::model::names::{BucketName, ObjectKey};
use crate::{ArchiveError, Result, rows};

/// Returns the first `limit` rows of `range` with their keys.
pub(crate) fn rows_in<T: Row>(
    view: &dyn ReadView,
    space: Space,
    range: &KeyRange,
    limit: usize,
) -> Result<Vec<(Vec<u8>, T)>> {
    Ok(row::rows_in(view, space, range, limit)?)
}

pub(crate) fn find_object(
    view: &dyn ReadView,
    bucket: &BucketName,
    key: &ObjectKey,
) -> Result<Option<ObjectRow>> {
    rows::get(view, OBJECTS, &rows::object_key(bucket.as_str(), key.as_str()))
}

pub(crate) fn require_bucket(view: &dyn ReadView, bucket: &BucketName) -> Result<BucketRow> {
    rows::get(view, BUCKETS, &rows::bucket_key(bucket.as_str()))?
        .ok_or_else(|| ArchiveError::NoSuchBucket { bucket: bucket.to_string() })
}

pub(crate) fn require_object(
    view: &dyn ReadView,
    bucket: &BucketName,
    key: &ObjectKey,
) -> Result<ObjectRow> {
    match find_object(view, bucket, key)? {
        Some(row) => Ok(row),
        None => {
            require_bucket(view, bucket)?;
            Err(ArchiveError::NoSuchKey { bucket: bucket.to_string(), key: key.to_string() })
        }
    }
}

/// Returns the object of a queue row, if it still exists.
pub(crate) fn object_of(view: &dyn ReadView, queue: &QueueRow) -> Result<Option<ObjectRow>> {
    let found = find_object(view, &queue.name.bucket, &queue.name.key)?;
    Ok(found.filter(|row| row.object_id == queue.object_id))
}

/// Returns object and body of a queue row, if both still exist.
pub(crate) fn queued_body(
    view: &dyn ReadView,
    sequence: u64,
) -> Result<Option<(QueueRow, ObjectRow, BodyRow)>> {
    let queue: Option<QueueRow> = rows::get(view, QUEUE, &rows::sequence_key(sequence))?;
    let Some(queue) = queue else { return Ok(None) };
    let Some(object) = object_of(view, &queue)? else { return Ok(None) };
    let body: Option<BodyRow> =
        rows::get(view, BODIES, &rows::body_key(queue.object_id, queue.index))?;
    Ok(body.map(|body| (queue, object, body)))
}

/// Returns the bodies of an object, in order.
pub(crate) fn bodies(view: &dyn ReadView, object: &ObjectRow) -> Result<Vec<BodyRow>> {
    let range = rows::bodies_range(object.object_id);
    let found: Vec<(Vec<u8>, BodyRow)> = rows_in(view, BODIES, &range, usize::MAX)?;
    if found.len() != object.body_count as usize {
        return Err(ArchiveError::Corrupt {
            what: format!(
                "object {} has {} of {} bodies in the catalog",
                object.object_id,
                found.len(),
                object.body_count
            ),
        });
    }
    Ok(found.into_iter().map(|(_, row)| row).collect())
}
