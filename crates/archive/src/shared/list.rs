//! Listings of a shared bucket.

use fulgurite_catalog::keys::prefix_successor;
use futures::TryStreamExt as _;

use super::buckets::SharedBucket;
use super::names;
use crate::limits::{LIST_KEYS_MAX, SHARED_KEY_BYTES_MAX, SHARED_SKIP};
use crate::model::object::{ListPage, ListQuery};
use crate::objects::list::common_prefix;
use crate::{ArchiveError, Result};

/// Why a scan of names ended.
enum ScanEnd {
    /// No further names match.
    Exhausted,
    Full,
    /// The next match is at this key or after it.
    Seek(Vec<u8>),
}

impl SharedBucket {
    /// Returns one page of the bucket's objects, each as of some moment during the listing.
    pub(crate) async fn list(&self, query: &ListQuery) -> Result<ListPage> {
        let limit = query.limit.min(LIST_KEYS_MAX);
        let mut page = ListPage::default();
        let Some(mut start) = first(query).filter(|_| limit > 0) else { return Ok(page) };
        let mut last = None;
        loop {
            match self.scan(query, &start, limit, (&mut page, &mut last)).await? {
                ScanEnd::Exhausted => return Ok(page),
                ScanEnd::Full => {
                    page.next = last;
                    return Ok(page);
                }
                ScanEnd::Seek(successor) => start = successor,
            }
        }
    }

    async fn scan(
        &self,
        query: &ListQuery,
        start: &[u8],
        limit: usize,
        (page, last): (&mut ListPage, &mut Option<String>),
    ) -> Result<ScanEnd> {
        let folder = names::bucket(&self.name);
        let after = names::before(&self.name, start);
        let mut found = self.store().list(&folder, after.as_deref());
        let mut passed = 0;
        while let Some(found) =
            found.try_next().await.map_err(|error| self.to_archive_error("", error))?
        {
            let key = names::key(&self.name, &found.name).ok_or_else(|| ArchiveError::Corrupt {
                what: format!(
                    "shared bucket \"{}\" lists a name outside it: {}",
                    self.name, found.name
                ),
            })?;
            if key.as_bytes() < start {
                continue;
            }
            if !key.starts_with(&query.prefix) {
                return Ok(ScanEnd::Exhausted);
            }
            let common = common_prefix(&key, query);
            if let Some(prefix) = common.filter(|it| page.prefixes.last().is_some_and(|p| p == it))
            {
                // The prefix is listed already. A few of its names are skipped one by one; beyond
                // that the scan seeks past it.
                passed += 1;
                if passed >= SHARED_SKIP {
                    let successor = prefix_successor(prefix.as_bytes());
                    return Ok(successor.map_or(ScanEnd::Exhausted, ScanEnd::Seek));
                }
                continue;
            }
            if page.objects.len() + page.prefixes.len() == limit {
                return Ok(ScanEnd::Full);
            }
            passed = 0;
            if let Some(prefix) = common {
                page.prefixes.push(prefix.to_owned());
                *last = Some(prefix.to_owned());
            } else {
                page.objects.push(self.describe(&found, &key)?.info);
                *last = Some(key);
            }
        }
        Ok(ScanEnd::Exhausted)
    }
}

/// Returns where a page begins; `None` when no key can be there.
fn first(query: &ListQuery) -> Option<Vec<u8>> {
    let prefix = query.prefix.as_bytes();
    if prefix.len() > SHARED_KEY_BYTES_MAX {
        return None;
    }
    let successor = match &query.after {
        None => Vec::new(),
        Some(after) => match common_prefix(after, query) {
            // The last page ended with a common prefix, whose keys are all covered.
            Some(prefix) if prefix == after => prefix_successor(prefix.as_bytes())?,
            _ => [after.as_bytes(), b"\0"].concat(),
        },
    };
    Some(successor.max(prefix.to_vec()))
}
