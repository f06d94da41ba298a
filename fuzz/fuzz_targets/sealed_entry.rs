//! Fuzzes `fulgurite_archive::fuzz_api::sealed_entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_archive::fuzz_api::sealed_entry(input));
