//! Fuzzes `glass_checks::file_list`.
#![no_main]

#[path = "../glass_checks.rs"]
#[expect(dead_code, reason = "each target calls one of the checks")]
mod glass_checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| glass_checks::file_list(input));
