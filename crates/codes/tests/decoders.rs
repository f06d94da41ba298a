//! Runs the checks of the fuzz targets on random bytes in every test run.

#[path = "../../../fuzz/checks.rs"]
mod checks;

use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn ldpc_words(input in vec(any::<u8>(), 0..3000)) {
        checks::ldpc_decode(&input);
    }

    #[test]
    fn sectors(input in vec(prop_oneof![9 => -3i8..=3, 1 => any::<i8>()], 0..3000)) {
        checks::sector_decode(&input.into_iter().map(i8::cast_unsigned).collect::<Vec<_>>());
    }

    #[test]
    fn small_codes(input in vec(any::<u8>(), 0..7000)) {
        checks::small_decode(&input);
    }

    #[test]
    fn large_codes(input in vec(any::<u8>(), 0..9000)) {
        checks::large_decode(&input);
    }
}
