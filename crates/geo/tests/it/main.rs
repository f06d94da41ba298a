//! Several sites, held from outside.

mod models;
mod properties;
mod simulation;
