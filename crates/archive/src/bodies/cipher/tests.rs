//! Each frame decrypts on its own, and nothing decrypts but what was written.

use fulgurite_units::ObjectId;
use proptest::prelude::*;

use super::*;

fn body() -> (SecretKey, ObjectId) {
    (SecretKey::from_bytes([7; 32]), ObjectId::from_bytes([9; 16]))
}

fn encrypt(plain: &[u8]) -> Vec<u8> {
    let (key, id) = body();
    let mut out = Vec::new();
    BodyCipher::new(&key, id).encrypt(0, plain, true, &mut out);
    out
}

#[test]
fn each_frame_decrypts_independently() {
    let plain: Vec<u8> = (0..=250).cycle().take(3 * FRAME_BYTES + 11).collect();
    let cipher = encrypt(&plain);
    assert_eq!(cipher.len() as u64, cipher_bytes(plain.len() as u64));
    let (key, id) = body();
    for frame in 0..4 {
        let start = frame * FRAME_CIPHER_BYTES;
        let mut one = cipher[start..cipher.len().min(start + FRAME_CIPHER_BYTES)].to_vec();
        let got = BodyCipher::new(&key, id).decrypt(frame as u64, 4, &mut one).unwrap();
        let end = plain.len().min((frame + 1) * FRAME_BYTES);
        assert_eq!(got, &plain[frame * FRAME_BYTES..end]);
    }
}

#[test]
fn truncation_at_a_frame_boundary_is_detected() {
    let plain = vec![1; 2 * FRAME_BYTES];
    let mut cut = encrypt(&plain)[..FRAME_CIPHER_BYTES].to_vec();
    let (key, id) = body();
    assert!(BodyCipher::new(&key, id).decrypt(0, 1, &mut cut).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn flipped_bit_is_rejected(
        plain in prop::collection::vec(any::<u8>(), 1..3000),
        at: usize,
        bit in 0..8u8,
    ) {
        let mut cipher = encrypt(&plain);
        let at = at % cipher.len();
        cipher[at] ^= 1 << bit;
        let (key, id) = body();
        prop_assert!(BodyCipher::new(&key, id).decrypt(0, 1, &mut cipher).is_err());
    }

    #[test]
    fn entries_open_only_in_their_context(plain: Vec<u8>) {
        let (key, id) = body();
        let sealed = seal_entry(&key, id, &plain).unwrap();
        prop_assert_eq!(sealed.len(), plain.len() + ENTRY_OVERHEAD_BYTES);
        prop_assert_eq!(open_entry(&key, id, &sealed), Some(plain));
        prop_assert_eq!(open_entry(&key, ObjectId::from_bytes([1; 16]), &sealed), None);
        prop_assert_eq!(open_entry(&SecretKey::from_bytes([8; 32]), id, &sealed), None);
    }
}
