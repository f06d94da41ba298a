//! Tests shapes, their groups and the proof; placement; the queue against the paper's rule; and the
//! controller step by step and in a world with delays and failures.

mod due;
mod groups;
mod placing;
mod reordering;
mod scheduling;
mod spending;
mod waking;
mod world;
