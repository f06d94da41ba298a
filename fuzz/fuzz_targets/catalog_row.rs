//! Fuzzes `fulgurite_archive::outside::row`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_archive::outside::row(input));
