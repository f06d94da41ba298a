//! The decoder: all levels give the same results, and codewords are recovered.

use super::super::random::Random;
use super::super::{BaseMatrix, Block, Code, Encoder, Entry, Rate, VoxelChannel};
use super::*;

/// Returns a random codeword.
fn codeword(code: &Code, random: &mut Random) -> Vec<u8> {
    let information: Vec<u8> =
        (0..code.information_bits() / 8).map(|_| random.bits().to_le_bytes()[0]).collect();
    let mut word = information.clone();
    word.resize(code.bits() / 8, 0);
    Encoder::new(code).encode(&information, &mut word[information.len()..]).unwrap();
    word
}

/// Returns the word with confident soft bits, except for some wrong and some erased bits.
fn soft(word: &[u8], random: &mut Random, wrong: usize, erased: usize) -> Vec<i8> {
    let bits = word.len() * 8;
    let mut soft: Vec<i8> =
        (0..bits).map(|i| if word[i / 8] >> (i % 8) & 1 == 0 { 8 } else { -8 }).collect();
    for _ in 0..wrong {
        let place = random.below(bits);
        soft[place] = -soft[place];
    }
    for _ in 0..erased {
        soft[random.below(bits)] = 0;
    }
    soft
}

#[test]
fn every_code_recovers_its_words() {
    let mut random = Random::new(7);
    for block in Block::ALL {
        for rate in Rate::ALL {
            let code = Code::standard(rate, block);
            let mut decoder = Decoder::new(&code);
            let word = codeword(&code, &mut random);
            assert!(is_codeword(&code, &word).unwrap(), "{rate:?} {block:?}");
            let mut read = vec![0; word.len()];
            for word in [word, vec![0; code.bits() / 8]] {
                let clean = soft(&word, &mut random, 0, 0);
                let outcome = decoder.decode(&clean, Effort::default(), &mut read).unwrap();
                assert_eq!((outcome.converged, outcome.iterations), (true, 0));
                assert_eq!((outcome.corrected, outcome.erased), (0, 0));
                assert_eq!(read, word);

                let (wrong, erased) = (code.parity_bits() / 40, code.parity_bits() / 40);
                let noisy = soft(&word, &mut random, wrong, erased);
                let outcome = decoder.decode(&noisy, Effort::default(), &mut read).unwrap();
                assert!(outcome.converged, "{rate:?} {block:?} {outcome:?}");
                assert_eq!(read, word, "{rate:?} {block:?}");
                let zeros = noisy.iter().filter(|&&value| value == 0).count();
                assert_eq!(outcome.erased, zeros);
                let differ = (0..noisy.len())
                    .filter(|&i| noisy[i] != 0)
                    .filter(|&i| (noisy[i] < 0) != (word[i / 8] >> (i % 8) & 1 == 1))
                    .count();
                assert_eq!(outcome.corrected, differ);
                assert!(outcome.iterations > 0);
            }
        }
    }
}

#[test]
fn all_levels_agree_on_every_bit() {
    let mut random = Random::new(11);
    let codes = Block::ALL.into_iter().flat_map(|block| Rate::ALL.map(|rate| (rate, block)));
    for (rate, block) in codes {
        let code = Code::standard(rate, block);
        let noise: Vec<i8> =
            (0..code.bits()).map(|_| random.bits().to_le_bytes()[0].cast_signed()).collect();
        let channel = VoxelChannel::new(3, 0.02, 2.0);
        let read: Vec<i8> = (0..code.bits()).map(|_| channel.read(0, random.bits()).0[0]).collect();
        for soft in [noise, read] {
            for early_stop in [false, true] {
                let effort = Effort { iterations: 6, early_stop };
                let results: Vec<_> = Isa::supported()
                    .map(|isa| {
                        let mut decoder = Decoder::with_isa(&code, isa);
                        let mut word = vec![0; code.bits() / 8];
                        let outcome = decoder.decode(&soft, effort, &mut word).unwrap();
                        (word, outcome, decoder.state.sums.values().to_vec())
                    })
                    .collect();
                assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
            }
        }
    }
}

/// The decoder by its definition, bit by bit: returns the hard decisions after some iterations.
fn definition(code: &Code, soft: &[i8], iterations: usize) -> Vec<u8> {
    let z = code.matrix().circulant();
    let mut sums: Vec<i32> =
        soft.iter().map(|soft| i32::from(*soft.clamp(&-CHANNEL_MAX, &CHANNEL_MAX))).collect();
    let rows = code.matrix().row_entries();
    let mut messages: Vec<Vec<i32>> = rows.iter().map(|row| vec![0; row.len() * z]).collect();
    for _ in 0..iterations {
        for (row, messages) in rows.iter().zip(&mut messages) {
            for (check, messages) in messages.chunks_exact_mut(row.len()).enumerate() {
                let bits: Vec<usize> =
                    row.iter().map(|(column, shift)| column * z + (check + shift) % z).collect();
                let rest: Vec<i32> = bits
                    .iter()
                    .zip(&*messages)
                    .map(|(bit, message)| sums[*bit] - message)
                    .collect();
                for (edge, message) in messages.iter_mut().enumerate() {
                    let others = || rest.iter().enumerate().filter(|(other, _)| *other != edge);
                    let smallest = others().map(|(_, rest)| rest.abs()).min().unwrap();
                    let magnitude = (smallest - i32::from(OFFSET)).clamp(0, MESSAGE_MAX.into());
                    let is_odd = others().filter(|(_, rest)| **rest < 0).count() % 2 == 1;
                    *message = if is_odd { -magnitude } else { magnitude };
                    sums[bits[edge]] = rest[edge] + *message;
                }
            }
        }
    }
    let mut word = vec![0; soft.len() / 8];
    for (place, sum) in sums.iter().enumerate() {
        word[place / 8] |= u8::from(*sum < 0) << (place % 8);
    }
    word
}

/// Creates a code of few columns: every size of circulant, odd and even weights.
fn small(circulant: usize, information: usize, random: &mut Random) -> Code {
    const ROWS: usize = 4;
    let entry = |row: usize, shift: usize| Entry { row, shift };
    let mut columns: Vec<Vec<Entry>> = (0..information)
        .map(|_| {
            let first = random.below(ROWS);
            (0..1 + random.below(ROWS))
                .map(|i| entry((first + i) % ROWS, random.below(circulant)))
                .collect()
        })
        .collect();
    let closing = random.below(circulant);
    columns.push(vec![entry(0, closing), entry(1 + random.below(2), 0), entry(3, closing)]);
    columns.extend((1..ROWS).map(|step| vec![entry(step - 1, 0), entry(step, 0)]));
    Code::new(BaseMatrix::new(circulant, ROWS, columns).unwrap()).unwrap()
}

#[test]
fn all_levels_match_the_definition() {
    let mut random = Random::new(23);
    for circulant in [64, 128, 256, 512, 1024] {
        for information in 1..12 {
            let code = small(circulant, information, &mut random);
            let soft: Vec<i8> =
                (0..code.bits()).map(|_| random.bits().to_le_bytes()[0].cast_signed()).collect();
            for iterations in 0..4 {
                let expected = definition(&code, &soft, iterations);
                let effort = Effort { iterations, early_stop: false };
                for isa in Isa::supported() {
                    let mut word = vec![0; code.bits() / 8];
                    Decoder::with_isa(&code, isa).decode(&soft, effort, &mut word).unwrap();
                    let name = isa.name();
                    assert!(word == expected, "{name}, {information} x {circulant}, {iterations}");
                }
            }
        }
    }
}

#[test]
fn converged_words_stay_converged() {
    // With saturating sums, words diverged again after convergence.
    let mut random = Random::new(13);
    for rate in Rate::ALL {
        let code = Code::standard(rate, Block::Bits16k);
        let mut decoder = Decoder::new(&code);
        let word = codeword(&code, &mut random);
        let mut noisy = soft(&word, &mut random, code.parity_bits() / 40, 0);
        noisy.iter_mut().for_each(|soft| *soft = soft.saturating_mul(8));
        let mut read = vec![0; word.len()];
        let effort = Effort { iterations: 300, early_stop: false };
        let outcome = decoder.decode(&noisy, effort, &mut read).unwrap();
        assert!(outcome.converged, "{rate:?}");
        assert_eq!(outcome.iterations, 300);
        assert_eq!(read, word, "{rate:?}");
    }
}

#[test]
fn undecodable_words_are_reported() {
    let mut random = Random::new(17);
    let code = Code::standard(Rate::R9of10, Block::Bits16k);
    let mut decoder = Decoder::new(&code);
    let noise: Vec<i8> =
        (0..code.bits()).map(|_| random.bits().to_le_bytes()[0].cast_signed()).collect();
    let mut word = vec![0; code.bits() / 8];
    let effort = Effort { iterations: 7, early_stop: true };
    let outcome = decoder.decode(&noise, effort, &mut word).unwrap();
    assert_eq!((outcome.converged, outcome.iterations), (false, 7));
    assert!(!is_codeword(&code, &word).unwrap());
    // With all bits erased the result is the all-zero word, which is a codeword.
    let outcome = decoder.decode(&vec![0; code.bits()], effort, &mut word).unwrap();
    assert_eq!((outcome.converged, outcome.erased), (true, code.bits()));
}

#[test]
fn decoder_keeps_no_state_between_words() {
    let mut random = Random::new(19);
    let code = Code::standard(Rate::R15of16, Block::Bits16k);
    let word = codeword(&code, &mut random);
    let noisy = soft(&word, &mut random, code.parity_bits() / 40, 9);
    for isa in Isa::supported() {
        let mut decoder = Decoder::with_isa(&code, isa);
        let mut read = vec![0; word.len()];
        let first = decoder.decode(&noisy, Effort::default(), &mut read).unwrap();
        let other = vec![-31; code.bits()];
        decoder.decode(&other, Effort::default(), &mut read).unwrap();
        assert_eq!(decoder.decode(&noisy, Effort::default(), &mut read).unwrap(), first);
        assert_eq!(read, word);
    }
}
