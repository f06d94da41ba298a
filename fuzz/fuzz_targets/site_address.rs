//! Fuzzes `fulgurite_sites::outside::address`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_sites::outside::address(input));
