//! Listings, read from an index page by page.

use std::collections::BTreeSet;

use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::{DELIMITER, Path};
use object_store::{ListResult, ObjectMeta, Result};

use crate::{Entry, ObjectStoreError, to_generic_error};

/// Where a page of a listing starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// At the first key.
    Start,
    /// After this key.
    After(String),
    /// At these bytes or after them; they need not be a key.
    AtOrAfter(Vec<u8>),
}

/// An index that returns a page of its keys at a time.
pub trait Keys: Send + Sync + 'static {
    /// The error of a read.
    type ObjectStoreError: ObjectStoreError;

    /// Returns some objects whose keys begin with `prefix`, sorted by key; an empty page is the
    /// end.
    ///
    /// # Errors
    /// When the index cannot be read.
    fn page(&self, prefix: &str, cursor: &Cursor) -> Result<Vec<Entry>, Self::ObjectStoreError>;
}

/// Lists all objects in a folder and below, after a key.
pub fn list<K: Keys + Clone>(
    keys: K,
    prefix: Option<&Path>,
    after: Option<String>,
) -> BoxStream<'static, Result<ObjectMeta>> {
    let prefix = folder(prefix);
    let page = move |cursor: Option<Cursor>| {
        let (keys, prefix) = (keys.clone(), prefix.clone());
        async move {
            let Some(cursor) = cursor else { return Ok(None) };
            let page = keys.page(&prefix, &cursor).map_err(to_generic_error)?;
            let next = page.last().map(|last| Cursor::After(last.key.clone()));
            let metas: Vec<_> = page.iter().map(Entry::meta).collect();
            Ok::<_, object_store::Error>(Some((stream::iter(metas), next)))
        }
    };
    stream::try_unfold(Some(after.map_or(Cursor::Start, Cursor::After)), page).try_flatten().boxed()
}

/// Lists the objects in a folder and its subfolders.
///
/// # Errors
/// When the index cannot be read.
pub fn list_with_delimiter<K: Keys>(keys: &K, prefix: Option<&Path>) -> Result<ListResult> {
    let prefix = folder(prefix);
    let (mut objects, mut folders) = (Vec::new(), BTreeSet::new());
    let mut cursor = Cursor::Start;
    loop {
        let page = keys.page(&prefix, &cursor).map_err(to_generic_error)?;
        let Some(last) = page.last() else { break };
        cursor = Cursor::After(last.key.clone());
        for entry in page {
            let rest = entry.key.get(prefix.len()..).unwrap_or_default();
            let Some((name, _)) = rest.split_once(DELIMITER) else {
                objects.push(entry.meta()?);
                continue;
            };
            // The folder stands for all keys below it: skip them.
            let below = format!("{prefix}{name}");
            folders.insert(Path::parse(&below)?);
            cursor = Cursor::AtOrAfter(first_after(&below));
            break;
        }
    }
    let common_prefixes = folders.into_iter().collect();
    Ok(ListResult { objects, common_prefixes, extensions: Default::default() })
}

/// Returns the key prefix of a folder, with its slash: `prefix` is a folder, not the start of a
/// name.
pub(crate) fn folder(prefix: Option<&Path>) -> String {
    match prefix.map(AsRef::as_ref) {
        None | Some("") => String::new(),
        Some(prefix) => format!("{prefix}{DELIMITER}"),
    }
}

/// Returns the first bytes that sort after all keys of a folder.
fn first_after(folder: &str) -> Vec<u8> {
    let mut bytes = folder.as_bytes().to_vec();
    bytes.push(DELIMITER.as_bytes()[0] + 1);
    bytes
}
