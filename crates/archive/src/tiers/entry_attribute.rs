//! Bodies that carry their sealed entries in an attribute.
//!
//! A rack keeps small objects only in its index. If it loses the index it finds its blobs on its
//! disks again, and these entries tell what they are and which archive owns the tier.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fulgurite_units::ArchiveId;
use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{Attribute, Attributes, Error, GetOptions, ObjectStoreExt as _};

use super::{EntryFile, ObjectTier, claim};
use crate::Result;

/// The attribute with a body's entry.
const ENTRY: Attribute = Attribute::Metadata(Cow::Borrowed("fulgurite-entry"));

impl ObjectTier {
    /// Returns the owner of a tier that lost its claim file, according to the first body with an
    /// entry. `None` if the file exists, or no body has an entry.
    pub(super) async fn owner_from_bodies(&self) -> Result<Option<ArchiveId>> {
        let (store, root) = self.store().await?;
        if !self.has_entries() || store.head(&root.clone().join(claim::FILE)).await.is_ok() {
            return Ok(None);
        }
        let mut listed = store.list(Some(&root.clone().join("bodies")));
        while let Some(meta) = listed.try_next().await.map_err(|e| self.unavailable(e))? {
            if let Some(entry) = self.entry_attribute(&meta.location).await? {
                return Ok(Some(entry.archive));
            }
        }
        Ok(None)
    }

    /// Returns the entry in a body's attributes, if it is readable.
    pub(super) async fn entry_attribute(&self, body: &Path) -> Result<Option<EntryFile>> {
        if !self.has_entries() {
            return Ok(None);
        }
        let (store, _) = self.store().await?;
        let options = GetOptions { head: true, ..GetOptions::default() };
        let found = match store.get_opts(body, options).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.unavailable(error)),
        };
        Ok(found.attributes.get(&ENTRY).and_then(|text| entry(text)))
    }

    /// Returns the attributes to put a body with.
    pub(super) fn attributes(&self, file: &EntryFile) -> Attributes {
        let entry = self.has_entries().then(|| (ENTRY, text(file)));
        entry.into_iter().collect()
    }
}

/// Encodes an entry as text for an attribute.
fn text(file: &EntryFile) -> String {
    STANDARD.encode(file.encode())
}

/// Decodes it; `None` when it is damaged: the entry beside the body may be intact.
fn entry(text: &str) -> Option<EntryFile> {
    EntryFile::decode(&STANDARD.decode(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use fulgurite_units::{ArchiveId, ObjectId};

    use super::*;

    #[test]
    fn entry_attribute_round_trips_and_rejects_damage() {
        let (archive, body) = (ArchiveId::from_bytes([1; 16]), ObjectId::from_bytes([2; 16]));
        let file = EntryFile { archive, body, bytes: 7, digest: 9, sealed: vec![3; 40] };
        assert_eq!(entry(&text(&file)), Some(file.clone()));
        let mut other = text(&file);
        other.replace_range(60..61, if &other[60..61] == "A" { "B" } else { "A" });
        assert_eq!(entry(&other), None);
        assert_eq!(entry("not base64!"), None);
    }
}
