//! Fuzzes `checks::sector_decode`.
#![no_main]

#[path = "../checks.rs"]
#[expect(dead_code, reason = "each target calls one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::sector_decode(input));
