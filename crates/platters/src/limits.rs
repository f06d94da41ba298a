//! Every bound of the glass tier by name.

/// Size at which the log of the library ends.
pub const LIBRARY_LOG_BYTES_MAX: u64 = 64 << 20;
/// Scenes and steps of the library that wait for one who watches it; with one more it is late.
pub const WATCH_STEPS_MAX: usize = 4096;
