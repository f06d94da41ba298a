//! A table in etcd, over the JSON gateway that every etcd of version 3.4 and later has.
//!
//! A write is one transaction: if the key's last revision is the one expected (0: there is none), it
//! is put, else it is read; so a conflict says what is there. A tag is that revision, which is the
//! number of the write in the whole cluster and never comes twice. Reads are etcd's default ones,
//! which a majority confirms.

mod client;
mod wire;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use serde_json::{Value, json};

use crate::limits::{PAGE_ROWS, ROW_BYTES_MAX};
use crate::scan::{Page, end_of, pages};
use crate::table::{TableCaps, check_length};
use crate::{Expect, Key, Row, Table, TableError, Tag};
use client::{Asked, EtcdClient};
pub use client::EtcdOptions;
use wire::{Pairs, coded};

/// A table in etcd.
#[derive(Debug)]
pub struct EtcdTable {
    client: EtcdClient,
    prefix: String,
}

impl EtcdTable {
    /// The table whose rows are below a prefix. Nothing is asked yet.
    ///
    /// # Errors
    /// [`TableError::Unavailable`] when no client can be made.
    pub fn open(options: EtcdOptions) -> Result<Self, TableError> {
        let prefix = options.prefix.clone();
        Ok(Self { client: EtcdClient::new(options)?, prefix })
    }

    /// The key as etcd has it.
    fn name(&self, key: &str) -> String {
        format!("{}/{key}", self.prefix)
    }

    fn range(&self, key: &Key) -> Value {
        json!({ "key": coded(self.name(key.as_str())) })
    }

    /// What of an answer is a page of rows.
    fn rows(&self, found: Pairs) -> Result<Vec<(Key, Row)>, TableError> {
        let key = |name: Vec<u8>| {
            let name = String::from_utf8(name).map_err(|error| strange(&error))?;
            let key = name.strip_prefix(&format!("{}/", self.prefix)).unwrap_or(&name).to_owned();
            Key::new(key).map_err(|error| strange(&error))
        };
        found.into_iter().map(|(name, row)| Ok((key(name)?, row))).collect()
    }
}

fn strange(error: &dyn std::fmt::Display) -> TableError {
    TableError::Corrupt(error.to_string())
}

#[async_trait]
impl Table for EtcdTable {
    fn caps(&self) -> TableCaps {
        TableCaps {
            max_row: ROW_BYTES_MAX,
            cond_delete: true,
            reply_on_conflict: true,
            tag_reuse: false,
            scan_order: true,
        }
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        let answer = self.client.ask("kv/range", &self.range(key), Asked::Read).await?;
        Ok(wire::pairs(&answer)?.into_iter().next().map(|(_, row)| row))
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        check_length(self.caps(), &new)?;
        let name = coded(self.name(key.as_str()));
        let put = json!({ "request_put": { "key": name, "value": coded(&new) } });
        self.transact(key, &expect, &put).await
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        let name = coded(self.name(key.as_str()));
        let remove = json!({ "request_delete_range": { "key": name } });
        self.transact(key, &Expect::Is(tag.clone()), &remove).await.map(|_| ())
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        let asked = self.range(key);
        self.client.ask("kv/deleterange", &asked, Asked::Write).await.map(|_| ())
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        let below = prefix.map(|prefix| (format!("{prefix}/"), end_of(prefix.as_str())));
        pages(after, move |after| {
            let (first, end) = below.clone().unwrap_or_else(|| (String::new(), "\x7f".to_owned()));
            // The first that may come: right behind the one before, or below the prefix.
            let first = after.map_or(first.clone(), |after| first.max(format!("{after}\0")));
            let asked = json!({
                "key": coded(self.name(&first)), "range_end": coded(self.name(&end)),
                "limit": PAGE_ROWS.to_string(),
                "sort_order": "ASCEND", "sort_target": "KEY",
            });
            async move {
                let answer = self.client.ask("kv/range", &asked, Asked::Read).await?;
                let rows = self.rows(wire::pairs(&answer)?)?;
                Ok(Page { is_last: rows.len() < PAGE_ROWS, rows })
            }
        })
    }
}

impl EtcdTable {
    /// Does `change` if the row is as expected; the tag that the change has.
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
        let asked = json!({
            "compare": [{
                "key": coded(self.name(key.as_str())),
                "target": "MOD", "result": "EQUAL", "mod_revision": revision,
            }],
            "success": [change],
            "failure": [{ "request_range": self.range(key) }],
        });
        let answer = self.client.ask("kv/txn", &asked, Asked::Write).await?;
        if answer["succeeded"].as_bool() == Some(true) {
            return wire::revision(&answer["header"]["revision"]);
        }
        let there = wire::pairs(&answer["responses"][0]["response_range"])?;
        Err(TableError::Conflict(there.into_iter().next().map(|(_, row)| row)))
    }
}
