//! Shapes, their groups and the proof; placement; the queue against the paper's rule; the
//! controller step by step, and in a world that takes its time and fails.

mod due;
mod groups;
mod placing;
mod reordering;
mod scheduling;
mod spending;
mod waking;
mod world;
