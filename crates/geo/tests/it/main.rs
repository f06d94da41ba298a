//! Several sites, held from outside.

mod simulation;
