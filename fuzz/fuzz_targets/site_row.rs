//! Fuzzes `fulgurite_sites::outside::row_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_sites::outside::row_file(input));
