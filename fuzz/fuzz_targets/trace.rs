//! Fuzzes `twin_checks::trace`.
#![no_main]

#[path = "../twin_checks.rs"]
#[expect(dead_code, reason = "each target calls one of the checks")]
mod twin_checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| twin_checks::trace(input));
