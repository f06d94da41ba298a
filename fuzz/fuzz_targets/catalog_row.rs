//! Fuzzes `fulgurite_archive::fuzz_api::row`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_archive::fuzz_api::row(input));
