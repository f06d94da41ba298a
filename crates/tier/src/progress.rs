//! Progress of a long operation, for those that wait for it: bytes done, bytes in total, and what
//! it does now.
//!
//! No decision depends on it, so it may lag a little behind what it counts. Rates and the remaining
//! time are computed by the reader.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_units::ByteCount;

/// Bytes done, and bytes in total. The total may grow or shrink while an operation runs: what comes
/// next is estimated until it is planned.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    message: Mutex<String>,
}

impl Progress {
    /// Returns bytes done and bytes in total; both are zero until the total is known.
    #[must_use]
    pub fn bytes(&self) -> (ByteCount, ByteCount) {
        let total = self.total.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed).min(total);
        (ByteCount::new(done), ByteCount::new(total))
    }

    /// Resets it to this many bytes done of this many.
    pub fn set(&self, done: u64, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }

    /// Adds bytes to the total.
    pub fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds bytes that were done.
    pub fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Says what is done now.
    pub fn set_message(&self, message: String) {
        *self.message.lock().unwrap_or_else(PoisonError::into_inner) = message;
    }

    /// Returns what is done now; empty if the bytes say it.
    #[must_use]
    pub fn message(&self) -> String {
        self.message.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts counting a part of the work that reports its own progress, and may have to start
    /// over.
    #[must_use]
    pub fn part(self: &Arc<Self>) -> Part {
        Part { progress: Arc::clone(self), done: 0 }
    }
}

/// A part of the work.
#[derive(Debug)]
pub struct Part {
    progress: Arc<Progress>,
    done: u64,
}

impl Part {
    /// Sets how many bytes of it are done, which may be fewer than before.
    pub fn set(&mut self, done: u64) {
        let all = &self.progress.done;
        match done.checked_sub(self.done) {
            Some(more) => all.fetch_add(more, Ordering::Relaxed),
            None => all.fetch_sub(self.done - done, Ordering::Relaxed),
        };
        self.done = done;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_that_starts_over_takes_back_what_it_counted() {
        let progress = Arc::<Progress>::default();
        progress.set(5, 90);
        progress.expect(10);
        let bytes = || {
            let (done, total) = progress.bytes();
            (done.get(), total.get())
        };
        let (mut one, mut two) = (progress.part(), progress.part());
        one.set(30);
        two.set(20);
        assert_eq!(bytes(), (55, 100));
        one.set(0);
        assert_eq!(bytes(), (25, 100));
        one.set(40);
        progress.add(60);
        assert_eq!(bytes(), (100, 100), "never more than all");
    }
}
