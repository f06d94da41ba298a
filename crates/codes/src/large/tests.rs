//! The fast code equals the definition at every instruction-set level; any loss up to the
//! redundancy is reconstructed, and one more is an error.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::definition::{self, BASIS, element};
use super::{DecodeMethod, LargeCode, LargeDecoder, LargeEncoder, Relation};
use crate::field::{gf8, gf16};
use crate::{CodeError, ErrorKind, Isa, Shard, Signature, signature};

pub(super) fn shards(count: usize, size: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_le_bytes()[7]
    };
    (0..count).map(|_| (0..size).map(|_| next()).collect()).collect()
}

pub(super) fn encode(
    code: LargeCode,
    isa: Isa,
    size: usize,
    information: &[Option<&[u8]>],
) -> Vec<Vec<u8>> {
    let mut redundancy = vec![vec![0; size]; code.redundancy()];
    LargeEncoder::new(code, size, isa)
        .unwrap()
        .encode(
            |i| information[i],
            |i, offset, piece| redundancy[i][offset..offset + piece.len()].copy_from_slice(piece),
        )
        .unwrap();
    redundancy
}

#[test]
fn basis_is_a_cantor_basis() {
    assert_eq!(BASIS[0], [1, 0]);
    for pair in BASIS.windows(2) {
        assert_eq!(gf16::add(gf16::mul(pair[1], pair[1]), pair[1]), pair[0]);
        assert_eq!(pair[1][0] % 2, 0);
    }
    let elements: std::collections::BTreeSet<_> = (0..1 << 16).map(element).collect();
    assert_eq!(elements.len(), 1 << 16);
    assert!((0..256).all(|number| element(number)[1] == 0));
}

#[test]
fn small_codes_match_the_definition_at_every_level() {
    for information in 1..=20 {
        let given = shards(information, 128, 3);
        let optional: Vec<_> = given.iter().map(|s| Some(&s[..])).collect();
        for redundancy in 1..=17 {
            let defined = definition::encode(&given, redundancy);
            let code = LargeCode::new(information, redundancy).unwrap();
            for isa in Isa::supported() {
                let coded = encode(code, isa, 128, &optional);
                assert_eq!(coded, defined, "{information}+{redundancy} {isa:?}");
            }
        }
    }
}

type Restored = BTreeMap<usize, Vec<u8>>;

const METHODS: [DecodeMethod; 2] = [DecodeMethod::Transform, DecodeMethod::Narrow];

/// Creates a decoder for each level and method.
fn decoders(code: LargeCode, size: usize) -> Vec<LargeDecoder> {
    let levels = Isa::supported().flat_map(|isa| METHODS.map(|method| (isa, method)));
    levels
        .map(|(isa, method)| LargeDecoder::new(code, size, isa).unwrap().with_method(method))
        .collect()
}

fn decode(
    decoder: &mut LargeDecoder,
    size: usize,
    shards: &[Shard<'_>],
    relations: &[Relation<'_>],
    wanted: impl Fn(usize) -> bool,
) -> Result<Restored, CodeError> {
    let mut restored = Restored::new();
    let put = |i, offset: usize, piece: &[u8]| {
        let shard: &mut Vec<u8> = restored.entry(i).or_insert_with(|| vec![0; size]);
        shard[offset..offset + piece.len()].copy_from_slice(piece);
    };
    if relations.is_empty() {
        decoder.decode_wanted(|i| shards[i], wanted, put)?;
    } else {
        decoder.decode_joint(|i| shards[i], relations, wanted, put)?;
    }
    Ok(restored)
}

/// Returns `0..n` shuffled by `seed`.
fn order(n: usize, seed: u64) -> Vec<usize> {
    let keys = shards(n, 8, seed);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&i| &keys[i]);
    order
}

/// Creates a codeword whose information shards from `used` on are zeros.
fn code_word(code: LargeCode, size: usize, used: usize, seed: u64) -> Vec<Option<Vec<u8>>> {
    let given = shards(used.min(code.information()), size, seed);
    let mut all: Vec<_> = given.into_iter().map(Some).collect();
    all.resize(code.information(), None);
    let optional: Vec<_> = all.iter().map(Option::as_deref).collect();
    let coded = encode(code, Isa::current(), size, &optional);
    all.extend(coded.into_iter().map(Some));
    all
}

fn without<'a>(all: &'a [Option<Vec<u8>>], lost: &[usize]) -> Vec<Shard<'a>> {
    let mut given: Vec<Shard<'_>> =
        all.iter().map(|s| s.as_ref().map_or(Shard::Zero, |s| Shard::Given(s))).collect();
    lost.iter().for_each(|&i| given[i] = Shard::Lost);
    given
}

/// Checks that every decoder reconstructs `lost`: all of it, and a single shard of it.
fn check_losses(
    decoders: &mut [LargeDecoder],
    size: usize,
    all: &[Option<Vec<u8>>],
    lost: &[usize],
) {
    let given = without(all, lost);
    let zeros = vec![0; size];
    let expected: Restored =
        lost.iter().map(|&i| (i, all[i].as_ref().unwrap_or(&zeros).clone())).collect();
    for decoder in decoders {
        let restored = decode(decoder, size, &given, &[], |_| true).unwrap();
        assert_eq!(restored, expected, "{decoder:?} lost {lost:?}");
        if let Some(&one) = lost.last() {
            let restored = decode(decoder, size, &given, &[], |i| i == one).unwrap();
            assert_eq!(restored.len(), 1);
            assert_eq!(restored[&one], expected[&one], "{decoder:?} lost {lost:?}");
        }
    }
}

#[test]
fn every_loss_of_small_codes_is_reconstructed() {
    for (information, redundancy) in [(1, 1), (1, 2), (2, 3), (4, 3), (5, 4), (6, 2), (3, 5)] {
        let code = LargeCode::new(information, redundancy).unwrap();
        let all = code_word(code, 128, information, 5);
        let mut decoders = decoders(code, 128);
        for mask in 0u32..1 << all.len() {
            let lost: Vec<usize> = (0..all.len()).filter(|i| mask >> i & 1 == 1).collect();
            if lost.len() <= redundancy {
                check_losses(&mut decoders, 128, &all, &lost);
            } else {
                let (have, need) = (all.len() - lost.len(), information);
                let given = without(&all, &lost);
                for decoder in &mut decoders {
                    let result = decode(decoder, 128, &given, &[], |_| true);
                    assert_eq!(result, Err(CodeError::TooFewShards { have, need }));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_loss_up_to_the_redundancy_is_reconstructed(
        information in 1usize..300, redundancy in 1usize..80, blocks in 1usize..3, seed: u64,
        used in 0usize..300, lost in 0usize..80,
    ) {
        let (code, size) = (LargeCode::new(information, redundancy).unwrap(), 128 * blocks);
        let all = code_word(code, size, used, seed);
        let order = order(all.len(), seed ^ 77);
        let mut decoders = decoders(code, size);
        check_losses(&mut decoders, size, &all, &order[..lost.min(redundancy)]);
        check_losses(&mut decoders, size, &all, &order[..redundancy]);
        // The first and the last shards, as when whole tracks are lost.
        let first: Vec<usize> = (0..redundancy.min(information)).collect();
        check_losses(&mut decoders, size, &all, &first);
        let last: Vec<usize> = (information..all.len()).collect();
        check_losses(&mut decoders, size, &all, &last);

        let given = without(&all, &order[..=redundancy]);
        let expected = CodeError::TooFewShards { have: information - 1, need: information };
        prop_assert_eq!(expected.kind(), ErrorKind::Corrupt);
        for decoder in &mut decoders {
            let result = decode(decoder, size, &given, &[], |_| true);
            prop_assert_eq!(result, Err(expected.clone()));
        }
    }

    #[test]
    fn codes_match_the_definition_at_every_level(
        information in 1usize..140, redundancy in 1usize..70, seed: u64, used in 0usize..200,
    ) {
        let mut given = shards(information, 128, seed);
        given.iter_mut().skip(used).for_each(|shard| shard.fill(0));
        let optional: Vec<_> =
            given.iter().enumerate().map(|(i, s)| (i < used).then_some(&s[..])).collect();
        let code = LargeCode::new(information, redundancy).unwrap();
        let defined = definition::encode(&given, redundancy);
        for isa in Isa::supported() {
            prop_assert_eq!(&encode(code, isa, 128, &optional), &defined, "{:?}", isa);
        }
    }

    #[test]
    fn streams_and_column_slices_match_the_whole(
        information in 1usize..100, redundancy in 1usize..40, blocks in 2usize..200, seed: u64,
        used in 0usize..100, cut in 1usize..199,
    ) {
        let (code, size) = (LargeCode::new(information, redundancy).unwrap(), 128 * blocks);
        let (used, cut) = (used.min(information), 128 * cut.min(blocks - 1));
        let given = shards(used, size, seed);
        let mut optional: Vec<_> = given.iter().map(|s| Some(&s[..])).collect();
        optional.resize(information, None);
        if used > 2 {
            optional[used / 2] = None;
        }
        let whole = encode(code, Isa::current(), size, &optional);
        for columns in [0..size, 0..cut, cut..size] {
            let mut stream = code.stream_encoder(columns.len()).unwrap();
            // The second round shows that the first leaves no state behind.
            for count in [used, information] {
                for shard in &optional[..count] {
                    stream.push(shard.map(|shard| &shard[columns.clone()])).unwrap();
                }
                stream.finish();
                for (index, whole) in whole.iter().enumerate() {
                    let streamed = stream.redundancy(index).collect::<Vec<_>>().concat();
                    prop_assert_eq!(&streamed[..], &whole[columns.clone()]);
                }
            }
        }
    }
}

/// Returns relations of the first two tracks: each track has a Cauchy code of its own, and these
/// two are lost except for their redundancy.
fn track_terms(sectors: usize, parities: usize) -> Vec<Vec<(usize, u8)>> {
    let byte = |i: usize| u8::try_from(i).unwrap();
    let term = |track: usize, parity: usize, sector: usize| {
        (track * sectors + sector, gf8::inverse(byte(parity) ^ byte(sector + 8)))
    };
    let row = |(track, parity)| (0..sectors).map(|i| term(track, parity, i)).collect();
    (0..2).flat_map(|track| (0..parities).map(move |parity| (track, parity))).map(row).collect()
}

#[test]
fn joint_decoding_uses_the_redundancy_of_tracks() {
    for seed in 0..60u64 {
        let [a, b, c, d] = shards(1, 4, seed)[0][..].try_into().unwrap();
        let (tracks, sectors) = (2 + usize::from(a) % 4, 4 + usize::from(b) % 5);
        let (redundancy, parities) = (1 + usize::from(c) % 7, 1 + usize::from(d) % 3);
        let (information, size) = (tracks * sectors, 256);
        let code = LargeCode::new(information, redundancy).unwrap();
        let all = code_word(code, size, information, seed);
        let terms = track_terms(sectors, parities);
        let values: Vec<_> = terms.iter().map(|terms| sum(terms, &all, size)).collect();
        let relations: Vec<_> = terms
            .iter()
            .zip(&values)
            .map(|(terms, value)| Relation { terms, value: Some(value) })
            .collect();
        let mut lost = order(2 * sectors, seed ^ 5);
        lost.truncate(redundancy + relations.len());
        check_joint(code, size, &all, &relations, parities, &lost);
        // Also with lost redundancy shards; one more than can be decoded is an error.
        if lost.len() == redundancy + relations.len() && redundancy > 1 {
            lost[0] = information + 1;
            check_joint(code, size, &all, &relations, parities, &lost);
            lost.push(information);
            let given = without(&all, &lost);
            let mut decoder = code.decoder(size).unwrap();
            let result = decode(&mut decoder, size, &given, &relations, |_| true);
            let expected = CodeError::TooFewShards { have: information - 1, need: information };
            assert_eq!(result, Err(expected));
        }
    }
}

fn sum(terms: &[(usize, u8)], all: &[Option<Vec<u8>>], size: usize) -> Vec<u8> {
    let mut sum = vec![0; size];
    for (shard, c) in terms {
        for (sum, byte) in sum.iter_mut().zip(all[*shard].iter().flatten()) {
            *sum ^= gf8::mul(*c, *byte);
        }
    }
    sum
}

fn check_joint(
    code: LargeCode,
    size: usize,
    all: &[Option<Vec<u8>>],
    relations: &[Relation<'_>],
    parities: usize,
    lost: &[usize],
) {
    let given = without(all, lost);
    let expected: Restored = lost.iter().map(|&i| (i, all[i].clone().unwrap())).collect();
    let sectors = relations[0].terms.len();
    // The group has to supply what a track lacks beyond its own redundancy.
    let of_track = |track: usize| lost.iter().filter(|&&i| i / sectors == track).count();
    let beyond: usize = (0..2).map(|track| of_track(track).saturating_sub(parities)).sum();
    let group = lost.iter().filter(|&&i| i >= code.information()).count();
    for isa in Isa::supported() {
        let mut decoder = LargeDecoder::new(code, size, isa).unwrap();
        match decode(&mut decoder, size, &given, relations, |_| true) {
            Ok(restored) => assert_eq!(restored, expected, "{code:?} {isa:?} {lost:?}"),
            Err(CodeError::LinearlyDependent { lost, found }) => {
                assert!(found < lost && beyond + group > code.redundancy(), "{code:?} {isa:?}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn large_codes_decode_by_every_path() {
    // 600 losses and 424 unkept points exceed the limit for products computed one by one.
    let (code, size) = (LargeCode::new(3000, 600).unwrap(), 128);
    let all = code_word(code, size, 2900, 9);
    let order = order(all.len(), 10);
    let mut decoders = decoders(code, size);
    for lost in [1, 30, 599, 600] {
        let mut lost = order[..lost].to_vec();
        lost.sort_unstable();
        check_losses(&mut decoders[..2], size, &all, &lost);
        let last = decoders.len() - 2;
        check_losses(&mut decoders[last..], size, &all, &lost);
    }
}

#[test]
fn the_last_points_of_the_field_are_used() {
    let code = LargeCode::new(65_472, 33).unwrap();
    let given = shards(20, 128, 4);
    let places: Vec<usize> = (0..20).map(|i| 65_471 - i * i * 170).collect();
    let mut optional = vec![None; code.information()];
    places.iter().zip(&given).for_each(|(place, shard)| optional[*place] = Some(&shard[..]));
    let coded = encode(code, Isa::current(), 128, &optional);
    for (row, coded) in coded.iter().enumerate() {
        for index in [0, 31, 63] {
            let sum = places.iter().zip(&given).fold([0, 0], |sum, (place, shard)| {
                let factor = definition::coefficient(6, row, *place);
                gf16::add(sum, gf16::mul(factor, definition::symbol(shard, index)))
            });
            assert_eq!(definition::symbol(coded, index), sum);
        }
    }
}

/// 3+2 shards of 128 bytes, byte j of shard i being `37 i + 11 j + j^2` modulo 256.
const GOLDEN: [&str; 2] = [
    "6cf8718757dfb60a8d7b2331bdcd69eddf29cebe2caa94377b47561f0e327eddb83ea308b442a47b\
     d07bac6a694b98a419c595b7b1aa9d7e7b81d9560ef4f112253e381a4a962b17c4e6e523f45ff42b\
     cd3b872cb13752f1bd8190d9c8f4b81b25a33141a65062e64232beacf402853950d808fe77e380e3\
     691ccbcb1c69e380",
    "039330968c60eb1f4ae81ae8ce2a1c1040d2bf5f67259952cca47f76adc55b90f7b502b90f9d19ce\
     77c835133a4c4d3966de44369a05f07bec82505f8de374ff0a95394bd169364243351c3ac778c116\
     9200b60dbaf89f54caa27970abc35d962a6850b0dd4f1f1325c1e715e74510e46f83993f9c0cada6\
     3e5f82825f3ea6ad",
];

#[test]
fn large_code_golden_bytes_do_not_change() {
    let byte = |i: usize, j: usize| (37 * i + 11 * j + j * j).to_le_bytes()[0];
    let given: Vec<Vec<u8>> = (0..3).map(|i| (0..128).map(|j| byte(i, j)).collect()).collect();
    let optional: Vec<_> = given.iter().map(|s| Some(&s[..])).collect();
    let code = LargeCode::new(3, 2).unwrap();
    let hex = |shard: &Vec<u8>| shard.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let coded: Vec<_> = encode(code, Isa::current(), 128, &optional).iter().map(hex).collect();
    assert_eq!(coded, GOLDEN);
}

#[test]
fn bad_input_is_refused_before_any_work() {
    let counts = [(0, 1), (1, 0), (65_535, 2), (65_025, 512), (1, usize::MAX), (usize::MAX, 1)];
    for (information, redundancy) in counts {
        let error = LargeCode::new(information, redundancy).unwrap_err();
        assert_eq!(error, CodeError::Counts { information, redundancy });
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert!(LargeCode::new(65_535, 1).is_ok() && LargeCode::new(32_768, 32_768).is_ok());
    let code = LargeCode::new(3, 2).unwrap();
    for bytes in [0, 1, 64, 127, 192] {
        assert_eq!(code.encoder(bytes).unwrap_err(), CodeError::ShardBlocks { bytes });
        assert_eq!(code.stream_encoder(bytes).unwrap_err(), CodeError::ShardBlocks { bytes });
        assert_eq!(code.decoder(bytes).unwrap_err(), CodeError::ShardBlocks { bytes });
    }
    let nothing = |_: usize, _: usize, _: &[u8]| panic!("nothing is handed out");
    let (good, bad) = ([0; 256], [0; 128]);
    let unequal = CodeError::UnequalShards { index: 2, bytes: 128, expected: 256 };
    let shard = |i| Some(if i == 2 { &bad[..] } else { &good[..] });
    let result = code.encoder(256).unwrap().encode(shard, nothing);
    assert_eq!(result, Err(unequal.clone()));
    let shard = |i| if i == 0 { Shard::Lost } else { shard(i).map_or(Shard::Lost, Shard::Given) };
    assert_eq!(code.decoder(256).unwrap().decode(shard, nothing), Err(unequal.clone()));
    let mut stream = code.stream_encoder(256).unwrap();
    stream.push(Some(&good)).unwrap();
    stream.push(None).unwrap();
    assert_eq!(stream.push(Some(&bad)), Err(unequal));
    stream.push(None).unwrap();
    assert_eq!(stream.push(None), Err(CodeError::ShardCount { have: 4, need: 3 }));

    let joint = |terms: &[(usize, u8)], value: &[u8]| {
        let relation = Relation { terms, value: Some(value) };
        let shard = |i| if i < 3 { Shard::Lost } else { Shard::Zero };
        code.decoder(256).unwrap().decode_joint(shard, &[relation], |_| true, nothing)
    };
    let index = |index| Err(CodeError::Index { index, shards: 5 });
    assert_eq!(joint(&[(5, 1)], &good), index(5));
    assert_eq!(joint(&[(1, 1), (0, 1), (1, 2)], &good), index(1));
    let unequal = CodeError::UnequalShards { index: 5, bytes: 128, expected: 256 };
    assert_eq!(joint(&[(0, 1)], &bad), Err(unequal));
    assert_eq!(joint(&[], &good), Err(CodeError::LinearlyDependent { lost: 3, found: 2 }));
}

#[test]
fn coders_move_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<LargeEncoder>();
    is_send::<crate::LargeStreamEncoder>();
    is_send::<LargeDecoder>();
}

#[test]
fn signatures_commute_with_the_code() {
    let code = LargeCode::new(40, 12).unwrap();
    let given = shards(40, 768, 8);
    let optional: Vec<_> = given.iter().map(|s| Some(&s[..])).collect();
    for (row, coded) in encode(code, Isa::current(), 768, &optional).iter().enumerate() {
        let sum = given.iter().enumerate().fold(Signature::ZERO, |sum, (column, shard)| {
            let term = signature(shard).scale16(definition::coefficient(4, row, column));
            Signature(std::array::from_fn(|i| sum.0[i] ^ term.0[i]))
        });
        assert_eq!(signature(coded), sum);
    }
}
