//! Shapes, their groups and the proof, and placement. The scheduler has its own files.

mod groups;
mod placing;
