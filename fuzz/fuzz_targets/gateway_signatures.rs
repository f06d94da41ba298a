//! Fuzzes `gateway_checks::signatures`.
#![no_main]

#[path = "../gateway_checks.rs"]
#[expect(dead_code, reason = "each target calls one of the checks")]
mod gateway_checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| gateway_checks::signatures(input));
