//! Every bound of the glass tier by name.

/// Size at which the log of the library ends.
pub const LIBRARY_LOG_BYTES_MAX: u64 = 64 << 20;
