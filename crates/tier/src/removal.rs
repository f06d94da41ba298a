//! Bulk deletes as `object_store` requests them: a stream of keys.

use futures::stream::{BoxStream, StreamExt as _};
use object_store::Result;
use object_store::path::Path;

use crate::{KeyedStore, to_object_store_error};

/// Deletes objects one after another.
pub(crate) fn remove_all<S: KeyedStore>(
    store: S,
    locations: BoxStream<'static, Result<Path>>,
) -> BoxStream<'static, Result<Path>> {
    let one = move |location: Result<Path>| {
        let store = store.clone();
        async move {
            let location = location?;
            let removed = store.delete(location.as_ref()).await;
            removed.map_err(|error| to_object_store_error(&location, error))?;
            Ok(location)
        }
    };
    locations.then(one).boxed()
}
