//! Reads of chunks from fragments at several sites, some of which are missing.

use std::sync::Arc;

use bytes::Bytes;
use fulgurite_geo::stores::fragment::{
    ChunkCode, ChunkSources, Header, PutId, ReadError, encode, read_range,
};
use fulgurite_geo::stores::{Blob, BucketBlobs, Key};
use fulgurite_units::{ByteCount, Seed, UnixTime};
use object_store::memory::InMemory;
use object_store::path::Path;

/// A chunk of 4 + 2 fragments, each at a site of its own.
struct Chunk {
    bytes: Vec<u8>,
    header: Header,
    fragments: Vec<Vec<u8>>,
    sites: Vec<BucketBlobs>,
}

fn key() -> Key {
    Key::new("fragments/some").unwrap()
}

impl Chunk {
    async fn new() -> Self {
        let mut bytes = vec![0; 700_001];
        Seed::new(5).stream().fill(&mut bytes);
        let chunk_bytes = u32::try_from(bytes.len()).unwrap();
        let code = ChunkCode::new(4, 2).unwrap();
        let header = Header {
            put: PutId::new(77),
            object: b"an object".to_vec(),
            object_bytes: ByteCount::new(10_000_000),
            chunk_offset: ByteCount::new(4_000_000),
            chunk: 1,
            chunk_bytes,
            fragment: 0,
            data: 4,
            parity: 2,
            payload_bytes: code.payload_bytes(chunk_bytes),
            time: UnixTime::from_millis(1),
        };
        let (mut fragments, mut sites) = (Vec::new(), Vec::new());
        for (fragment, payload) in (0..).zip(code.encode(&bytes)) {
            let fragment = encode(&Header { fragment, ..header.clone() }, &payload).unwrap();
            let site = BucketBlobs::new(Arc::new(InMemory::new()), Path::default());
            site.create(&key(), Bytes::from(fragment.clone())).await.unwrap();
            fragments.push(fragment);
            sites.push(site);
        }
        Self { bytes, header, fragments, sites }
    }

    async fn read(&self, begin: u32, end: u32) -> Result<Vec<u8>, ReadError> {
        let blobs = self.sites.iter().map(|site| (site as &dyn Blob, key())).collect();
        read_range(&ChunkSources { header: &self.header, blobs }, begin..end).await
    }

    async fn check(&self, begin: u32, end: u32) {
        let read = self.read(begin, end).await.unwrap();
        let expected = &self.bytes[usize::try_from(begin).unwrap()..usize::try_from(end).unwrap()];
        assert!(read == expected, "{begin} to {end}");
    }

    /// Replaces a fragment by other bytes, or removes it.
    async fn replace(&self, fragment: usize, bytes: Option<Vec<u8>>) {
        self.sites[fragment].delete(&key()).await.unwrap();
        if let Some(bytes) = bytes {
            self.sites[fragment].create(&key(), bytes.into()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn range_is_read_from_its_own_fragments_only() {
    let chunk = Chunk::new().await;
    // Each payload has 175,001 bytes.
    for (begin, end) in
        [(0, 1), (0, 700_001), (65_535, 65_537), (175_000, 175_002), (700_000, 700_001)]
    {
        chunk.check(begin, end).await;
    }
    assert_eq!(chunk.read(9, 9).await.unwrap(), b"");
    assert!(matches!(chunk.read(0, 700_002).await, Err(ReadError::Invalid { .. })));
    // Only the second exists, and is enough.
    for fragment in [0, 2, 3, 4, 5] {
        chunk.replace(fragment, None).await;
    }
    chunk.check(175_001, 350_002).await;
    chunk.check(200_000, 300_000).await;
    let error = chunk.read(175_000, 175_002).await.unwrap_err();
    let expected =
        ReadError::TooFew { chunk: 1, have: 1, need: 4, absent: 5, damaged: 0, unknown: 0 };
    assert_eq!(error, expected);
}

#[tokio::test]
async fn degraded_read_tolerates_bad_fragments() {
    let chunk = Chunk::new().await;
    let whole = chunk.fragments.clone();
    let mut flipped = whole[1].clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let wrong = [
        None,
        Some(flipped),
        // Another fragment of the same chunk, a truncated one, and an empty one.
        Some(whole[3].clone()),
        Some(whole[1][..whole[1].len() - 9].to_vec()),
        Some(vec![]),
    ];
    for bytes in wrong {
        chunk.replace(1, bytes.clone()).await;
        chunk.check(0, 700_001).await;
        chunk.check(340_000, 360_000).await;
        chunk.replace(4, None).await;
        chunk.check(0, 700_001).await;
        // A third missing one is too many.
        chunk.replace(0, None).await;
        let error = chunk.read(0, 700_001).await.unwrap_err();
        let ReadError::TooFew { have: 3, need: 4, absent, damaged, unknown: 0, .. } = error else {
            panic!("{error}");
        };
        assert_eq!((absent, damaged), if bytes.is_none() { (3, 0) } else { (2, 1) });
        for fragment in [0, 4] {
            chunk.replace(fragment, Some(whole[fragment].clone())).await;
        }
    }
}
