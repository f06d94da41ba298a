//! Parsers of untrusted bytes that are not reachable otherwise: messages of the decode queue, rows.
//! Each function checks what must hold for them whatever the bytes.
//!
//! Fuzz targets call these with the fuzzer's inputs, and the tests here with seeded bytes. This is
//! not an interface for anything else.

use fulgurite_catalog::Space;
use fulgurite_catalog::row::{self, Row};
use fulgurite_units::PlatterId;

use crate::decode_service::check_message;
use crate::rows::{
    FAR, FarRow, MARGINS, PLANS, PLATTERS, PlanRow, PlatterRow, SETS, SLOTS, SetRow, TrackRow,
    VERIFIED, VerificationRow,
};

/// Checks arbitrary bytes as a message of the decode queue, with and without a MAC.
///
/// # Panics
/// When something does not hold.
pub fn queue_message(input: &[u8]) {
    check_message(input);
}

/// Kinds of rows.
pub const ROW_KINDS: u8 = 7;

/// Checks arbitrary bytes as a row of any space of the glass tier: they decode to a row, or to an
/// error.
///
/// # Panics
/// When something does not hold.
pub fn glass_row(kind: u8, bytes: &[u8]) {
    match kind % ROW_KINDS {
        0 => check_round_trip::<SetRow>(SETS, bytes),
        1 => check_round_trip::<PlatterRow>(PLATTERS, bytes),
        2 => check_round_trip::<VerificationRow>(VERIFIED, bytes),
        3 => check_round_trip::<PlanRow>(PLANS, bytes),
        4 => check_round_trip::<PlatterId>(SLOTS, bytes),
        5 => check_round_trip::<TrackRow>(MARGINS, bytes),
        _ => check_round_trip::<FarRow>(FAR, bytes),
    }
}

/// Checks that a decoded row survives a round trip.
fn check_round_trip<T: Row + PartialEq + std::fmt::Debug>(space: Space, bytes: &[u8]) {
    if let Ok(found) = row::decode::<T>(space, bytes) {
        let encoded = row::encode(&found).expect("a decoded row can be encoded");
        assert_eq!(row::decode::<T>(space, &encoded).expect("and decoded again"), found);
    }
}

#[cfg(test)]
mod tests;
