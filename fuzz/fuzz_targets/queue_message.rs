//! Fuzzes `fulgurite_glass::fuzz_api::queue_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_glass::fuzz_api::queue_message(input));
