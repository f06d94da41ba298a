//! A store that ignores preconditions, or denies access, is reported and never claimed.

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    PutMultipartOptions, PutResult,
};

use super::*;

/// The behavior of a store in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreBehavior {
    /// Works as it should.
    Obeys,
    /// Overwrites, whatever the precondition.
    Overwrites,
    /// Reads, and denies every write.
    DeniesWrites,
    /// Denies everything.
    Denies,
}

#[derive(Debug)]
struct Store {
    inner: InMemory,
    behavior: StoreBehavior,
}

impl std::fmt::Display for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.behavior)
    }
}

impl Store {
    fn new(behavior: StoreBehavior) -> Self {
        Self { inner: InMemory::new(), behavior }
    }

    fn deny(path: &Path) -> Error {
        let source = "not with this key".into();
        Error::PermissionDenied { path: path.to_string(), source }
    }
}

#[async_trait]
impl ObjectStore for Store {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut opts: PutOptions,
    ) -> object_store::Result<PutResult> {
        match self.behavior {
            StoreBehavior::Obeys => {}
            StoreBehavior::Overwrites => opts.mode = PutMode::Overwrite,
            StoreBehavior::DeniesWrites | StoreBehavior::Denies => {
                return Err(Self::deny(location));
            }
        }
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        if self.behavior == StoreBehavior::Denies {
            return Err(Self::deny(location));
        }
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn archive(number: u8) -> ArchiveId {
    ArchiveId::from_bytes([number; 16])
}

async fn take_as(store: &Store, number: u8, is_first: bool) -> Result<(), String> {
    take(store, &Path::from("below"), archive(number), "cold", is_first).await
}

#[tokio::test]
async fn first_claim_wins() {
    let store = Store::new(StoreBehavior::Obeys);
    take_as(&store, 1, true).await.unwrap();
    for is_first in [true, false] {
        take_as(&store, 1, is_first).await.unwrap();
        let refused = take_as(&store, 2, is_first).await.unwrap_err();
        assert!(refused.contains(&archive(1).to_string()), "{refused}");
    }
    confirm(&store, &Path::from("below"), archive(1), "cold").await.unwrap();
    let refused = confirm(&store, &Path::from("below"), archive(1), "warm").await.unwrap_err();
    assert!(refused.contains("tier \"cold\""), "{refused}");
    let gone = confirm(&store, &Path::from("elsewhere"), archive(1), "cold").await.unwrap_err();
    assert!(gone.contains("is not there"), "{gone}");
}

#[tokio::test]
async fn claimed_tier_is_not_recreated() {
    let store = Store::new(StoreBehavior::Obeys);
    let refused = take_as(&store, 1, false).await.unwrap_err();
    assert!(refused.contains("is its disk mounted?"), "{refused}");
    assert_eq!(store.inner.list(None).count().await, 0);
}

#[tokio::test]
async fn store_without_conditional_writes_is_refused() {
    let store = Store::new(StoreBehavior::Overwrites);
    for _ in 0..3 {
        let refused = take_as(&store, 1, true).await.unwrap_err();
        assert!(refused.contains("If-None-Match"), "{refused}");
    }
}

#[tokio::test]
async fn denied_access_is_reported() {
    for behavior in [StoreBehavior::DeniesWrites, StoreBehavior::Denies] {
        let refused = take_as(&Store::new(behavior), 1, true).await.unwrap_err();
        assert!(refused.contains("not with this key"), "{behavior:?}: {refused}");
    }
}

#[tokio::test]
async fn unreadable_claim_file_prevents_a_claim() {
    let store = Store::new(StoreBehavior::Obeys);
    store.inner.put(&Path::from("below").join(FILE), "{}".into()).await.unwrap();
    let refused = take_as(&store, 1, true).await.unwrap_err();
    assert!(refused.contains("is damaged"), "{refused}");
}
