//! The time of day. It is handed in, so that a test can let days pass in a moment; mechanics and
//! retries go by the monotonic clock and not by this one.

use std::fmt;
use std::sync::Arc;

use crate::UnixTime;

/// Says what time of day it is.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> UnixTime + Send + Sync>);

impl Clock {
    /// A clock that shows what `now` returns.
    #[must_use]
    pub fn new(now: impl Fn() -> UnixTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time of day.
    #[must_use]
    pub fn now(&self) -> UnixTime {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
