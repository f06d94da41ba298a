//! Pool of connections to a `PostgreSQL`, each with its statements prepared.
//!
//! A connection that failed is not reused; the next caller opens a new one. Calls are never retried
//! here.

use std::fmt;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::PostgresOptions;
use super::connect::connect;
use super::errors;
use crate::stores::limits::{ANSWER_TIMEOUT, CONNECT_TIMEOUT, CONNECTIONS_MAX, PAGE_ROWS};
use crate::stores::{Cause, TableError};

/// A statement of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementKind {
    Read,
    Insert,
    Update,
    Remove,
    Erase,
    Scan,
}

impl StatementKind {
    const ALL: [Self; 6] =
        [Self::Read, Self::Insert, Self::Update, Self::Remove, Self::Erase, Self::Scan];

    /// Whether it changes nothing.
    const fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::Scan)
    }

    /// Returns its SQL. The table name needs no quotes.
    fn text(self, table: &str) -> String {
        match self {
            Self::Read => format!("select tag, bytes from {table} where key = $1"),
            Self::Insert => format!(
                "insert into {table} as old (key, tag, bytes) values ($1, $2, $3) \
                 on conflict (key) do update set key = old.key \
                 returning tag, case when tag = $2 then null else bytes end"
            ),
            Self::Update => format!(
                "update {table} set tag = case when tag = $4 then $2 else tag end, \
                 bytes = case when tag = $4 then $3 else bytes end where key = $1 \
                 returning tag, case when tag = $2 then null else bytes end"
            ),
            Self::Remove => {
                format!(
                    "delete from {table} where key = $1 and tag = $2 returning tag, null::bytea"
                )
            }
            Self::Erase => {
                format!("delete from {table} where key = $1 returning tag, null::bytea")
            }
            Self::Scan => format!(
                "select tag, bytes, key from {table} where key > $1 and key < $2 \
                 order by key limit {PAGE_ROWS}"
            ),
        }
    }
}

struct Connection {
    client: Client,
    statements: Vec<(StatementKind, Statement)>,
}

/// Connections to one database.
pub(super) struct Pool {
    options: PostgresOptions,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(options: PostgresOptions) -> Self {
        let permits = Semaphore::new(options.connections.clamp(1, CONNECTIONS_MAX));
        Self { options, idle: Mutex::default(), permits }
    }

    /// Creates the table if it may, and checks that it exists.
    pub(super) async fn prepare_table(&self, may_create: bool) -> Result<(), TableError> {
        let _permit = self.permit().await?;
        let table = &self.options.table;
        let work = async {
            let client = connect(&self.options).await?;
            if may_create {
                let text = format!(
                    "create table if not exists {table} \
                     (key text collate \"C\" primary key, tag bytea not null, bytes bytea not null)"
                );
                // Two concurrent creations may collide in the catalog; then the table exists.
                if let Err(error) = client.batch_execute(&text).await
                    && !errors::is_duplicate(&error)
                {
                    return Err(errors::to_definite_error(&error));
                }
            }
            self.prepare(client).await
        };
        let connection = with_connect_timeout(work).await?;
        self.give_back(connection);
        Ok(())
    }

    /// Executes a statement and returns its rows.
    pub(super) async fn execute(
        &self,
        kind: StatementKind,
        arguments: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, TableError> {
        let _permit = self.permit().await?;
        let connection = match self.take() {
            Some(connection) => connection,
            None => {
                let new = async { self.prepare(connect(&self.options).await?).await };
                with_connect_timeout(new).await?
            }
        };
        let statement = connection.statements.iter().find(|(known, _)| *known == kind);
        let (_, statement) = statement.expect("every kind of statement is prepared");
        let query = connection.client.query(statement, arguments);
        let answer = match tokio::time::timeout(ANSWER_TIMEOUT, query).await {
            Ok(answer) => answer.map_err(|error| errors::to_call_error(&error)),
            // The connection is dropped as well.
            Err(_) => return Err(to_kind_error(kind, TableError::Unknown(timeout_cause()))),
        };
        // After an error the state of the connection is unknown.
        let answer = answer.map_err(|error| to_kind_error(kind, error))?;
        self.give_back(connection);
        Ok(answer)
    }

    async fn prepare(&self, client: Client) -> Result<Connection, TableError> {
        let mut statements = Vec::with_capacity(StatementKind::ALL.len());
        for kind in StatementKind::ALL {
            let prepared = client.prepare(&kind.text(&self.options.table)).await;
            statements.push((kind, prepared.map_err(|error| errors::to_definite_error(&error))?));
        }
        Ok(Connection { client, statements })
    }

    async fn permit(&self) -> Result<tokio::sync::SemaphorePermit<'_>, TableError> {
        match tokio::time::timeout(ANSWER_TIMEOUT, self.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => {
                let reason = "all connections to the database are in use";
                Err(TableError::Unavailable(Cause::new(reason)))
            }
        }
    }

    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop()).find(|connection| !connection.client.is_closed())
    }

    fn give_back(&self, connection: Connection) {
        if !connection.client.is_closed() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}

fn timeout_cause() -> Cause {
    Cause::new("the database did not answer in time")
}

/// Maps the error of a statement: a read without an answer was not executed.
fn to_kind_error(kind: StatementKind, error: TableError) -> TableError {
    if kind.is_read() { error.into_read_error() } else { error }
}

async fn with_connect_timeout<T>(
    work: impl Future<Output = Result<T, TableError>>,
) -> Result<T, TableError> {
    match tokio::time::timeout(CONNECT_TIMEOUT, work).await {
        Ok(done) => done,
        Err(_) => Err(TableError::Unavailable(timeout_cause())),
    }
}
