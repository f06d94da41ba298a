//! The inner loops, each one body for any [`crate::simd::Vector`].
//!
//! The interface to other modules is safe: it checks counts and lengths, and turns slices into
//! pointers.

#![expect(unsafe_code, reason = "loads and stores through pointers are what a kernel is")]

pub(super) mod additive;
pub(super) mod dense;
