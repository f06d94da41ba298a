//! Tests of this crate's parts; whole platters are tested in tests/.
