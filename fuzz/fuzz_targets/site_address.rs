//! Fuzzes `fulgurite_sites::fuzz_api::address`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_sites::fuzz_api::address(input));
