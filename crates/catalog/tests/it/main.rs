//! Tests of the catalog from outside, with real directories and real processes.

mod crash;
mod damage;
