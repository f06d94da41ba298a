//! Several sites, held from outside.

mod models;
mod properties;
mod restoring;
mod simulation;
