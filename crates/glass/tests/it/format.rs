//! The format itself.
