//! Tests shapes, their groups and the proof; placement; the queue against the paper's rule; and the
//! controller step by step and in a world with delays and failures.

mod due;
mod groups;
mod placement;
mod reorder;
mod schedule;
mod spin_up;
mod spin_up_budget;
mod world;
