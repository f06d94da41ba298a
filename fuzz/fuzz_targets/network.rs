//! Fuzzes `network_checks::network`. Good to begin with: `models/`, `crates/decode/tests/models`.
#![no_main]

#[path = "../network_checks.rs"]
mod network_checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    network_checks::network(input);
});
