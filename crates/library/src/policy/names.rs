//! The names that policies are chosen by, for those who choose and those who say what there is.

/// The policies that have a name.
pub const POLICY_NAMES: [&str; 5] =
    ["fulgurite", "thrifty", "silica", "shortest-paths", "no-shuttles"];
