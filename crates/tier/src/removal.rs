//! Bulk deletes as `object_store` requests them: a stream of keys.

use std::future::Future;

use futures::stream::{BoxStream, StreamExt as _};
use object_store::Result;
use object_store::path::Path;

use crate::{ObjectStoreError, to_object_store_error};

/// Deletes objects one after another with `remove`, which deletes one.
pub fn remove_all<S, E, R>(
    store: S,
    locations: BoxStream<'static, Result<Path>>,
    remove: impl Fn(S, String) -> R + Clone + Send + 'static,
) -> BoxStream<'static, Result<Path>>
where
    S: Clone + Send + 'static,
    E: ObjectStoreError,
    R: Future<Output = Result<(), E>> + Send,
{
    let one = move |location: Result<Path>| {
        let (store, remove) = (store.clone(), remove.clone());
        async move {
            let location = location?;
            let removed = remove(store, location.to_string()).await;
            removed.map_err(|error| to_object_store_error(&location, error))?;
            Ok(location)
        }
    };
    locations.then(one).boxed()
}
