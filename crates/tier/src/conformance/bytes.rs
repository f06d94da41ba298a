//! The bytes of a tier: the suite of `object_store`, and what it leaves open.

use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetRange, MultipartUpload as _, ObjectStore,
    ObjectStoreExt as _, PutMultipartOptions, PutPayload, integration as suite,
};

use super::Abilities;

/// Runs the tests of `object_store`, each group on a new, empty store.
///
/// # Panics
/// When one fails.
pub async fn object_store_suite<S: ObjectStore>(new: impl AsyncFn() -> S, abilities: Abilities) {
    let store = new().await;
    suite::put_get_delete_list(&store).await;
    suite::get_opts(&store).await;
    suite::put_opts(&store, abilities.updates).await;
    if abilities.attributes {
        suite::put_get_attributes(&store).await;
    }
    let store = new().await;
    suite::list_uses_directories_correctly(&store).await;
    suite::list_with_delimiter(&store).await;
    let store = new().await;
    suite::list_with_offset_exclusivity(&store).await;
    let store = new().await;
    suite::rename_and_copy(&store).await;
    suite::copy_if_not_exists(&store).await;
    suite::copy_rename_nonexistent_object(&store).await;
    let missing = suite::get_nonexistent_object(&store, None).await;
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    let store = new().await;
    suite::stream_get(&store).await;
    suite::multipart_race_condition(&store, true).await;
    suite::multipart_out_of_order(&store).await;
}

/// Runs the tests of what the tiers share, on an empty store.
///
/// # Panics
/// When one fails.
pub async fn keyed_store_suite(store: &dyn ObjectStore) {
    uploads_end_once(store).await;
    ranges_are_checked(store).await;
    copies_outlive_their_source(store).await;
    let left: Vec<_> = all_keys(store).await;
    assert!(left.is_empty(), "each test removes its objects: {left:?}");
}

/// An upload of which a part is missing, or which was aborted, leaves nothing and stays ended.
async fn uploads_end_once(store: &dyn ObjectStore) {
    let key = Path::from("folder/upload");
    let begin = || store.put_multipart_opts(&key, PutMultipartOptions::default());
    let part = || PutPayload::from_static(&[7; 100_000]);

    let mut upload = expect(begin().await);
    expect(upload.put_part(part()).await);
    drop(upload.put_part(part()));
    refused(upload.complete().await, "part 1 of the upload was not put");
    refused(upload.complete().await, "the upload has ended");
    refused(upload.put_part(part()).await, "the upload has ended");
    expect(upload.abort().await);

    let mut upload = expect(begin().await);
    expect(upload.put_part(part()).await);
    expect(upload.abort().await);
    refused(upload.complete().await, "the upload has ended");
    assert!(all_keys(store).await.is_empty(), "an upload that was not completed makes no object");

    let mut upload = expect(begin().await);
    expect(upload.complete().await);
    assert_eq!(expect(store.head(&key).await).size, 0, "no parts are an empty object");

    let mut upload = expect(begin().await);
    let (second, first) = {
        let first = upload.put_part(PutPayload::from_static(b"first "));
        (upload.put_part(PutPayload::from_static(b"second")), first)
    };
    expect(second.await);
    expect(first.await);
    expect(upload.complete().await);
    let bytes = expect(expect(store.get(&key).await).bytes().await);
    assert_eq!(&bytes[..], b"first second", "parts are in order of their numbers");
    expect(store.delete(&key).await);
}

/// A range that begins behind the object is an error, and one that ends behind it is cut.
async fn ranges_are_checked(store: &dyn ObjectStore) {
    let key = Path::from("folder/range");
    let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    expect(store.put(&key, bytes.clone().into()).await);
    let get = async |range: GetRange| {
        let options = GetOptions { range: Some(range), ..GetOptions::default() };
        store.get_opts(&key, options).await?.bytes().await
    };
    let size = bytes.len() as u64;
    assert!(get(GetRange::Bounded(size..size + 1)).await.is_err());
    assert!(get(GetRange::Offset(size)).await.is_err());
    for (range, expected) in [
        (GetRange::Bounded(size - 3..size + 9), &bytes[bytes.len() - 3..]),
        (GetRange::Bounded(131_071..131_074), &bytes[131_071..131_074]),
        (GetRange::Offset(size - 1), &bytes[bytes.len() - 1..]),
        (GetRange::Suffix(5), &bytes[bytes.len() - 5..]),
        (GetRange::Suffix(size + 1), &bytes[..]),
    ] {
        let got = expect(get(range.clone()).await);
        assert!(got == expected, "{range:?} of an object of {size} bytes");
    }
    expect(store.delete(&key).await);
}

/// A copy has bytes of its own, and in the mode `Create` it overwrites nothing.
async fn copies_outlive_their_source(store: &dyn ObjectStore) {
    let (from, to) = (Path::from("folder/source"), Path::from("folder/copy"));
    for length in [0, 10, 3_000_000] {
        let bytes: Vec<u8> = (0..length).map(|at: u32| at.to_le_bytes()[0] ^ 0x5a).collect();
        expect(store.put(&from, bytes.clone().into()).await);
        expect(store.copy(&from, &to).await);
        expect(store.delete(&from).await);
        let copied = expect(expect(store.get(&to).await).bytes().await);
        assert!(copied == bytes, "a copy of {length} bytes");
        let onto = CopyOptions::new().with_mode(CopyMode::Create);
        expect(store.put(&from, PutPayload::from_static(b"other")).await);
        let refused = store.copy_opts(&from, &to, onto).await;
        assert!(matches!(refused, Err(Error::AlreadyExists { .. })), "{refused:?}");
        expect(store.delete(&from).await);
        expect(store.delete(&to).await);
    }
}

async fn all_keys(store: &dyn ObjectStore) -> Vec<String> {
    let metas: Vec<_> = expect(store.list(None).try_collect().await);
    metas.into_iter().map(|meta: object_store::ObjectMeta| meta.location.to_string()).collect()
}

fn expect<T>(result: object_store::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn refused<T: std::fmt::Debug>(result: object_store::Result<T>, why: &str) {
    let shown = format!("{result:?}");
    assert!(result.is_err() && shown.contains(why), "{shown}, not: {why}");
}
