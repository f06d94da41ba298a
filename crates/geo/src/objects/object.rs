//! An object to be put, and an object that was found.

use bytes::Bytes;
use fulgurite_geo_core::{Put, Value, Version};
use fulgurite_tier::{Mode, put_result};
use object_store::PutResult;
use tokio::sync::oneshot;

use crate::objects::Result;

/// An object to be put, without its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) key: String,
    pub(crate) attributes: Vec<(String, String)>,
}

/// A version that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) version: Version,
    pub(crate) value: Value,
    /// Whether all its bytes are known to be written.
    pub(crate) durable: bool,
    /// Its first bytes, if they were requested.
    pub(crate) first: Option<Bytes>,
}

impl Found {
    /// Returns the put; a version that was found is always one.
    pub(crate) fn put(&self) -> Option<&Put> {
        self.value.put()
    }
}

/// A small object that waits for its stripe.
#[derive(Debug)]
pub(crate) struct SmallObject {
    pub(crate) object: Object,
    pub(crate) bytes: Bytes,
    pub(crate) mode: Mode,
    pub(crate) answer: oneshot::Sender<Result<Version>>,
}

/// Returns the result of a put: the version is the entity tag.
pub(crate) fn answer(version: Version) -> PutResult {
    PutResult { version: Some(version.to_string()), ..put_result(version.0) }
}
