//! To come.

use serde::{Deserialize, Serialize};

/// To come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {}
