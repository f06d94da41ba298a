//! What is read of a platter, and how often.

use super::*;
