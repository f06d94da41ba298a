//! Blobs in a directory that disappears and comes back between any two calls.

use std::fmt;
use std::path::PathBuf;
use std::sync::Mutex;

use object_store::local::LocalFileSystem;
use object_store::{CopyOptions, ListResult, MultipartUpload, PutMultipartOptions, PutResult};

use super::*;

/// A directory that disappears or comes back before a call, in this sequence.
#[derive(Debug)]
struct FlappingDirectory {
    inner: LocalFileSystem,
    folder: PathBuf,
    /// For each of the next calls: whether the directory exists.
    presence: Mutex<Vec<bool>>,
}

impl fmt::Display for FlappingDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FlappingDirectory")
    }
}

impl FlappingDirectory {
    fn call(&self) {
        let mut presence = self.presence.lock().unwrap();
        if presence.is_empty() {
            return;
        }
        let is_present = presence.remove(0);
        drop(presence);
        let away = self.folder.with_extension("away");
        let (from, to) = if is_present { (&away, &self.folder) } else { (&self.folder, &away) };
        if from.exists() && (is_present || !away.exists()) {
            // Like a disk mounted over whatever was written meanwhile.
            let _ = std::fs::remove_dir_all(to);
            std::fs::rename(from, to).unwrap();
        }
    }
}

#[async_trait]
impl ObjectStore for FlappingDirectory {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.call();
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.call();
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.call();
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

#[tokio::test]
async fn missing_directory_never_reports_absent_blobs() {
    // All sequences of four calls, of which some consecutive ones find the directory missing.
    let courses = (0..4).flat_map(|from| (from..=4).map(move |to| (from, to)));
    for (from, to) in courses {
        let course = format!("away for calls {from} to {to}");
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("place");
        std::fs::create_dir(&folder).unwrap();
        let inner = LocalFileSystem::new_with_prefix(&folder).unwrap();
        let store = FlappingDirectory { inner, folder, presence: Mutex::default() };
        let store = Arc::new(store);
        let blobs = BucketBlobs::new(Arc::clone(&store) as Arc<dyn ObjectStore>, Path::default());
        let blobs = blobs.with_marker(true).await.unwrap();
        let (existing, new) = (Key::new("existing").unwrap(), Key::new("a/new").unwrap());
        blobs.create(&existing, Bytes::from_static(b"bytes")).await.unwrap();

        let set = |presence: Vec<bool>| *store.presence.lock().unwrap() = presence;
        let flaps = || set((0..4).map(|call| !(from..to).contains(&call)).collect());
        let back = || {
            set(vec![true]);
            store.call();
        };
        flaps();
        let got = blobs.get(&existing, None).await;
        assert_ne!(got, Err(BlobError::NotFound), "{course}");
        back();
        flaps();
        let head = blobs.head(&existing).await.map(drop);
        assert_ne!(head, Err(BlobError::NotFound), "{course}");
        back();

        flaps();
        let created = blobs.create(&new, Bytes::from_static(b"new")).await;
        back();
        let exists = blobs.get(&new, None).await.is_ok();
        assert!(exists || created.is_err(), "{course}: {created:?}");
        let is_certain = matches!(created, Err(BlobError::Unavailable(_)));
        assert!(!exists || !is_certain, "{course}: {created:?}");

        flaps();
        let deleted = blobs.delete(&existing).await;
        back();
        let exists = blobs.get(&existing, None).await.is_ok();
        assert_eq!(deleted.is_ok(), !exists, "{course}: {deleted:?}");
    }
}
