//! The fuzz checks on seeded bytes: noise, and encoded samples with a few bytes changed.
//! `FULGURITE_TEST_SEED` repeats or varies a run.

use fulgurite_units::{ByteCount, Seed, UnixTime};

use super::*;
use crate::stores::fragment::{Header, PutId};
use crate::stores::{Row, Tag};

#[expect(clippy::disallowed_methods, reason = "a test repeats a seed that it printed")]
fn seed() -> u64 {
    std::env::var("FULGURITE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// Runs a check on each sample with up to four bytes changed, cut or repeated, many times, and on
/// noise.
fn vary(samples: &[Vec<u8>], check: fn(&[u8])) {
    let mut random = Seed::new(seed()).child(b"outside").stream();
    let below = |random: &mut fulgurite_units::RandomStream, bound: usize| {
        usize::try_from(random.below(u64::try_from(bound).unwrap())).unwrap()
    };
    for round in 0..4000 {
        let mut bytes = match samples.get(round % (samples.len() + 1)) {
            Some(sample) => sample.clone(),
            None => vec![0; below(&mut random, 200)],
        };
        if round % (samples.len() + 1) == samples.len() {
            random.fill(&mut bytes);
        }
        for _ in 0..random.below(5) {
            if bytes.is_empty() {
                break;
            }
            let index = below(&mut random, bytes.len());
            match random.below(3) {
                0 => bytes[index] ^= 1 << random.below(8),
                1 => bytes.truncate(index),
                _ => bytes.insert(index, bytes[index]),
            }
        }
        check(&bytes);
    }
}

#[test]
fn fragments() {
    let header = Header {
        put: PutId::new(3),
        object: b"an object".to_vec(),
        object_bytes: ByteCount::new(100),
        chunk_offset: ByteCount::new(0),
        chunk: 0,
        chunk_bytes: 100,
        fragment: 2,
        data: 2,
        parity: 1,
        payload_bytes: 50,
        time: UnixTime::from_millis(9),
    };
    vary(&[fragment::encode(&header, &[5; 50]).unwrap()], fragment);
}

#[test]
fn row_files() {
    let row = Row { bytes: b"a row"[..].into(), tag: Tag::new(vec![7; 16]) };
    vary(&[directory::encode(&Key::new("a/b").unwrap(), &row)], row_file);
}

#[test]
fn addresses() {
    let samples = [
        "dir:///a/b%20c",
        "mem://name",
        "s3://bucket/prefix?endpoint=http://localhost:9000&region=us-east-1",
        "gs://bucket",
        "az://container/prefix?account=a&account_key_env=KEY",
        "postgres://user@host:5432/db?table=rows&sslmode=disable",
        "etcd://one:2379,two/prefix?tls=off",
    ];
    for sample in samples {
        let address: Address = sample.parse().unwrap();
        assert_eq!(address.to_string().parse::<Address>(), Ok(address));
    }
    vary(&samples.map(|sample| sample.as_bytes().to_vec()), address);
}
