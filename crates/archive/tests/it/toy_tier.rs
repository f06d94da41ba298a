//! The example of `docs/design/adding-a-tier.md`: a drawer in memory that can be locked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use fulgurite_archive::config::{Home, TierName, TierOptions};
use fulgurite_archive::{ArchiveError, StorageClass};
use futures::stream::{BoxStream, StreamExt as _};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::harness::{Client, config, noise};
use crate::tiers::{moved, wait};

/// A store provided by this program.
#[derive(Debug, Default)]
pub(crate) struct Drawer {
    inside: InMemory,
    is_locked: AtomicBool,
}

impl std::fmt::Display for Drawer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a drawer")
    }
}

impl Drawer {
    /// Returns its tier options.
    pub(crate) fn options(drawer: &Arc<Self>) -> TierOptions {
        let store = Arc::clone(drawer) as Arc<dyn ObjectStore>;
        let url = "drawer:upper".to_owned();
        TierOptions { url, store: Some(store), ..TierOptions::default() }
    }

    fn opened(&self) -> Result<&InMemory> {
        if self.is_locked.load(Ordering::SeqCst) {
            return Err(Error::Generic { store: "drawer", source: "it is locked".into() });
        }
        Ok(&self.inside)
    }
}

#[async_trait]
impl ObjectStore for Drawer {
    async fn put_opts(&self, at: &Path, body: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.opened()?.put_opts(at, body, opts).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.opened()?.put_multipart_opts(at, opts).await
    }

    async fn get_opts(&self, at: &Path, opts: GetOptions) -> Result<GetResult> {
        self.opened()?.get_opts(at, opts).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        match self.opened() {
            Ok(inside) => inside.delete_stream(paths),
            Err(error) => futures::stream::once(async { Err(error) }).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.opened() {
            Ok(inside) => inside.list(prefix),
            Err(error) => futures::stream::once(async { Err(error) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.opened()?.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, opts: CopyOptions) -> Result<()> {
        self.opened()?.copy_opts(from, to, opts).await
    }
}

#[tokio::test]
async fn custom_store_works_as_a_tier() {
    let dir = tempfile::tempdir().unwrap();
    let drawer = Arc::<Drawer>::default();
    let mut config = config(dir.path());
    let name = TierName::new("drawer").unwrap();
    config.classes.assign(StorageClass::GlacierIr, Home::Tier(name.clone()), None).unwrap();
    config.tiers.insert(name, Drawer::options(&drawer));
    let client = Client::open(config).await;

    let body = noise(1, 9 << 20);
    client.put("a", StorageClass::GlacierIr, &body).await.unwrap();
    moved(&client).await;
    assert_eq!(drawer.inside.list(None).count().await, 3, "a body, its entry, and the claim");
    assert!(client.get("a", None).await.unwrap() == body);

    drawer.is_locked.store(true, Ordering::SeqCst);
    let refused = client.get("a", None).await.unwrap_err();
    assert!(matches!(refused, ArchiveError::TierUnavailable { .. }), "{refused}");
    assert!(refused.to_string().contains("it is locked"), "{refused}");
    drawer.is_locked.store(false, Ordering::SeqCst);
    assert!(client.get("a", None).await.unwrap() == body);

    client.archive.delete(&client.bucket, &crate::harness::key("a")).await.unwrap();
    wait("the drawer to be empty", async || {
        (drawer.inside.list(None).count().await == 1).then_some(())
    })
    .await;
    client.archive.stop().await.unwrap();
}
