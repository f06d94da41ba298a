//! Caught panics: a bug costs the work that hit it, and no thread.
//!
//! The work of a background thread runs through [`Panics::run`], which counts and logs a panic and
//! returns it as an error of that work. What the work held is dropped as for any other error. Locks
//! that it held are used again, because no state is left half changed behind them.
//!
//! Not here: panics of requests, which the front end's runtime confines to their connection.

use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_tier::driver::{Panicked, catch_panic};

use crate::{GlassError, Result};

/// The number of panics caught since start.
#[derive(Debug, Default)]
pub struct Panics {
    caught: AtomicU64,
}

impl Panics {
    /// Runs `work`; a panic becomes an error that names `component` panicked.
    ///
    /// # Errors
    /// When it panicked.
    pub fn catch<T>(&self, component: &str, work: impl FnOnce() -> T) -> Result<T> {
        catch_panic(work).map_err(|panicked| self.record(component, &panicked))
    }

    /// Counts and logs a panic of `component`, and returns it as an error.
    pub(crate) fn record(&self, component: &str, panicked: &Panicked) -> GlassError {
        self.caught.fetch_add(1, Ordering::Relaxed);
        let what = format!("{component} {panicked}");
        tracing::error!("{what}; this is a bug; the work that hit it failed");
        GlassError::Internal { what }
    }

    /// Runs `work`, which can fail by itself; a panic is one more error of it.
    ///
    /// # Errors
    /// Those of the work, and when it panicked.
    pub fn run<T, E: From<GlassError>>(
        &self,
        component: &str,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.catch(component, work)?
    }

    /// Number of panics caught since start.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.caught.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_error_names_component_and_message() {
        let panics = Panics::default();
        assert_eq!(panics.catch("a drive", || 7).unwrap(), 7);
        assert_eq!(panics.count(), 0);
        let text = panics.catch("a drive", || panic!("no track {}", 3)).unwrap_err().to_string();
        assert_eq!(text, "internal error: a drive panicked: no track 3");
        let text = panics.catch("a worker", || panic!("bare")).unwrap_err().to_string();
        assert_eq!(text, "internal error: a worker panicked: bare");
        assert_eq!(panics.count(), 2);
        let own = panics.run("a drive", || Err::<(), _>(GlassError::Stopping));
        assert!(matches!(own, Err(GlassError::Stopping)), "an error of the work is its own");
        let text = panics.run("a drive", || -> Result<()> { panic!("bare") }).unwrap_err();
        assert_eq!(text.to_string(), "internal error: a drive panicked: bare");
        assert_eq!(panics.count(), 3);
    }
}
