//! A table in `PostgreSQL`: each call is one statement, and a conflict says what is there.
//!
//! ```text
//! key   text, collated by bytes, the primary key
//! tag   16 random bytes of the writer, new with each write
//! bytes the row
//! ```
//!
//! Whether a write took place is seen by whose tag comes back. `on conflict do update` and `update`
//! lock the row and, where they waited for another, compute what they set from what that one left:
//! so they return what is there now at the default isolation as well, where `do nothing` with a
//! `select` may return nothing at all. A conflict leaves a row of the same contents, for vacuum.

mod connect;
mod pool;
mod told;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use tokio_postgres::types::ToSql;

use crate::limits::{PAGE_ROWS, ROW_BYTES_MAX};
use crate::scan::{Page, end_of, pages};
use crate::table::{TableCaps, check_length};
use crate::{Entropy, Expect, Key, Row, Table, TableError, Tag};
pub use connect::{PostgresTls, TlsError};
use pool::{Kind, Pool};

/// How a table in `PostgreSQL` is reached.
#[derive(Clone)]
pub struct PostgresOptions {
    /// Host, user, database, password.
    pub config: tokio_postgres::Config,
    /// Name of the table; letters, digits and `_`, with a schema and a dot in front if need be.
    pub table: String,
    /// Whether the table is made when there is none.
    pub may_create: bool,
    /// Connections at a time, at most.
    pub connections: usize,
    /// How they are secured.
    pub tls: PostgresTls,
}

impl std::fmt::Debug for PostgresOptions {
    /// Without what leads to a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { table, may_create, connections, tls, .. } = self;
        f.debug_struct("PostgresOptions")
            .field("table", table)
            .field("may_create", may_create)
            .field("connections", connections)
            .field("tls", tls)
            .finish_non_exhaustive()
    }
}

/// A table in `PostgreSQL`.
#[derive(Debug)]
pub struct PostgresTable {
    pool: Pool,
    entropy: Entropy,
}

impl PostgresTable {
    /// The table, which is made if it may be and is not there.
    ///
    /// # Errors
    /// [`TableError::Unavailable`] when it cannot be reached or is not there,
    /// [`TableError::Denied`], and [`TableError::Unsupported`] for a name that is none.
    pub async fn open(options: PostgresOptions, entropy: Entropy) -> Result<Self, TableError> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let mut parts = options.table.split('.');
        let is_name = parts.clone().count() <= 2
            && parts.all(|part| (1..=60).contains(&part.len()) && part.bytes().all(is_letter));
        if !is_name {
            return Err(TableError::Unsupported(
                "have a name of anything but letters, digits and _, 60 at most, with one dot",
            ));
        }
        let may_create = options.may_create;
        let pool = Pool::new(options);
        pool.prepare_table(may_create).await?;
        Ok(Self { pool, entropy })
    }

    async fn rows(
        &self,
        kind: Kind,
        arguments: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, TableError> {
        self.pool.ask(kind, arguments).await
    }
}

#[async_trait]
impl Table for PostgresTable {
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
        let rows = self.rows(Kind::Read, &[&key.as_str()]).await?;
        rows.first().map(|found| row(found, 0)).transpose()
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        check_length(self.caps(), &new)?;
        let (own, new): (Vec<u8>, &[u8]) = (self.entropy.draw().to_vec(), &new);
        let there = match &expect {
            Expect::Absent => self.rows(Kind::Insert, &[&key.as_str(), &own, &new]).await?,
            Expect::Is(tag) => {
                let old = tag.as_bytes();
                self.rows(Kind::Update, &[&key.as_str(), &own, &new, &old]).await?
            }
        };
        let Some(there) = there.first() else { return Err(TableError::Conflict(None)) };
        let there = row(there, 0)?;
        if there.tag.as_bytes() == own { Ok(there.tag) } else {
            Err(TableError::Conflict(Some(there)))
        }
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        let removed = self.rows(Kind::Remove, &[&key.as_str(), &tag.as_bytes()]).await?;
        if removed.is_empty() { Err(TableError::Conflict(None)) } else { Ok(()) }
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        self.rows(Kind::Erase, &[&key.as_str()]).await.map(|_| ())
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        let below = prefix.map(|prefix| (format!("{prefix}/"), end_of(prefix.as_str())));
        pages(after, move |after| {
            // Letters of keys come before 0x7f, and all that is below a prefix behind its slash.
            let (first, end) = below.clone().unwrap_or_else(|| (String::new(), "\x7f".to_owned()));
            let first = after.map_or(first.clone(), |after| first.max(after.into()));
            async move {
                let found = self.rows(Kind::Scan, &[&first, &end]).await?;
                let is_last = found.len() < PAGE_ROWS;
                let rows = found.iter().map(|found| {
                    let key: String = found.try_get(2).map_err(|error| told::strange(&error))?;
                    let key = Key::new(key).map_err(|e| TableError::Corrupt(e.to_string()))?;
                    Ok((key, row(found, 0)?))
                });
                Ok(Page { rows: rows.collect::<Result<_, TableError>>()?, is_last })
            }
        })
    }
}

/// Tag and bytes from column `at` on. Bytes may be left out by who wrote them.
fn row(found: &tokio_postgres::Row, at: usize) -> Result<Row, TableError> {
    let tag: Vec<u8> = found.try_get(at).map_err(|error| told::strange(&error))?;
    let bytes: Option<Vec<u8>> = found.try_get(at + 1).map_err(|error| told::strange(&error))?;
    Ok(Row { bytes: bytes.unwrap_or_default().into(), tag: Tag::new(tag) })
}
