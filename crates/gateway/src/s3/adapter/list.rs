//! ListObjects, versions 1 and 2: pages of keys and common prefixes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use fulgurite_archive::{Archive, BucketName, ListPage, ListQuery, ObjectInfo, RestoreState};
use s3s::dto::{
    CommonPrefix, EncodingType, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input,
    ListObjectsV2Output, Object, ObjectStorageClass, OptionalObjectAttributes, RestoreStatus,
};
use s3s::{S3Request, S3Response, S3Result};

use super::conversions::{
    algorithm_name, bucket_name, checksum_type, etag, invalid_argument, length, list_contains,
    owner, page_limit, timestamp,
};
use super::errors::to_s3_error;
use crate::limits::PAGE_ENTRIES_MAX;
use crate::percent;

/// How a page encodes names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    url: bool,
}

impl Encoding {
    pub(super) fn parse(requested: Option<&EncodingType>) -> S3Result<Self> {
        match requested.map(EncodingType::as_str) {
            None => Ok(Self { url: false }),
            Some(EncodingType::URL) => Ok(Self { url: true }),
            Some(_) => Err(invalid_argument("Invalid Encoding Method specified in Request")),
        }
    }

    /// Encodes a name. XML 1.0 cannot carry every character that a key may have; URL encoding can.
    pub(super) fn encode(self, text: String) -> String {
        if self.url { percent::encode(&text) } else { text }
    }
}

/// What a page shows of each object besides its name.
#[derive(Clone, Copy, Debug)]
struct EntryFormat {
    encoding: Encoding,
    owner: bool,
    restore: bool,
}

pub(super) async fn v1(
    archive: &Archive,
    request: S3Request<ListObjectsInput>,
) -> S3Result<S3Response<ListObjectsOutput>> {
    let input = request.input;
    let bucket = bucket_name(&input.bucket)?;
    let encoding = Encoding::parse(input.encoding_type.as_ref())?;
    let format = EntryFormat {
        encoding,
        owner: true,
        restore: wants_restore(input.optional_object_attributes.as_deref()),
    };
    let limit = page_limit(input.max_keys, PAGE_ENTRIES_MAX, "max-keys")?;
    let delimiter = input.delimiter.filter(|text| !text.is_empty());
    let query = ListQuery {
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: delimiter.clone(),
        after: input.marker.clone().filter(|text| !text.is_empty()),
        limit,
    };
    let page = page(archive, &bucket, query).await?;
    // Without a delimiter S3 returns no next marker: clients use the last key.
    let next_marker = page.next.clone().filter(|_| delimiter.is_some());
    let is_truncated = Some(page.next.is_some());
    let (contents, common_prefixes) = encode(page, format);
    Ok(S3Response::new(ListObjectsOutput {
        name: Some(input.bucket),
        prefix: Some(encoding.encode(input.prefix.unwrap_or_default())),
        marker: Some(encoding.encode(input.marker.unwrap_or_default())),
        max_keys: i32::try_from(limit).ok(),
        is_truncated,
        contents: Some(contents),
        common_prefixes: Some(common_prefixes),
        delimiter: delimiter.map(|text| encoding.encode(text)),
        next_marker: next_marker.map(|text| encoding.encode(text)),
        encoding_type: input.encoding_type,
        request_charged: None,
    }))
}

pub(super) async fn v2(
    archive: &Archive,
    request: S3Request<ListObjectsV2Input>,
) -> S3Result<S3Response<ListObjectsV2Output>> {
    let input = request.input;
    let bucket = bucket_name(&input.bucket)?;
    let encoding = Encoding::parse(input.encoding_type.as_ref())?;
    let format = EntryFormat {
        encoding,
        owner: input.fetch_owner.unwrap_or(false),
        restore: wants_restore(input.optional_object_attributes.as_deref()),
    };
    let limit = page_limit(input.max_keys, PAGE_ENTRIES_MAX, "max-keys")?;
    let delimiter = input.delimiter.filter(|text| !text.is_empty());
    let after = match &input.continuation_token {
        Some(token) => Some(parse_token(token)?),
        None => input.start_after.clone().filter(|text| !text.is_empty()),
    };
    let query = ListQuery {
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: delimiter.clone(),
        after,
        limit,
    };
    let page = page(archive, &bucket, query).await?;
    let next_continuation_token = page.next.as_ref().map(|next| BASE64.encode(next));
    let (contents, common_prefixes) = encode(page, format);
    Ok(S3Response::new(ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(encoding.encode(input.prefix.unwrap_or_default())),
        max_keys: i32::try_from(limit).ok(),
        key_count: i32::try_from(contents.len() + common_prefixes.len()).ok(),
        continuation_token: input.continuation_token,
        is_truncated: Some(next_continuation_token.is_some()),
        next_continuation_token,
        contents: Some(contents),
        common_prefixes: Some(common_prefixes),
        delimiter: delimiter.map(|text| encoding.encode(text)),
        encoding_type: input.encoding_type,
        start_after: input.start_after.map(|text| encoding.encode(text)),
        request_charged: None,
    }))
}

/// Returns a page. With a limit of 0 nothing is listed, but the bucket must exist.
pub(super) async fn page(
    archive: &Archive,
    bucket: &BucketName,
    query: ListQuery,
) -> S3Result<ListPage> {
    if query.limit == 0 {
        archive.head_bucket(bucket).await.map_err(to_s3_error)?;
        return Ok(ListPage::default());
    }
    archive.list(bucket, query).await.map_err(to_s3_error)
}

/// Decodes a continuation token: the name after which the next page begins, opaque to clients.
fn parse_token(token: &str) -> S3Result<String> {
    let name = BASE64.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    name.filter(|name| !name.is_empty())
        .ok_or_else(|| invalid_argument("The continuation token provided is incorrect"))
}

pub(super) fn wants_restore(attributes: Option<&[OptionalObjectAttributes]>) -> bool {
    let lines = attributes.unwrap_or_default().iter().map(OptionalObjectAttributes::as_str);
    list_contains(lines, OptionalObjectAttributes::RESTORE_STATUS)
}

fn encode(page: ListPage, format: EntryFormat) -> (Vec<Object>, Vec<CommonPrefix>) {
    let prefixes = page.prefixes.into_iter();
    let prefixes = prefixes.map(|text| CommonPrefix { prefix: Some(format.encoding.encode(text)) });
    let objects = page.objects.into_iter().map(|object| encode_object(object, format));
    (objects.collect(), prefixes.collect())
}

fn encode_object(object: ObjectInfo, format: EntryFormat) -> Object {
    Object {
        checksum_algorithm: object
            .checksum
            .as_ref()
            .map(|checksum| vec![algorithm_name(checksum.algorithm)]),
        checksum_type: object.checksum.as_ref().map(checksum_type),
        e_tag: Some(etag(&object.etag)),
        key: Some(format.encoding.encode(object.key)),
        last_modified: Some(timestamp(object.modified)),
        owner: format.owner.then(owner),
        restore_status: object.restore.filter(|_| format.restore).map(restore_status),
        size: length(object.bytes),
        storage_class: Some(ObjectStorageClass::from_static(object.class.name())),
    }
}

pub(super) fn restore_status(state: RestoreState) -> RestoreStatus {
    match state {
        RestoreState::Ongoing => {
            RestoreStatus { is_restore_in_progress: Some(true), restore_expiry_date: None }
        }
        RestoreState::Restored { expiry } => RestoreStatus {
            is_restore_in_progress: Some(false),
            restore_expiry_date: Some(timestamp(expiry)),
        },
    }
}
