//! The names of the policies, to choose one or to list them.

/// The policies that have a name.
pub const POLICY_NAMES: [&str; 5] =
    ["fulgurite", "thrifty", "silica", "shortest-paths", "no-shuttles"];
