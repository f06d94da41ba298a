//! The one implementation of `object_store`'s trait: over what each store of objects brings.
//!
//! ```text
//! object_store!(RackStore, Keyed) --> impl ObjectStore for RackStore
//!                                      |  preconditions, ranges, attributes, errors: here
//!                                      '--> impl KeyedStore for Keyed: index, bytes, durability
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_units::{AffinityGroup, Deadline, ReadBack, UnixTime};
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::{DELIMITER, Path};
use object_store::{
    Attributes, Extensions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::listing::folder;
use crate::upload::{KeyedUpload, Upload};
use crate::{
    Mode, ObjectStoreError, ObjectStoreErrorKind, attribute_pairs, attributes, generic_error, mode,
    to_object_store_error,
};

type StoreResult<T, E> = std::result::Result<T, E>;

/// An object to be put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewObject {
    /// Its key.
    pub key: String,
    /// Its attributes, as names with values, sorted by name.
    pub attributes: Vec<(String, String)>,
    /// What must hold of the object under its key.
    pub mode: Mode,
    /// Objects to be stored together with it, if the caller named a group.
    pub affinity: Option<AffinityGroup>,
}

/// How the bytes of an object are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// When they are promised, if they are.
    pub due: Option<UnixTime>,
    /// Whether the writer reads back what it wrote, rather than a client reading it.
    pub is_read_back: bool,
}

/// A store of objects by key. [`object_store!`](crate::object_store) makes an
/// [`ObjectStore`](object_store::ObjectStore) of it.
#[async_trait]
pub trait KeyedStore: Clone + fmt::Debug + Send + Sync + 'static {
    /// Its error.
    type Error: ObjectStoreError;
    /// An object that was found, with what its bytes need to stay readable.
    type Found: Send + Sync;
    /// A multipart upload.
    type Upload: KeyedUpload<Error = Self::Error>;

    /// Puts an object, durably.
    async fn put(
        &self,
        object: NewObject,
        payload: PutPayload,
    ) -> StoreResult<PutResult, Self::Error>;

    /// Begins a multipart upload.
    async fn begin_upload(&self, object: NewObject) -> StoreResult<Self::Upload, Self::Error>;

    /// Finds an object; of `options` its version, range and `head` tell what will be read.
    async fn find(&self, key: &str, options: &GetOptions) -> StoreResult<Self::Found, Self::Error>;

    /// Returns the metadata of an object that was found, and its attributes as they were put.
    ///
    /// # Errors
    /// When its key is not a valid path.
    fn meta(&self, key: &str, found: &Self::Found) -> Result<(ObjectMeta, Vec<(String, String)>)>;

    /// Streams bytes of an object that was found; the range is not empty and within its size.
    async fn body(
        &self,
        key: &str,
        found: Self::Found,
        range: Range<u64>,
        options: ReadOptions,
    ) -> StoreResult<BoxStream<'static, StoreResult<Bytes, Self::Error>>, Self::Error>;

    /// Removes an object; one that does not exist is no error.
    async fn delete(&self, key: &str) -> StoreResult<(), Self::Error>;

    /// Copies an object. The copy has bytes of its own: it outlives its source.
    async fn copy(&self, from: &str, to: &str, mode: Mode) -> StoreResult<(), Self::Error>;

    /// Lists the objects in a folder and below it, sorted by key, after a key.
    fn list(
        &self,
        folder: Option<&Path>,
        after: Option<String>,
    ) -> BoxStream<'static, Result<ObjectMeta>>;

    /// Lists the objects of a folder, and its folders. Reads everything below it, unless the store
    /// has a better way.
    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let folder = folder(prefix);
        let mut all = self.list(prefix, None);
        let (mut objects, mut folders) = (Vec::new(), BTreeSet::new());
        while let Some(meta) = all.try_next().await? {
            let rest = meta.location.as_ref().get(folder.len()..).unwrap_or_default().to_owned();
            match rest.split_once(DELIMITER) {
                Some((name, _)) => {
                    folders.insert(Path::parse(format!("{folder}{name}"))?);
                }
                None => objects.push(meta),
            }
        }
        let common_prefixes = folders.into_iter().collect();
        Ok(ListResult { objects, common_prefixes, extensions: Default::default() })
    }
}

/// Implements [`ObjectStore`](object_store::ObjectStore) for `$store` by the [`KeyedStore`]
/// `$keyed`, a tuple struct of it. The latter may be private to its crate, as what it finds is.
#[macro_export]
macro_rules! object_store {
    ($store:ty, $keyed:ident) => {
        #[::async_trait::async_trait]
        impl ::object_store::ObjectStore for $store {
            async fn put_opts(
                &self,
                location: &::object_store::path::Path,
                payload: ::object_store::PutPayload,
                options: ::object_store::PutOptions,
            ) -> ::object_store::Result<::object_store::PutResult> {
                $crate::adapter::put(&$keyed(self.clone()), location, payload, options).await
            }

            async fn put_multipart_opts(
                &self,
                location: &::object_store::path::Path,
                options: ::object_store::PutMultipartOptions,
            ) -> ::object_store::Result<Box<dyn ::object_store::MultipartUpload>> {
                $crate::adapter::begin_upload(&$keyed(self.clone()), location, options).await
            }

            async fn get_opts(
                &self,
                location: &::object_store::path::Path,
                options: ::object_store::GetOptions,
            ) -> ::object_store::Result<::object_store::GetResult> {
                $crate::adapter::get(&$keyed(self.clone()), location, options).await
            }

            fn delete_stream(
                &self,
                locations: ::futures::stream::BoxStream<
                    'static,
                    ::object_store::Result<::object_store::path::Path>,
                >,
            ) -> ::futures::stream::BoxStream<
                'static,
                ::object_store::Result<::object_store::path::Path>,
            > {
                $crate::adapter::delete_stream(&$keyed(self.clone()), locations)
            }

            fn list(
                &self,
                prefix: Option<&::object_store::path::Path>,
            ) -> ::futures::stream::BoxStream<
                'static,
                ::object_store::Result<::object_store::ObjectMeta>,
            > {
                $crate::KeyedStore::list(&$keyed(self.clone()), prefix, None)
            }

            fn list_with_offset(
                &self,
                prefix: Option<&::object_store::path::Path>,
                offset: &::object_store::path::Path,
            ) -> ::futures::stream::BoxStream<
                'static,
                ::object_store::Result<::object_store::ObjectMeta>,
            > {
                $crate::KeyedStore::list(&$keyed(self.clone()), prefix, Some(offset.to_string()))
            }

            async fn list_with_delimiter(
                &self,
                prefix: Option<&::object_store::path::Path>,
            ) -> ::object_store::Result<::object_store::ListResult> {
                $crate::KeyedStore::list_with_delimiter(&$keyed(self.clone()), prefix).await
            }

            async fn copy_opts(
                &self,
                from: &::object_store::path::Path,
                to: &::object_store::path::Path,
                options: ::object_store::CopyOptions,
            ) -> ::object_store::Result<()> {
                $crate::adapter::copy(&$keyed(self.clone()), from, to, options.mode).await
            }
        }
    };
}

fn new_object(
    location: &Path,
    (attributes, extensions): (&Attributes, &Extensions),
    mode: Mode,
) -> NewObject {
    NewObject {
        key: location.to_string(),
        attributes: attribute_pairs(attributes),
        mode,
        affinity: extensions.get::<AffinityGroup>().copied(),
    }
}

/// What [`object_store!`](crate::object_store) calls; nothing else should.
pub mod adapter {
    use object_store::CopyMode;

    use super::*;

    /// Puts an object.
    ///
    /// # Errors
    /// Those of the store; a precondition that does not hold.
    pub async fn put<S: KeyedStore>(
        store: &S,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let mode = mode::<S::Error>(&options.mode)?;
        let object = new_object(location, (&options.attributes, &options.extensions), mode);
        let put = store.put(object, payload).await;
        put.map_err(|error| to_object_store_error(location, error))
    }

    /// Begins a multipart upload.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn begin_upload<S: KeyedStore>(
        store: &S,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let of_caller = (&options.attributes, &options.extensions);
        let object = new_object(location, of_caller, Mode::Overwrite);
        let begun = store.begin_upload(object).await;
        let begun = begun.map_err(|error| to_object_store_error(location, error))?;
        Ok(Box::new(Upload::new(location.clone(), begun)))
    }

    /// Reads an object. The first bytes are read before it returns, so that their errors are those
    /// of the call.
    ///
    /// # Errors
    /// Those of the store; a precondition that does not hold; a range outside the object.
    pub async fn get<S: KeyedStore>(
        store: &S,
        location: &Path,
        options: GetOptions,
    ) -> Result<GetResult> {
        let to_error = |error| to_object_store_error(location, error);
        let found = store.find(location.as_ref(), &options).await.map_err(to_error)?;
        let (meta, stored) = store.meta(location.as_ref(), &found)?;
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => range
                .as_range(meta.size)
                .map_err(|error| generic_error::<S::Error>(Box::new(error)))?,
            None => 0..meta.size,
        };
        let payload = if options.head || range.is_empty() {
            stream::empty().boxed()
        } else {
            let read = ReadOptions {
                due: options.extensions.get::<Deadline>().map(|due| due.0),
                is_read_back: options.extensions.get::<ReadBack>().is_some(),
            };
            let body = store.body(location.as_ref(), found, range.clone(), read).await;
            let mut body = body.map_err(to_error)?;
            let first = body.next().await.transpose().map_err(to_error)?;
            let location = location.clone();
            let rest = body.map_err(move |error| to_object_store_error(&location, error));
            stream::iter(first.map(Ok)).chain(rest).boxed()
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(payload),
            meta,
            range,
            attributes: attributes(&stored),
            extensions: Default::default(),
        })
    }

    /// Removes a stream of objects, one after the other.
    pub fn delete_stream<S: KeyedStore>(
        store: &S,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = store.clone();
        let delete = move |location: Result<Path>| {
            let store = store.clone();
            async move {
                let location = location?;
                let deleted = store.delete(location.as_ref()).await;
                deleted.map_err(|error| to_object_store_error(&location, error))?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    /// Copies an object.
    ///
    /// # Errors
    /// Those of the store; that the target exists, if it must not.
    pub async fn copy<S: KeyedStore>(
        store: &S,
        from: &Path,
        to: &Path,
        mode: CopyMode,
    ) -> Result<()> {
        let copied = store.copy(from.as_ref(), to.as_ref(), Mode::from(mode)).await;
        copied.map_err(|error| {
            let is_missing = error.error_kind() == ObjectStoreErrorKind::NotFound;
            to_object_store_error(if is_missing { from } else { to }, error)
        })
    }
}
