//! The archive through its public face, on real files.

mod harness;
mod life;
