//! Fuzzes `fulgurite_archive::outside::sealed_entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_archive::outside::sealed_entry(input));
