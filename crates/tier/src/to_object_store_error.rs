//! Converts a store's errors to `object_store` errors.

use object_store::Error;
use object_store::path::Path;

use crate::Mode;

/// What an error means to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectStoreErrorKind {
    /// No such object.
    NotFound,
    /// The object exists, and must not.
    Exists,
    /// The precondition failed: the object is not the expected one.
    Changed,
    /// Any other error.
    Other,
}

/// An error of a store.
pub trait ObjectStoreError: std::error::Error + Send + Sync + Sized + 'static {
    /// Name of the store.
    const STORE: &'static str;

    /// Returns what the error means.
    fn error_kind(&self) -> ObjectStoreErrorKind;

    /// The error of a request that can never succeed.
    fn invalid(what: String) -> Self;

    /// The error when an object exists under the key already.
    fn exists(key: String) -> Self;

    /// The error when the object under the key is not the expected one.
    fn changed(key: String) -> Self;

    /// The error of a put whose precondition does not hold.
    fn refused(mode: Mode, key: &str) -> Self {
        match mode {
            Mode::Create => Self::exists(key.to_owned()),
            Mode::Overwrite | Mode::Update(_) | Mode::Never => Self::changed(key.to_owned()),
        }
    }
}

/// Converts an error that concerns one object.
pub(crate) fn to_object_store_error<E: ObjectStoreError>(location: &Path, error: E) -> Error {
    let path = location.to_string();
    match error.error_kind() {
        ObjectStoreErrorKind::NotFound => Error::NotFound { path, source: Box::new(error) },
        ObjectStoreErrorKind::Exists => Error::AlreadyExists { path, source: Box::new(error) },
        ObjectStoreErrorKind::Changed => Error::Precondition { path, source: Box::new(error) },
        ObjectStoreErrorKind::Other => to_generic_error(error),
    }
}

/// Converts an error that concerns no particular object.
pub fn to_generic_error<E: ObjectStoreError>(error: E) -> Error {
    generic_error::<E>(Box::new(error))
}

/// Wraps an error that fits no other variant of `object_store`'s.
pub(crate) fn generic_error<E: ObjectStoreError>(
    source: Box<dyn std::error::Error + Send + Sync>,
) -> Error {
    Error::Generic { store: E::STORE, source }
}
