//! Fuzzes `fulgurite_platters::fuzz_api::queue_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_platters::fuzz_api::queue_message(input));
