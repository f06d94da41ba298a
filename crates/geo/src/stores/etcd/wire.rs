//! etcd's JSON: Base64 for bytes, text for integers, and no field for zero or empty values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::stores::{Row, TableError, Tag};

/// Keys and rows as etcd has them.
pub(super) type Pairs = Vec<(Vec<u8>, Row)>;

/// Encodes bytes for a request.
pub(super) fn to_base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Parses the answer to a range request.
pub(super) fn pairs(answer: &Value) -> Result<Pairs, TableError> {
    let found = answer["kvs"].as_array().map(Vec::as_slice).unwrap_or_default();
    found.iter().map(pair).collect()
}

fn pair(found: &Value) -> Result<(Vec<u8>, Row), TableError> {
    let bytes = |field: &Value| match field.as_str() {
        Some(text) => STANDARD.decode(text).map_err(|_| malformed("bytes", field)),
        None if field.is_null() => Ok(Vec::new()),
        None => Err(malformed("bytes", field)),
    };
    let tag = revision(&found["mod_revision"])?;
    Ok((bytes(&found["key"])?, Row { bytes: bytes(&found["value"])?.into(), tag }))
}

/// Parses a revision into a tag.
pub(super) fn revision(field: &Value) -> Result<Tag, TableError> {
    let text = field.as_str().filter(|text| text.parse::<u64>().is_ok());
    let text = text.ok_or_else(|| malformed("a revision", field))?;
    Ok(Tag::new(text.to_owned()))
}

fn malformed(what: &str, field: &Value) -> TableError {
    TableError::Corrupt(format!("etcd answered {field} where {what} should be"))
}
