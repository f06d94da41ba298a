//! A table in `PostgreSQL`: each call is one statement, and a conflict returns the current row.
//!
//! ```text
//! key   text, collated by bytes, the primary key
//! tag   16 random bytes of the writer, new with each write
//! bytes the row
//! ```
//!
//! The returned tag shows whether a write took place. `on conflict do update` and `update` lock the
//! row and, if they waited for another transaction, compute the new values from what it left. So
//! they return the current row even at the default isolation level, where `do nothing` with a
//! `select` may return nothing. A conflict leaves a dead copy of the same row for vacuum.

mod connect;
mod errors;
mod pool;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use tokio_postgres::types::ToSql;

use crate::stores::limits::PAGE_ROWS;
use crate::stores::scan::{Page, pages, prefix_end};
use crate::stores::table::{TableCaps, check_length};
use crate::stores::{Entropy, Expect, Key, Row, Table, TableError, Tag};
pub use connect::{PostgresTls, TlsError};
use pool::{Pool, StatementKind};

/// Options to open a table in `PostgreSQL`.
#[derive(Clone)]
pub struct PostgresOptions {
    /// Host, user, database, password.
    pub config: tokio_postgres::Config,
    /// Name of the table; letters, digits and `_`, optionally prefixed with a schema and a dot.
    pub table: String,
    /// Whether to create the table if it does not exist.
    pub may_create: bool,
    /// Maximum number of connections.
    pub connections: usize,
    /// Their security.
    pub tls: PostgresTls,
}

impl std::fmt::Debug for PostgresOptions {
    /// Omits everything that may contain a password.
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
    /// Opens the table, and creates it if it is missing and may be created.
    ///
    /// # Errors
    /// [`TableError::Unavailable`] if it cannot be reached or does not exist,
    /// [`TableError::Denied`], and [`TableError::Unsupported`] for an invalid name.
    pub async fn open(options: PostgresOptions, entropy: Entropy) -> Result<Self, TableError> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let mut parts = options.table.split('.');
        let is_name = parts.clone().count() <= 2
            && parts.all(|part| (1..=60).contains(&part.len()) && part.bytes().all(is_letter));
        if !is_name {
            return Err(TableError::Unsupported(
                "use this name: use 1-60 letters, digits and _, twice at most, joined by a dot",
            ));
        }
        let may_create = options.may_create;
        let pool = Pool::new(options);
        pool.prepare_table(may_create).await?;
        Ok(Self { pool, entropy })
    }

    async fn rows(
        &self,
        kind: StatementKind,
        arguments: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, TableError> {
        self.pool.execute(kind, arguments).await
    }
}

#[async_trait]
impl Table for PostgresTable {
    fn caps(&self) -> TableCaps {
        TableCaps::FULL
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        let rows = self.rows(StatementKind::Read, &[&key.as_str()]).await?;
        rows.first().map(|found| row(found, 0)).transpose()
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        check_length(self.caps(), &new)?;
        let (own, new): (Vec<u8>, &[u8]) = (self.entropy.draw().to_vec(), &new);
        let current = match &expect {
            Expect::Absent => {
                self.rows(StatementKind::Insert, &[&key.as_str(), &own, &new]).await?
            }
            Expect::Is(tag) => {
                let old = tag.as_bytes();
                self.rows(StatementKind::Update, &[&key.as_str(), &own, &new, &old]).await?
            }
        };
        let Some(current) = current.first() else { return Err(TableError::Conflict(None)) };
        let current = row(current, 0)?;
        if current.tag.as_bytes() == own {
            Ok(current.tag)
        } else {
            Err(TableError::Conflict(Some(current)))
        }
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        let removed = self.rows(StatementKind::Remove, &[&key.as_str(), &tag.as_bytes()]).await?;
        if removed.is_empty() { Err(TableError::Conflict(None)) } else { Ok(()) }
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        self.rows(StatementKind::Erase, &[&key.as_str()]).await.map(|_| ())
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        let below = prefix.map(|prefix| (format!("{prefix}/"), prefix_end(prefix.as_str())));
        pages(after, move |after| {
            // All characters of keys sort before 0x7f, and everything below a prefix after its
            // slash.
            let (first, end) = below.clone().unwrap_or_else(|| (String::new(), "\x7f".to_owned()));
            let first =
                after.map_or_else(|| first.clone(), |after| first.clone().max(after.into()));
            async move {
                let found = self.rows(StatementKind::Scan, &[&first, &end]).await?;
                let is_last = found.len() < PAGE_ROWS;
                let rows = found.iter().map(|found| {
                    let key: String =
                        found.try_get(2).map_err(|error| errors::malformed(&error))?;
                    let key = Key::new(key).map_err(|e| TableError::Corrupt(e.to_string()))?;
                    Ok((key, row(found, 0)?))
                });
                Ok(Page { rows: rows.collect::<Result<_, TableError>>()?, is_last })
            }
        })
    }
}

/// Reads tag and bytes from column `column` on. The writer's own statement may omit the bytes.
fn row(found: &tokio_postgres::Row, column: usize) -> Result<Row, TableError> {
    let tag: Vec<u8> = found.try_get(column).map_err(|error| errors::malformed(&error))?;
    let bytes: Option<Vec<u8>> =
        found.try_get(column + 1).map_err(|error| errors::malformed(&error))?;
    Ok(Row { bytes: bytes.unwrap_or_default().into(), tag: Tag::new(tag) })
}
