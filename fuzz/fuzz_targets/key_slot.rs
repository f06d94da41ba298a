//! Fuzzes `fulgurite_archive::outside::key_slot`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_archive::outside::key_slot(input));
