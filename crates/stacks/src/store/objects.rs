//! The rack as a store of objects: `object_store`'s trait over the index and the blobs.
//!
//! What is asked of names alone (head, list, delete, what is small) is the index's, and wakes no
//! disk.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_units::{Due, UnixTime};
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::{DELIMITER, Path};
use object_store::{
    Attribute, Attributes, CopyMode, CopyOptions, GetOptions, GetResult, GetResultPayload,
    ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, UpdateVersion,
};

use super::reading::Body;
use super::staging::Source;
use super::upload::Upload;
use super::{Inner, RackStore};
use crate::StacksError;
use crate::format::bytes;
use crate::index::{Content, From, Mode, ObjectRow};
use crate::limits::STAGED_PIECE_BYTES;

/// How this store is called in errors.
const STORE: &str = "Rack";

type Answer<T> = object_store::Result<T>;

impl fmt::Display for RackStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rack({})", self.inner().rack())
    }
}

#[async_trait]
impl ObjectStore for RackStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Answer<PutResult> {
        let mode = mode(&options.mode, location)?;
        let length = bytes(payload.content_length());
        let source = Source::memory(payload);
        let put =
            self.inner().put(location.as_ref(), source, length, names(&options.attributes), mode);
        put.await.map(put_result).map_err(|error| told(location, error))
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Answer<Box<dyn MultipartUpload>> {
        let upload =
            Upload::new(Arc::clone(self.inner()), location.clone(), names(&options.attributes));
        Ok(Box::new(upload))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Answer<GetResult> {
        let row = self.inner().object(location.as_ref()).map_err(|error| told(location, error))?;
        let meta = meta(location.clone(), &row);
        options.check_preconditions(&meta)?;
        let length = meta.size;
        let range = match &options.range {
            Some(range) => range.as_range(length).map_err(|error| generic(Box::new(error)))?,
            None => 0..length,
        };
        let attributes = attributes(&row.attributes);
        let payload = if options.head || range.is_empty() {
            stream::empty().boxed()
        } else {
            let due = options.extensions.get::<Due>().map(|due| due.0);
            self.body(location, row, range.clone(), due).await?
        };
        let payload = GetResultPayload::Stream(payload);
        Ok(GetResult { payload, meta, range, attributes, extensions: Default::default() })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Answer<Path>>,
    ) -> BoxStream<'static, Answer<Path>> {
        let inner = Arc::clone(self.inner());
        let delete = move |location: Answer<Path>| {
            let inner = Arc::clone(&inner);
            async move {
                let location = location?;
                let deleted = inner.delete(location.as_ref()).await;
                deleted.map_err(|error| told(&location, error))?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Answer<ObjectMeta>> {
        self.pages(prefix, From::Start)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Answer<ObjectMeta>> {
        self.pages(prefix, From::After(offset.as_ref().to_owned()))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Answer<ListResult> {
        let prefix = folder(prefix);
        let (mut objects, mut folders) = (Vec::new(), BTreeSet::new());
        let mut from = From::Start;
        loop {
            let page = self.inner().page(&prefix, &from).map_err(plain)?;
            let Some((last, _)) = page.last() else { break };
            from = From::After(last.clone());
            for (key, row) in page {
                let rest = key.get(prefix.len()..).unwrap_or_default();
                let Some((name, _)) = rest.split_once(DELIMITER) else {
                    objects.push(meta(path(&key)?, &row));
                    continue;
                };
                // All that lies below it is told by its name: go on behind that.
                let below = format!("{prefix}{name}");
                folders.insert(path(&below)?);
                from = From::AtOrAfter(behind(&below));
                break;
            }
        }
        let common_prefixes = folders.into_iter().collect();
        Ok(ListResult { objects, common_prefixes, extensions: Default::default() })
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Answer<()> {
        let mode = match options.mode {
            CopyMode::Overwrite => Mode::Overwrite,
            CopyMode::Create => Mode::Create,
        };
        let row = self.inner().object(from.as_ref()).map_err(|error| told(from, error))?;
        let named = row.attributes.clone();
        let length = row.length.get();
        let source = match &row.content {
            Content::Inline(bytes) => Source::memory([Bytes::from(bytes.clone())]),
            // Bytes of their own: a copy outlives what it was made of, and is found on the disks by
            // its name.
            Content::Blob { .. } => self.staged(from, row, length).await?,
        };
        let put = self.inner().put(to.as_ref(), source, length, named, mode);
        put.await.map(|_| ()).map_err(|error| told(to, error))
    }
}

impl RackStore {
    /// The bytes `range` of an object.
    async fn body(
        &self,
        location: &Path,
        row: ObjectRow,
        range: Range<u64>,
        due: Option<UnixTime>,
    ) -> Answer<BoxStream<'static, Answer<Bytes>>> {
        match row.content {
            Content::Inline(bytes) => {
                let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
                let part = Bytes::from(bytes).slice(at(range.start)..at(range.end));
                Ok(stream::once(async move { Ok(part) }).boxed())
            }
            Content::Blob { group, blob } => {
                let (inner, key) = (Arc::clone(self.inner()), location.as_ref());
                let body = Body::begin(inner, key, group, blob, range, due);
                let of = location.clone();
                let mut body = body.map_err(|error| told(&of, error))?;
                // What is refused is refused before anything is given.
                let first = body.next().await;
                let first = first.transpose().map_err(|error| told(&of, error))?;
                let first = stream::iter(first.map(Ok));
                let rest = body.map_err(move |error| told(&of, error));
                Ok(first.chain(rest).boxed())
            }
        }
    }

    /// The whole of an object in a staged file.
    async fn staged(&self, location: &Path, row: ObjectRow, length: u64) -> Answer<Source> {
        let mut body = self.body(location, row, 0..length, None).await?;
        let (mut waiting, mut held) = (Vec::new(), 0);
        let mut files = Vec::new();
        while let Some(piece) = body.try_next().await? {
            held += piece.len();
            waiting.push(piece);
            if held >= STAGED_PIECE_BYTES {
                files.push(self.inner().stage(std::mem::take(&mut waiting)).await.map_err(plain)?);
                held = 0;
            }
        }
        files.push(self.inner().stage(waiting).await.map_err(plain)?);
        Ok(Source::staged(files))
    }

    fn pages(&self, prefix: Option<&Path>, from: From) -> BoxStream<'static, Answer<ObjectMeta>> {
        let (inner, prefix) = (Arc::clone(self.inner()), folder(prefix));
        let page = move |from: Option<From>| {
            let (inner, prefix) = (Arc::clone(&inner), prefix.clone());
            async move {
                let Some(from) = from else { return Ok(None) };
                let page = inner.page(&prefix, &from).map_err(plain)?;
                let next = page.last().map(|(last, _)| From::After(last.clone()));
                let metas: Vec<_> =
                    page.into_iter().map(|(key, row)| Ok(meta(path(&key)?, &row))).collect();
                Ok::<_, object_store::Error>(Some((stream::iter(metas), next)))
            }
        };
        stream::try_unfold(Some(from), page).try_flatten().boxed()
    }
}

/// The beginning of keys below a prefix, which is a folder and no beginning of a name.
fn folder(prefix: Option<&Path>) -> String {
    match prefix.map(AsRef::as_ref) {
        None | Some("") => String::new(),
        Some(prefix) => format!("{prefix}{DELIMITER}"),
    }
}

/// The first bytes behind all keys of a folder.
fn behind(folder: &str) -> Vec<u8> {
    let mut bytes = folder.as_bytes().to_vec();
    bytes.push(DELIMITER.as_bytes()[0] + 1);
    bytes
}

fn path(key: &str) -> Answer<Path> {
    Ok(Path::parse(key)?)
}

fn meta(location: Path, row: &ObjectRow) -> ObjectMeta {
    let modified = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(row.modified_ms);
    ObjectMeta {
        location,
        last_modified: modified.into(),
        size: row.length.get(),
        e_tag: Some(tag(row.sequence)),
        version: None,
    }
}

fn tag(sequence: u64) -> String {
    format!("\"{sequence}\"")
}

pub(super) fn put_result(sequence: u64) -> PutResult {
    PutResult { e_tag: Some(tag(sequence)), version: None, extensions: Default::default() }
}

fn mode(mode: &PutMode, location: &Path) -> Answer<Mode> {
    match mode {
        PutMode::Overwrite => Ok(Mode::Overwrite),
        PutMode::Create => Ok(Mode::Create),
        PutMode::Update(UpdateVersion { e_tag, .. }) => {
            let tag = e_tag.as_deref().map(|tag| tag.trim_matches('"').parse());
            match tag {
                Some(Ok(sequence)) => Ok(Mode::Update(sequence)),
                Some(Err(_)) => {
                    let error = StacksError::Changed { key: location.to_string() };
                    Err(told(location, error))
                }
                None => {
                    let what = "an update names the entity tag that it expects".to_owned();
                    Err(plain(StacksError::Invalid { what }))
                }
            }
        }
    }
}

/// Attributes as they are kept, in the order of their names.
fn names(attributes: &Attributes) -> Vec<(String, String)> {
    let named = attributes.iter().filter_map(|(attribute, value)| {
        let name = match attribute {
            Attribute::ContentDisposition => "content-disposition".to_owned(),
            Attribute::ContentEncoding => "content-encoding".to_owned(),
            Attribute::ContentLanguage => "content-language".to_owned(),
            Attribute::ContentType => "content-type".to_owned(),
            Attribute::CacheControl => "cache-control".to_owned(),
            Attribute::StorageClass => "storage-class".to_owned(),
            Attribute::Metadata(name) => format!("{METADATA}{name}"),
            // The enumeration is not ours, and may grow.
            _ => return None,
        };
        Some((name, value.as_ref().to_owned()))
    });
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}

const METADATA: &str = "metadata-";

fn attributes(names: &[(String, String)]) -> Attributes {
    let attribute = |name: &str| match name {
        "content-disposition" => Some(Attribute::ContentDisposition),
        "content-encoding" => Some(Attribute::ContentEncoding),
        "content-language" => Some(Attribute::ContentLanguage),
        "content-type" => Some(Attribute::ContentType),
        "cache-control" => Some(Attribute::CacheControl),
        "storage-class" => Some(Attribute::StorageClass),
        _ => name.strip_prefix(METADATA).map(|name| Attribute::Metadata(name.to_owned().into())),
    };
    let all = names.iter().filter_map(|(name, value)| Some((attribute(name)?, value.clone())));
    all.collect()
}

/// An error of ours about an object, as one of `object_store`.
pub(super) fn told(location: &Path, error: StacksError) -> object_store::Error {
    let path = location.to_string();
    if matches!(error, StacksError::NotFound { .. }) {
        return object_store::Error::NotFound { path, source: Box::new(error) };
    }
    if matches!(error, StacksError::Exists { .. }) {
        return object_store::Error::AlreadyExists { path, source: Box::new(error) };
    }
    if matches!(error, StacksError::Changed { .. }) {
        return object_store::Error::Precondition { path, source: Box::new(error) };
    }
    plain(error)
}

fn plain(error: StacksError) -> object_store::Error {
    generic(Box::new(error))
}

fn generic(source: Box<dyn std::error::Error + Send + Sync>) -> object_store::Error {
    object_store::Error::Generic { store: STORE, source }
}

impl Inner {
    fn page(&self, prefix: &str, from: &From) -> crate::Result<Vec<(String, ObjectRow)>> {
        self.index().objects(prefix, from)
    }
}
