//! Units survive the round trip through text, and random streams repeat.

use expect_test::expect;
use proptest::prelude::*;

use crate::{AffinityGroup, ByteCount, Duration, Ratio, Seed, error_chain};

#[test]
fn byte_counts_print_the_largest_unit() {
    let shown: Vec<String> = [0, 1, 1023, 1024, 1536, 64 << 20, (4 << 30) + 1]
        .map(|n| ByteCount::new(n).to_string())
        .into();
    expect![[r#"
        [
            "0B",
            "1B",
            "1023B",
            "1KiB",
            "1.5KiB",
            "64MiB",
            "4.0GiB",
        ]
    "#]]
    .assert_debug_eq(&shown);
}

#[test]
fn wrong_units_are_rejected_with_advice() {
    for text in ["", "MiB", "12 MB", "-1B", "1.5GiB", "99999999999PiB"] {
        assert!(text.parse::<ByteCount>().is_err(), "{text}");
    }
    for text in ["", "30", "s", "1.5s", "3 weeks", "99999999999d"] {
        assert!(text.parse::<Duration>().is_err(), "{text}");
    }
    assert!(Ratio::new(1.1).is_err());
    assert!(Ratio::new(f64::NAN).is_err());
}

#[test]
fn children_of_a_seed_are_independent_of_order() {
    let root = Seed::new(7);
    let mut first = root.child(b"drive").stream();
    let _ = root.child(b"shuttle").stream().next_u64();
    let mut again = root.child(b"drive").stream();
    assert_eq!(first.next_u64(), again.next_u64());
    assert_ne!(root.child(b"drive"), root.child(b"shuttle"));
}

proptest! {
    #[test]
    fn durations_round_trip(ns in 1u64..=u64::MAX / 2) {
        let duration = Duration::from_nanos(ns);
        prop_assert_eq!(duration.to_string().parse::<Duration>().unwrap(), duration);
    }

    #[test]
    fn seconds_are_rounded_to_the_nearest_nanosecond(bits: u64, small in -1.0f64..1e6) {
        for seconds in [f64::from_bits(bits), small, small / 1e9, small.floor() / 2e9] {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "float casts saturate"
            )]
            let rounded = (seconds * 1e9).round() as u64;
            prop_assert_eq!(Duration::from_secs_f64(seconds).as_nanos(), rounded, "{}", seconds);
        }
    }

    #[test]
    fn byte_counts_round_trip_through_json(bytes: u64) {
        let count = ByteCount::new(bytes);
        let text = count.to_string();
        if let Ok(read) = text.parse::<ByteCount>() {
            prop_assert_eq!(read, count);
        }
    }

    #[test]
    fn below_is_less_than_its_bound(seed: u64, bound in 1u64..) {
        prop_assert!(Seed::new(seed).stream().below(bound) < bound);
    }
}

#[test]
fn keys_of_one_folder_share_an_affinity_group() {
    let affinity = |bucket, key| AffinityGroup::of_key(bucket, key);
    assert_eq!(affinity("films", "1998/a/1.mxf"), affinity("films", "1998/a/2.mxf"));
    assert_eq!(affinity("films", "1"), affinity("films", "2"));
    let others = [("films", "1998/b/1.mxf"), ("tapes", "1998/a/1.mxf"), ("films", "1998/a")];
    for (bucket, key) in others {
        assert_ne!(affinity(bucket, key), affinity("films", "1998/a/1.mxf"), "{bucket} {key}");
    }
    assert_ne!(affinity("ab", "c/1"), affinity("abc", "1"), "bucket and folder are separated");
}

#[test]
fn error_chain_includes_all_sources() {
    #[derive(Debug)]
    struct Outer(std::num::ParseIntError);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("no number of tracks")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let inner = "x".parse::<u8>().unwrap_err();
    assert_eq!(error_chain(&inner), "invalid digit found in string");
    let text = error_chain(&Outer(inner));
    assert_eq!(text, "no number of tracks: invalid digit found in string");
}
