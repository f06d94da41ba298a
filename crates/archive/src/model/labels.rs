//! Labels: what S3 lets a client attach to an object beside its bytes and headers, and change after
//! the upload: tags, retention, legal hold.
//!
//! Nothing sets them yet. They exist because sealed entries on glass are permanent, so their format
//! must have room for labels from the start.

use std::collections::BTreeMap;

use fulgurite_units::UnixTime;
use serde::{Deserialize, Serialize};

use crate::limits::{TAG_NAME_CHARS_MAX, TAG_VALUE_CHARS_MAX, TAGS_MAX};
use crate::{ArchiveError, Result};

/// The labels of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Labels {
    pub(crate) tags: Tags,
    /// Protection against deletes and overwrites until a time.
    pub(crate) retention: Option<Retention>,
    /// Legal hold: protection against both for as long as it is set.
    pub(crate) is_held: bool,
}

/// At most ten tags, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
pub(crate) struct Tags(BTreeMap<String, String>);

impl TryFrom<BTreeMap<String, String>> for Tags {
    type Error = ArchiveError;

    fn try_from(tags: BTreeMap<String, String>) -> Result<Self> {
        let refuse = |what: String| Err(ArchiveError::InvalidArgument { what });
        if tags.len() > TAGS_MAX {
            return refuse(format!("{} tags; an object has at most {TAGS_MAX}", tags.len()));
        }
        for (name, value) in &tags {
            let (name, value) = (name.chars().count(), value.chars().count());
            if name == 0 || name > TAG_NAME_CHARS_MAX || value > TAG_VALUE_CHARS_MAX {
                return refuse(format!(
                    "a tag of {name} and {value} characters; its name has 1 to \
                     {TAG_NAME_CHARS_MAX}, its value at most {TAG_VALUE_CHARS_MAX}"
                ));
            }
        }
        Ok(Self(tags))
    }
}

/// The time until which an object must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Retention {
    pub(crate) mode: RetentionMode,
    pub(crate) until: UnixTime,
}

/// Who may end a retention early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RetentionMode {
    /// Anyone with the permission.
    Governance,
    /// Nobody.
    Compliance,
}

#[cfg(test)]
mod tests;
