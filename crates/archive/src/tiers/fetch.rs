//! Copies a whole body of a tier into the space of a restore.
//!
//! The whole body is requested at once, with its due time: a store that orders its own queue, as a
//! rack does, sees the body and not ranges of it. An interrupted read is resumed where it was.

use std::sync::Arc;

use fulgurite_glass::cipher_crc;
use fulgurite_units::{Deadline, UnixTime};
use futures::StreamExt as _;
use object_store::{Error, GetOptions, GetRange};

use super::ObjectTier;
use super::objects::body_path;
use crate::bodies::cipher::cipher_bytes;
use crate::bodies::log::LogWriter;
use crate::limits::TIER_TRIES_MAX;
use crate::rows::BodyRow;
use crate::{ArchiveError, Result};

impl ObjectTier {
    /// Copies a body, and calls `then` with its checksum or the error.
    pub(crate) fn fetch(
        self: &Arc<Self>,
        body: BodyRow,
        writer: Arc<LogWriter>,
        due: UnixTime,
        then: impl FnOnce(Result<u64>) + Send + 'static,
    ) {
        let tier = Arc::clone(self);
        let copy = self.runtime().spawn(async move {
            let _pin = tier.pin(body.body_id);
            tier.copy(&body, &writer, due).await
        });
        self.runtime().spawn(async move {
            let panicked =
                |error| ArchiveError::Internal { what: format!("a copy panicked: {error}") };
            then(copy.await.map_err(panicked).flatten());
        });
    }

    async fn copy(&self, body: &BodyRow, writer: &LogWriter, due: UnixTime) -> Result<u64> {
        let (store, root) = self.store().await?;
        let (path, bytes) = (body_path(root, body.body_id), cipher_bytes(body.bytes));
        let (mut crc, mut done, mut failures) = (cipher_crc(), 0, 0);
        while done < bytes {
            let before = done;
            let range = (done > 0).then_some(GetRange::Offset(done));
            let mut options = GetOptions { range, ..GetOptions::default() };
            options.extensions.insert(Deadline(due));
            let mut take = |chunk: &[u8]| {
                if done + chunk.len() as u64 > bytes {
                    return Err(self.other(&path, "is longer than the body that was written"));
                }
                tokio::task::block_in_place(|| writer.write_at(done, chunk))?;
                crc.update(chunk);
                done += chunk.len() as u64;
                Ok(())
            };
            let read = async {
                let mut stream = store.get_opts(&path, options).await?.into_stream();
                while let Some(chunk) = stream.next().await {
                    if let Err(error) = take(&chunk?) {
                        return Ok(Err(error));
                    }
                }
                Ok::<_, Error>(Ok(()))
            };
            match read.await {
                Ok(taken) => taken?,
                Err(error) => {
                    failures = if done > before { 1 } else { failures + 1 };
                    if failures >= TIER_TRIES_MAX || matches!(error, Error::NotFound { .. }) {
                        return Err(self.lost(&path, bytes, error).await);
                    }
                    continue;
                }
            }
            if done < bytes {
                return Err(self.other(&path, "is truncated"));
            }
        }
        let crc = crc.finalize();
        if crc != body.digest {
            let what = format!(
                "body {}, in tier \"{}\", is not what was ingested",
                body.body_id,
                self.name()
            );
            return Err(ArchiveError::Corrupt { what });
        }
        Ok(crc)
    }
}
