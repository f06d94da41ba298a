//! The namespace as the store of buckets that several archives share.

use std::ops::Range;

use async_trait::async_trait;
use fulgurite_archive::config::{
    SharedBytes, SharedCondition, SharedError, SharedFound, SharedPut, SharedStore,
};
use fulgurite_geo_store::{GeoError, GeoStore, Mode, Noted};
use fulgurite_units::{ErrorKind, error_chain};
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};

/// Objects of the namespace that archives share.
#[derive(Debug)]
pub(super) struct SharedSites(pub(super) GeoStore);

fn told(error: GeoError) -> SharedError {
    let what = error_chain(&error);
    match error.kind() {
        ErrorKind::Conflict => SharedError::Refused,
        ErrorKind::Corrupt => SharedError::Lost { what },
        ErrorKind::Unavailable => SharedError::Unavailable { what },
        ErrorKind::NotFound | ErrorKind::Invalid | ErrorKind::Internal | _ => {
            SharedError::Other { what }
        }
    }
}

fn found(noted: Noted) -> SharedFound {
    let Noted { key, version, size, time, note } = noted;
    SharedFound { name: key, version, bytes: size, time, note }
}

#[async_trait]
impl SharedStore for SharedSites {
    async fn put(&self, put: SharedPut) -> Result<(), SharedError> {
        let SharedPut { name, bytes, body, note, condition } = put;
        let mode = match condition {
            SharedCondition::Always => Mode::Overwrite,
            SharedCondition::Absent => Mode::Create,
            SharedCondition::Is(version) => Mode::Update(version),
        };
        let written = self.0.put_noted(&name, (bytes, body.map(Ok)), note, mode).await;
        written.map(drop).map_err(told)
    }

    async fn find(&self, name: &str) -> Result<Option<SharedFound>, SharedError> {
        Ok(self.0.find_noted(name).await.map_err(told)?.map(found))
    }

    async fn get(
        &self,
        name: &str,
        range: Range<u64>,
    ) -> Result<Option<(SharedFound, SharedBytes)>, SharedError> {
        let got = self.0.get_noted(name, range).await.map_err(told)?;
        Ok(got.map(|(noted, bytes)| (found(noted), bytes.map_err(told).boxed())))
    }

    async fn delete(&self, name: &str) -> Result<bool, SharedError> {
        self.0.remove_noted(name).await.map_err(told)
    }

    fn list(
        &self,
        folder: &str,
        after: Option<&str>,
    ) -> BoxStream<'static, Result<SharedFound, SharedError>> {
        self.0.list_noted(folder, after).map_ok(found).map_err(told).boxed()
    }
}
