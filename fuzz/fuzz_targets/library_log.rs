//! Fuzzes `library_checks::library_log`.
#![no_main]

#[path = "../library_checks.rs"]
mod library_checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| library_checks::library_log(input));
