//! Verification: reads every object whole and compares it with what was put. Each is read from just
//! as many sites as it needs, and not from a cache; a scrub checks the other fragments.

use std::sync::Arc;

use fulgurite_geo_core::ReadTarget;
use fulgurite_tier::Progress;
use fulgurite_units::{ErrorKind, error_chain};
use futures::future::BoxFuture;
use futures::stream::TryStreamExt as _;
use object_store::GetRange;
use serde::{Deserialize, Serialize};

use crate::objects::as_object_store::body;
use crate::objects::limits::VERIFIED_AT_ONCE;
use crate::objects::listing::listed;
use crate::objects::maintenance::LISTED_MAX;
use crate::objects::store::GeoStore;
use crate::objects::{Listing, Result, UndecidedReport, names};

/// Result of reading all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// Objects that were read and are intact.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The first objects that are lost or damaged.
    pub damaged: Vec<String>,
    /// The first objects that could not be read now.
    pub problems: Vec<String>,
    /// Undecided versions.
    pub undecided: UndecidedReport,
}

impl GeoStore {
    /// Reads all objects, and changes nothing.
    ///
    /// # Errors
    /// If the objects cannot be listed.
    pub fn verify<'a>(&'a self, progress: &'a Progress) -> BoxFuture<'a, Result<VerifyReport>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            let mut report = VerifyReport::default();
            let rows = listed(&live, (names::rows(None)?, None), (Listing::Quorum, None));
            let read = rows.map_ok(|row| async move {
                let read = self.read_whole(&row.key).await;
                Ok((row.key, read))
            });
            let mut read = std::pin::pin!(read.try_buffer_unordered(VERIFIED_AT_ONCE));
            while let Some((key, read)) = read.try_next().await? {
                match read {
                    Ok(Some(bytes)) => {
                        report.objects += 1;
                        report.bytes += bytes;
                        progress.set_message(format!("{} objects read", report.objects));
                    }
                    // It was deleted.
                    Ok(None) => {}
                    Err(error) => {
                        let is_corrupt = error.kind() == ErrorKind::Corrupt;
                        let VerifyReport { damaged, problems, .. } = &mut report;
                        let list = if is_corrupt { damaged } else { problems };
                        if list.len() < LISTED_MAX {
                            list.push(format!("{key}: {}", error_chain(&error)));
                        }
                    }
                }
            }
            report.undecided = self.undecided_report().await?;
            Ok(report)
        })
    }

    /// Reads an object. Returns its size; none if there is no such object.
    async fn read_whole(&self, key: &str) -> Result<Option<u64>> {
        let live = self.0.live().await?;
        let live = Arc::new(live.without_cache());
        let wanted = (ReadTarget::Latest, Some(GetRange::Offset(0)));
        let (found, _) = self.0.lookup(&live, key, wanted).await?;
        let Some(found) = found else { return Ok(None) };
        let size = found.put().map_or(0, |put| put.size);
        let mut body = body(&self.0, live, key.to_owned(), found, 0..size);
        while body.try_next().await?.is_some() {}
        Ok(Some(size))
    }
}
