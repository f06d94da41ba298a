//! Errors of a store, as those of `object_store`.

use object_store::Error;
use object_store::path::Path;

use crate::Mode;

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

    /// There is something under a key already.
    fn exists(key: String) -> Self;

    /// What is under a key is not what was expected.
    fn changed(key: String) -> Self;

    /// A put whose condition is not met.
    fn refused(mode: Mode, key: &str) -> Self {
        match mode {
            Mode::Create => Self::exists(key.to_owned()),
            Mode::Overwrite | Mode::Update(_) | Mode::Never => Self::changed(key.to_owned()),
        }
    }
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
    generic::<E>(Box::new(error))
}

/// An error of `object_store` that is none of its other ones.
pub fn generic<E: Failure>(source: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::Generic { store: E::STORE, source }
}
