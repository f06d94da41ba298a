//! A table in etcd, over the JSON gateway of etcd 3.4 and later.
//!
//! A write is one transaction: if the key's last revision is the expected one (0: no key), it is
//! put, otherwise it is read; so a conflict returns the current row. A tag is that revision: the
//! number of the write in the whole cluster, which never repeats. Reads are etcd's default
//! (linearizable) ones, confirmed by a majority.

mod client;
mod wire;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use serde_json::{Value, json};

use crate::stores::limits::PAGE_ROWS;
use crate::stores::scan::{Page, pages, prefix_end};
use crate::stores::table::{TableCaps, check_length};
use crate::stores::{Expect, Key, Row, Table, TableError, Tag};
pub use client::EtcdOptions;
use client::{CallKind, EtcdClient};
use wire::{Pairs, to_base64};

/// A table in etcd.
#[derive(Debug)]
pub struct EtcdTable {
    client: EtcdClient,
    prefix: String,
}

impl EtcdTable {
    /// Opens the table whose rows are below a prefix. Sends no request yet.
    ///
    /// # Errors
    /// [`TableError::Unavailable`] if no client can be created.
    pub fn open(options: EtcdOptions) -> Result<Self, TableError> {
        let prefix = options.prefix.clone();
        Ok(Self { client: EtcdClient::new(options)?, prefix })
    }

    /// Returns the name of a key in etcd.
    fn name(&self, key: &str) -> String {
        format!("{}/{key}", self.prefix)
    }

    fn range(&self, key: &Key) -> Value {
        json!({ "key": to_base64(self.name(key.as_str())) })
    }

    /// Extracts a page of rows from an answer.
    fn rows(&self, found: Pairs) -> Result<Vec<(Key, Row)>, TableError> {
        let key = |name: Vec<u8>| {
            let name = String::from_utf8(name).map_err(|error| malformed(&error))?;
            let key = name.strip_prefix(&format!("{}/", self.prefix)).unwrap_or(&name).to_owned();
            Key::new(key).map_err(|error| malformed(&error))
        };
        found.into_iter().map(|(name, row)| Ok((key(name)?, row))).collect()
    }
}

fn malformed(error: &dyn std::fmt::Display) -> TableError {
    TableError::Corrupt(error.to_string())
}

#[async_trait]
impl Table for EtcdTable {
    fn caps(&self) -> TableCaps {
        TableCaps::FULL
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        let answer = self.client.request("kv/range", &self.range(key), CallKind::Read).await?;
        Ok(wire::pairs(&answer)?.into_iter().next().map(|(_, row)| row))
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        check_length(self.caps(), &new)?;
        let name = to_base64(self.name(key.as_str()));
        let put = json!({ "request_put": { "key": name, "value": to_base64(&new) } });
        match self.transact(key, &expect, &put).await {
            // Its limit is lower than usual, and the error does not state a size.
            Err(TableError::TooLarge(_)) => Err(TableError::TooLarge(new.len())),
            done => done,
        }
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        let name = to_base64(self.name(key.as_str()));
        let remove = json!({ "request_delete_range": { "key": name } });
        self.transact(key, &Expect::Is(tag.clone()), &remove).await.map(|_| ())
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        let request = self.range(key);
        self.client.request("kv/deleterange", &request, CallKind::Write).await.map(|_| ())
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        let below = prefix.map(|prefix| (format!("{prefix}/"), prefix_end(prefix.as_str())));
        pages(after, move |after| {
            let (first, end) = below.clone().unwrap_or_else(|| (String::new(), "\x7f".to_owned()));
            // The first key of the page: right after the previous one, or the first below the
            // prefix.
            let first = after
                .map_or_else(|| first.clone(), |after| first.clone().max(format!("{after}\0")));
            let request = json!({
                "key": to_base64(self.name(&first)), "range_end": to_base64(self.name(&end)),
                "limit": PAGE_ROWS.to_string(),
                "sort_order": "ASCEND", "sort_target": "KEY",
            });
            async move {
                let answer = self.client.request("kv/range", &request, CallKind::Read).await?;
                let rows = self.rows(wire::pairs(&answer)?)?;
                Ok(Page { is_last: rows.len() < PAGE_ROWS, rows })
            }
        })
    }
}

impl EtcdTable {
    /// Executes `change` if the row is as expected. Returns the tag of the change.
    async fn transact(
        &self,
        key: &Key,
        expect: &Expect,
        change: &Value,
    ) -> Result<Tag, TableError> {
        let revision = match expect {
            Expect::Absent => "0".to_owned(),
            Expect::Is(tag) => String::from_utf8_lossy(tag.as_bytes()).into_owned(),
        };
        if !revision.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(TableError::Conflict(None));
        }
        let request = json!({
            "compare": [{
                "key": to_base64(self.name(key.as_str())),
                "target": "MOD", "result": "EQUAL", "mod_revision": revision,
            }],
            "success": [change],
            "failure": [{ "request_range": self.range(key) }],
        });
        let answer = self.client.request("kv/txn", &request, CallKind::Write).await?;
        if answer["succeeded"].as_bool() == Some(true) {
            return wire::revision(&answer["header"]["revision"]);
        }
        let current = wire::pairs(&answer["responses"][0]["response_range"])?;
        Err(TableError::Conflict(current.into_iter().next().map(|(_, row)| row)))
    }
}
