//! Errors of a store, as those of `object_store`.

use object_store::Error;
use object_store::path::Path;

/// What an error means to who asked for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// There is none.
    NotFound,
    /// There is one, and there must not be.
    Exists,
    /// There is another than was expected.
    Changed,
    /// Anything else.
    Other,
}

/// An error of a store.
pub trait Failure: std::error::Error + Send + Sync + Sized + 'static {
    /// How the store is called.
    const STORE: &'static str;

    /// What it means.
    fn sort(&self) -> Sort;
}

/// An error about an object.
pub fn told<E: Failure>(location: &Path, error: E) -> Error {
    let path = location.to_string();
    match error.sort() {
        Sort::NotFound => Error::NotFound { path, source: Box::new(error) },
        Sort::Exists => Error::AlreadyExists { path, source: Box::new(error) },
        Sort::Changed => Error::Precondition { path, source: Box::new(error) },
        Sort::Other => told_of_none(error),
    }
}

/// An error that is about no object.
pub fn told_of_none<E: Failure>(error: E) -> Error {
    Error::Generic { store: E::STORE, source: Box::new(error) }
}
