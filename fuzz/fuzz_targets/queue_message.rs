//! Fuzzes `fulgurite_platters::outside::queue_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fulgurite_platters::outside::queue_message(input));
