//! Fuzzes `fulgurite_geo::stores::fuzz_api::fragment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_geo::stores::fuzz_api::fragment(input));
