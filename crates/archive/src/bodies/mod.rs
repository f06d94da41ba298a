//! Object data before and beside any tier: ingest, encryption, logs, keys, sealed entries, and
//! purging deleted names.

pub(crate) mod cipher;
pub(crate) mod copies;
pub(crate) mod digest;
pub(crate) mod digest_pool;
pub(crate) mod entry;
pub(crate) mod ingest;
pub(crate) mod key_files;
pub(crate) mod key_table;
pub(crate) mod log;
pub(crate) mod orphan_report;
pub(crate) mod purge;
pub(crate) mod quarantine;
pub(crate) mod staged_bodies;
pub(crate) mod unconfirmed;
