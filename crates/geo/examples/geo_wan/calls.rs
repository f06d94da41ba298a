//! The measured operations: puts and gets by the store, the same in series, and the bytes alone.

use bytes::Bytes;
use fulgurite_geo::objects::limits::BLOB_TRIES;
use fulgurite_geo::stores::fragment::{ChunkCode, Header, PutId, encode, payload};
use fulgurite_geo::stores::{BlobError, Certainty, Key};
use fulgurite_units::{ByteCount, UnixTime};
use futures::future::{join_all, try_join_all};
use object_store::path::Path;
use object_store::{MultipartUpload as _, ObjectStoreExt as _, PutPayload};

use crate::world::{Program, SITES};

/// Number of data fragments and of parity fragments.
const CODE: (u8, u8) = (2, 1);

pub(crate) async fn put(program: &Program, key: &str, bytes: &Bytes) {
    program.store.put(&Path::from(key), PutPayload::from(bytes.clone())).await.unwrap();
}

/// Puts the bytes first, and agrees on the version once they are written.
pub(crate) async fn put_in_series(program: &Program, key: &str, bytes: &Bytes) {
    let mut upload = program.store.put_multipart(&Path::from(key)).await.unwrap();
    upload.put_part(PutPayload::from(bytes.clone())).await.unwrap();
    upload.complete().await.unwrap();
}

pub(crate) async fn get(program: &Program, key: &str, bytes: &Bytes) {
    let got = program.store.get(&Path::from(key)).await.unwrap().bytes().await.unwrap();
    assert_eq!(got, *bytes);
}

/// Finds the version first, and then gets its bytes.
pub(crate) async fn get_in_series(
    program: &Program,
    key: &str,
    (bare, bytes): (&BareFragments, &Bytes),
) {
    program.store.head(&Path::from(key)).await.unwrap();
    bare.get(program, bytes).await;
}

/// Fragments of an object without a row.
pub(crate) struct BareFragments {
    number: u64,
}

impl BareFragments {
    pub(crate) fn new(number: u64) -> Self {
        Self { number }
    }

    /// Returns the site of a fragment; each object starts at another site.
    fn site(&self, index: usize) -> usize {
        usize::try_from(self.number).unwrap().wrapping_add(index) % SITES
    }

    fn key(&self, program: &Program, index: usize) -> Key {
        let site = program.site;
        Key::new(format!("alone/{site}/{}.{index:02x}", self.number)).unwrap()
    }

    fn header(&self, bytes: usize, index: usize) -> Header {
        let chunk_bytes = u32::try_from(bytes).unwrap();
        Header {
            put: PutId::new(self.number.into()),
            object: b"alone".to_vec(),
            object_bytes: ByteCount::new(bytes as u64),
            chunk_offset: ByteCount::new(0),
            chunk: 0,
            chunk_bytes,
            fragment: u8::try_from(index).unwrap(),
            data: CODE.0,
            parity: CODE.1,
            payload_bytes: chunk_bytes.div_ceil(u32::from(CODE.0)),
            time: UnixTime::from_millis(1),
        }
    }

    /// Encodes the bytes and writes a fragment to each site.
    pub(crate) async fn put(&self, program: &Program, bytes: &Bytes) {
        let code = ChunkCode::new(CODE.0, CODE.1).unwrap();
        let writes = code.encode(bytes).into_iter().enumerate().map(|(index, payload)| {
            let blob = encode(&self.header(bytes.len(), index), &payload).unwrap();
            let blobs = &program.blobs[self.site(index)];
            let (key, blob) = (self.key(program, index), Bytes::from(blob));
            async move {
                let written = with_retries(|| blobs.create(&key, blob.clone())).await;
                // It was written, and the answer was lost.
                if matches!(written, Err(BlobError::Exists)) { Ok(()) } else { written }
            }
        });
        try_join_all(writes).await.unwrap();
    }

    /// Reads the two nearest fragments and decodes the bytes.
    pub(crate) async fn get(&self, program: &Program, bytes: &Bytes) {
        let code = ChunkCode::new(CODE.0, CODE.1).unwrap();
        let near = nearest(program);
        let sites = [program.site, near];
        let indices = (0..SITES).filter(|index| sites.contains(&self.site(*index)));
        let reads = indices.map(|index| async move {
            let header = self.header(bytes.len(), index);
            let start = header.bytes() as u64;
            let stored = fulgurite_geo::stores::fragment::stored_bytes(header.payload_bytes);
            let range = start..start + stored;
            let blobs = &program.blobs[self.site(index)];
            let key = self.key(program, index);
            let stored = with_retries(|| blobs.get(&key, Some(range.clone()))).await.unwrap();
            let all = 0..header.payload_bytes;
            let payload = payload(&header.place(), header.payload_bytes, all, &stored).unwrap();
            (index, payload)
        });
        let read = join_all(reads).await;
        let available: Vec<_> = read.iter().map(|(index, bytes)| (*index, &**bytes)).collect();
        let decoded = code.decode(u32::try_from(bytes.len()).unwrap(), &available).unwrap();
        assert_eq!(decoded, *bytes);
    }
}

/// Retries a call that may not have been executed, as often as the store does: packet loss breaks
/// connections.
async fn with_retries<T, F>(call: impl Fn() -> F) -> Result<T, BlobError>
where
    F: Future<Output = Result<T, BlobError>>,
{
    let mut done = call().await;
    for _ in 1..BLOB_TRIES {
        match &done {
            Err(error) if error.certainty() != Certainty::Refused => done = call().await,
            Ok(_) | Err(_) => break,
        }
    }
    done
}

/// Returns the site nearest to a program's own, by its latency.
fn nearest(program: &Program) -> usize {
    let sites = program.store.snapshot().sites;
    let others = (0..SITES).filter(|site| *site != program.site);
    others.min_by(|a, b| sites[*a].row_ms.total_cmp(&sites[*b].row_ms)).unwrap()
}
