//! What must hold of every decoder of outside bytes, whatever the bytes: no panic, and nothing but
//! what was written.
//!
//! Fuzz targets call these with what the fuzzer finds; `crates/codes/tests/decoders.rs` calls them
//! with seeded bytes, on every run of the tests.

use std::cell::RefCell;

use fulgurite_codes::ldpc::decode::{Effort, is_codeword};
use fulgurite_codes::ldpc::{Block, Code, Decoder, Rate};
use fulgurite_codes::sector::{SectorCodec, SectorFormat};
use fulgurite_codes::small::SmallCode;
use fulgurite_codes::symbols::{Alphabet, Axis};
use fulgurite_codes::{CodeError, LargeCode, Shard, signature};

/// Bytes taken one after the other; zeros when they end.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()])) % bound
    }
}

/// The bytes over and over, to the length asked for; zeros if there are none.
fn repeated(bytes: &[u8], length: usize) -> impl Iterator<Item = u8> {
    let bytes = if bytes.is_empty() { &[0] } else { bytes };
    bytes.iter().copied().cycle().take(length)
}

/// Any soft bits: a word that is called converged satisfies every check.
pub(crate) fn ldpc_decode(input: &[u8]) {
    thread_local! {
        static DECODER: RefCell<(Code, Decoder)> = {
            let code = Code::standard(Rate::ALL[2], Block::Bits16k);
            let decoder = Decoder::new(&code);
            RefCell::new((code, decoder))
        };
    }
    DECODER.with_borrow_mut(|(code, decoder)| {
        let soft: Vec<i8> = repeated(input, code.bits()).map(u8::cast_signed).collect();
        let mut word = vec![0; code.bits() / 8];
        let effort = Effort { iterations: 4, ..Effort::default() };
        let outcome = decoder.decode(&soft, effort, &mut word).expect("the lengths fit");
        assert_eq!(outcome.converged, is_codeword(code, &word).expect("the length fits"));
        let short = decoder.decode(&soft[1..], effort, &mut word);
        assert!(matches!(short, Err(CodeError::WordLength { .. })));
    });
}

/// Soft bits of a written sector with anything added: the payload, or none.
pub(crate) fn sector_decode(input: &[u8]) {
    thread_local! {
        static CODECS: RefCell<Vec<SectorCodec>> = const { RefCell::new(Vec::new()) };
    }
    CODECS.with_borrow_mut(|codecs| {
        if codecs.is_empty() {
            codecs.extend((1..=8).map(|bits| {
                let format = SectorFormat {
                    rate: Rate::ALL[2],
                    block: Block::Bits16k,
                    alphabet: Alphabet::new(Axis::Ordered { bits }).expect("up to eight bits"),
                    payload_bytes: 300,
                    header_bytes: 16,
                    row_voxels: 40,
                };
                SectorCodec::new(format).expect("the format is one").with_iterations(4)
            }));
        }
        let mut input = Input(input);
        let codec = &mut codecs[input.below(8)];
        let (header, payload) = ([input.byte(); 16], [input.byte(); 300]);
        let mut symbols = vec![0; codec.voxels()];
        codec.encode(&header, &payload, &mut symbols).expect("the lengths fit");
        let alphabet = codec.format().alphabet.clone();
        let bits = symbols.iter().flat_map(|symbol| {
            let label = alphabet.label(*symbol);
            (0..alphabet.bits()).map(move |bit| label >> bit & 1 == 1)
        });
        let added = repeated(input.0, codec.voxels() * alphabet.bits());
        let soft: Vec<i8> = bits
            .zip(added)
            .map(|(bit, added)| (if bit { -9i8 } else { 9 }).saturating_add(added.cast_signed()))
            .collect();
        let decoded = codec.decode(&header, &soft).expect("the lengths fit");
        assert_eq!(decoded.payload.is_some(), decoded.report.failure.is_none());
        if let Some(found) = decoded.payload {
            assert_eq!(found, payload);
            assert_eq!(decoded.report.payload_signature, Some(signature(&payload)));
        }
        let mut other = header;
        other[5] ^= 1;
        let decoded = codec.decode(&other, &soft).expect("the lengths fit");
        assert_eq!(decoded.payload, None, "the header is another");
    });
}

/// Any shards given, any wanted, of a small code: the bytes written, or an error.
pub(crate) fn small_decode(input: &[u8]) {
    const BYTES: usize = 96;
    let mut input = Input(input);
    let (information, redundancy) = (1 + input.below(40), input.below(20));
    let Ok(code) = SmallCode::new(information, redundancy) else { return };
    let shards = code.shards();
    let mut stored: Vec<[u8; BYTES]> =
        (0..shards).map(|_| std::array::from_fn(|_| input.byte())).collect();
    let (written, parity) = stored.split_at_mut(information);
    code.encode(written, parity).expect("the shapes fit");
    let mut any = |bound: usize| -> Vec<usize> {
        (0..input.below(bound)).map(|_| input.below(shards + 1)).collect()
    };
    let (mut given, wanted) = (any(2 * shards), any(8));
    if input.byte() % 4 > 0 {
        given.sort_unstable();
        given.dedup();
        given.retain(|index| *index < shards);
    }
    let sources: Vec<(usize, &[u8])> =
        given.iter().map(|index| (*index, &stored[index % shards][..])).collect();
    let mut found = vec![[0; BYTES]; wanted.len()];
    let mut outputs: Vec<(usize, &mut [u8])> =
        wanted.iter().copied().zip(found.iter_mut().map(|found| &mut found[..])).collect();
    if code.reconstruct(&sources, &mut outputs).is_ok() {
        assert!(given.len() >= information, "{} of {information}", given.len());
        for (index, found) in wanted.iter().zip(found) {
            assert_eq!(found, stored[*index], "shard {index}");
        }
    }
}

/// Any shards lost, any wanted, of a large code: the bytes written, or an error.
pub(crate) fn large_decode(input: &[u8]) {
    const BYTES: usize = 128;
    let mut input = Input(input);
    let (information, redundancy) = (1 + input.below(300), 1 + input.below(40));
    let Ok(code) = LargeCode::new(information, redundancy) else { return };
    let mut stored = vec![[0u8; BYTES]; information + redundancy];
    for shard in &mut stored[..information] {
        *shard = std::array::from_fn(|_| input.byte());
    }
    let (written, parity) = stored.split_at_mut(information);
    code.encoder(BYTES)
        .and_then(|mut encoder| {
            encoder.encode(
                |index| Some(&written[index][..]),
                |index, offset, bytes| {
                    parity[index][offset..][..bytes.len()].copy_from_slice(bytes)
                },
            )
        })
        .expect("the shapes fit");
    let mut is_lost = vec![false; stored.len()];
    for _ in 0..input.below(redundancy + 4) {
        is_lost[input.below(information + redundancy)] = true;
    }
    let (some, every) = (input.below(5), input.byte() % 2 == 0);
    let is_wanted = |index: usize| every || index % 5 == some;
    let mut found = vec![None; stored.len()];
    let mut decoder = code.decoder(BYTES).expect("the size fits");
    let decoded = decoder.decode_wanted(
        |index| if is_lost[index] { Shard::Lost } else { Shard::Given(&stored[index]) },
        is_wanted,
        |index, offset, bytes| {
            let shard = found[index].get_or_insert([0; BYTES]);
            shard[offset..][..bytes.len()].copy_from_slice(bytes);
        },
    );
    let lost = is_lost.iter().filter(|lost| **lost).count();
    assert_eq!(decoded.is_ok(), lost <= redundancy, "{lost} of {redundancy} lost: {decoded:?}");
    for (index, found) in found.into_iter().enumerate() {
        let expected =
            (decoded.is_ok() && is_lost[index] && is_wanted(index)).then_some(stored[index]);
        assert_eq!(found, expected, "shard {index}");
    }
}
