//! Fuzzes `fulgurite_sites::outside::fragment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_sites::outside::fragment(input));
