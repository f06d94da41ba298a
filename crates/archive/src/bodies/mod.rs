//! Object data before and beside any tier: ingest, encryption, logs, keys, sealed entries, and
//! purging deleted names.

pub(crate) mod cipher;
pub(crate) mod copies;
pub(crate) mod damaged;
pub(crate) mod digest;
pub(crate) mod digesting;
pub(crate) mod doubts;
pub(crate) mod entry;
pub(crate) mod forget;
pub(crate) mod ingest;
pub(crate) mod key_files;
pub(crate) mod key_table;
pub(crate) mod log;
pub(crate) mod orphan_report;
pub(crate) mod staged;
