//! Buckets, keys and objects: put, read, listed, and uploaded in parts.

pub(crate) mod body;
pub(crate) mod commit;
pub(crate) mod completion_locks;
pub(crate) mod list;
pub(crate) mod multipart;
pub(crate) mod parts;
pub(crate) mod put;
pub(crate) mod read;
