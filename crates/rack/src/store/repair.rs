//! Operator commands: verify everything, rebuild a disk's stacks, replace a disk, and recover what
//! a lost index knew.

use std::sync::Arc;

use fulgurite_disks::{GroupId, PlaceId, SpinUp};
use fulgurite_tier::Progress;
use fulgurite_units::{BlobId, ByteCount};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::RackStore;
use crate::driver::{Kind, Task};
use crate::index::{BlobRow, DiskRow, Index};
use crate::limits::REPAIR_BLOBS_MAX;
use crate::work::{Found, Group, find, group_name, repair_blob};
use crate::{RackError, Result};

/// Result of a verification or a rebuild.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Blobs that were read whole.
    pub blobs: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Faulty stacks.
    pub lost: u64,
    /// Stacks that were rebuilt.
    pub made: u64,
    /// Descriptions of what could not be read or rebuilt.
    pub problems: Vec<String>,
}

impl Report {
    /// Adds another report to this one.
    #[must_use]
    fn merge(mut self, other: Self) -> Self {
        self.blobs += other.blobs;
        self.bytes += other.bytes;
        self.lost += other.lost;
        self.made += other.made;
        self.problems.extend(other.problems);
        self
    }
}

impl RackStore {
    /// Reads every blob from all of its stacks, group after group, and rebuilds lost stacks.
    ///
    /// # Errors
    /// When it is stopping. Failures of blobs are in the report.
    pub async fn scrub(&self) -> Result<Report> {
        self.scrub_with_progress(&Progress::default()).await
    }

    /// Like [`Self::scrub`], reporting progress.
    ///
    /// # Errors
    /// As for [`Self::scrub`].
    pub fn scrub_with_progress<'a>(
        &'a self,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Report>> {
        Box::pin(async move {
            let (mut report, all) = (Report::default(), |_: &BlobRow| true);
            for &group in &self.inner().groups.clone() {
                progress.expect(self.selected_bytes(group, all)?.get());
            }
            for &group in &self.inner().groups.clone() {
                let (of_group, is_over) = self.repair(group, Kind::Scrub, all, progress).await?;
                if is_over {
                    let problems = crate::format::bytes(of_group.problems.len());
                    let now_ms = self.inner().clock().now().as_millis();
                    self.write_index(move |index| {
                        index.record_scrub(group, None, problems, now_ms)
                    })
                    .await?;
                    self.inner().driver.verified(group, Some(now_ms))?;
                }
                report = report.merge(of_group);
            }
            Ok(report)
        })
    }

    /// Gives up the disk of a place for good, and rebuilds all of its stacks on the other disks of
    /// its group. Clients are served meanwhile.
    ///
    /// # Errors
    /// When there is no such place, or it is stopping.
    pub async fn rebuild(&self, place: PlaceId) -> Result<Report> {
        self.rebuild_with_progress(place, &Progress::default()).await
    }

    /// Like [`Self::rebuild`], reporting progress.
    ///
    /// # Errors
    /// As for [`Self::rebuild`].
    pub fn rebuild_with_progress<'a>(
        &'a self,
        place: PlaceId,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Report>> {
        Box::pin(async move {
            let group = self.group_of(place)?;
            let known = self.inner().index().disks()?;
            let disk =
                known.into_iter().find(|(at, _)| *at == place).map_or([0; 16], |(_, row)| row.disk);
            let row = DiskRow { disk, is_given_up: true };
            // If the rack is restarted in between, the verification continues the rebuild.
            self.write_index(move |index| index.request_scrub(group, true)).await?;
            self.save_disk(place, row).await?;
            self.inner().ctx.fail.pass("rack-given-up");
            self.inner().driver.give_up(place)?;
            let is_selected = move |row: &BlobRow| !row.indices_in(place).is_empty();
            progress.expect(self.selected_bytes(group, is_selected)?.get());
            let (report, is_over) =
                self.repair(group, Kind::Rebuild, is_selected, progress).await?;
            if is_over && report.problems.is_empty() {
                self.write_index(move |index| index.request_scrub(group, false)).await?;
            } else {
                // The rest is retried by a verification that needs no request.
                self.inner().driver.verified(group, None)?;
            }
            Ok(report)
        })
    }

    /// Takes the new, empty disk in a place, and rebuilds the stacks of the old one. A disk that
    /// belongs to another rack is reported and not changed.
    ///
    /// # Errors
    /// [`RackError::WrongDisk`] for such a disk, when there is no such place, or it is stopping.
    pub async fn replace(&self, place: PlaceId) -> Result<Report> {
        self.replace_with_progress(place, &Progress::default()).await
    }

    /// Like [`Self::replace`], reporting progress.
    ///
    /// # Errors
    /// As for [`Self::replace`].
    pub fn replace_with_progress<'a>(
        &'a self,
        place: PlaceId,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Report>> {
        Box::pin(async move {
            let group = self.group_of(place)?;
            self.write_index(move |index| index.forget_disk(place)).await?;
            self.inner().ctx.places.set_disk(place, None);
            self.inner().ctx.places.set_room(place, None);
            self.inner().driver.replaced(place)?;
            self.init_group(group)?.await.unwrap_or(Err(RackError::Stopping))?;
            if self.inner().ctx.places.is_new(place) {
                let reasons = self.untaken_reasons().await?;
                return Err(RackError::WrongDisk {
                    detail: format!("the disk is not replaced: {}", reasons.join("; ")),
                });
            }
            let is_selected = move |row: &BlobRow| {
                !row.indices_in(place).is_empty() || row.places.contains(&None)
            };
            progress.expect(self.selected_bytes(group, is_selected)?.get());
            Ok(self.repair(group, Kind::Rebuild, is_selected, progress).await?.0)
        })
    }

    /// Searches all disks for blobs that are missing in the index, for example after it was lost,
    /// and adds them. Deleted blobs that were not garbage-collected yet come back.
    ///
    /// # Errors
    /// When it is stopping. Failures of disks and stacks are in the report.
    pub fn recover(&self) -> BoxFuture<'_, Result<Found>> {
        Box::pin(async move {
            let mut all = Found::default();
            let mut is_over = true;
            for &group in &self.inner().groups.clone() {
                let found =
                    self.run_in_group(group, Kind::Scrub, ByteCount::ZERO, move |inner, ready| {
                        find(inner.ctx(), ready)
                    });
                match found.await {
                    Ok(found) => {
                        all.blobs += found.blobs;
                        all.known += found.known;
                        all.gone += found.gone;
                        all.problems.extend(found.problems);
                    }
                    Err(RackError::Stopping) => return Err(RackError::Stopping),
                    Err(error) => {
                        is_over = false;
                        all.problems.push(format!("{}: {error}", group_name(group)));
                    }
                }
            }
            if is_over && self.inner().ctx.starts.is_index_older() {
                self.write_index(Index::record_recovered).await?;
                self.inner().ctx.starts.recovered();
                tracing::info!("the index of the rack is complete again");
            }
            Ok(all)
        })
    }

    /// Returns the last spin-ups, newest first: which disks, and why.
    ///
    /// # Errors
    /// When it is stopping.
    pub fn ledger(&self) -> BoxFuture<'_, Result<Vec<SpinUp>>> {
        Box::pin(async move { self.inner().driver.spin_ups().await })
    }

    fn group_of(&self, place: PlaceId) -> Result<GroupId> {
        let missing = || RackError::Invalid { detail: format!("the rack has no place {place}") };
        self.inner().ctx.places.group(place).ok_or_else(missing)
    }

    async fn save_disk(&self, place: PlaceId, row: DiskRow) -> Result<()> {
        let kept = row.clone();
        self.write_index(move |index| index.set_disk(place, kept)).await?;
        self.inner().ctx.places.set_disk(place, Some(row));
        Ok(())
    }

    /// Returns the total bytes of the blobs of a group selected by `is_selected`.
    fn selected_bytes(
        &self,
        group: GroupId,
        is_selected: impl Fn(&BlobRow) -> bool,
    ) -> Result<ByteCount> {
        let (mut bytes, mut after) = (ByteCount::ZERO, None);
        loop {
            let page = self.inner().index().blobs(group, after)?;
            let Some((last, _)) = page.last() else { return Ok(bytes) };
            after = Some(*last);
            let wanted = page.iter().filter(|(_, row)| is_selected(row));
            bytes = [bytes, wanted.map(|(_, row)| row.length).sum()].into_iter().sum();
        }
    }

    /// Writes to the index on a thread that may block.
    async fn write_index<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Index) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(self.inner());
        let written = tokio::task::spawn_blocking(move || write(inner.index()));
        written.await.map_err(|error| RackError::Internal { detail: error.to_string() })?
    }

    /// Repairs the blobs of a group selected by `is_selected`, a few per operation. Returns whether
    /// it got to the last.
    async fn repair(
        &self,
        group: GroupId,
        kind: Kind,
        is_selected: impl Fn(&BlobRow) -> bool,
        progress: &Progress,
    ) -> Result<(Report, bool)> {
        let mut report = Report::default();
        let mut after = None;
        loop {
            let page = self.inner().index().blobs(group, after)?;
            let Some((last, _)) = page.last() else { return Ok((report, true)) };
            after = Some(*last);
            let wanted: Vec<(BlobId, BlobRow)> =
                page.into_iter().filter(|(_, row)| is_selected(row)).collect();
            for some in wanted.chunks(REPAIR_BLOBS_MAX) {
                let blobs: Vec<BlobId> = some.iter().map(|(blob, _)| *blob).collect();
                let bytes: ByteCount = some.iter().map(|(_, row)| row.length).sum();
                let repaired = self.run_in_group(group, kind, bytes, move |inner, ready| {
                    let done = repair_all(inner, ready, &blobs);
                    inner.gc(ready);
                    done
                });
                match repaired.await {
                    Ok(repaired) => {
                        report = report.merge(repaired);
                        progress.add(bytes.get());
                    }
                    Err(RackError::Stopping) => return Err(RackError::Stopping),
                    Err(error) => {
                        report.problems.push(format!("{}: {error}", group_name(group)));
                        return Ok((report, false));
                    }
                }
            }
        }
    }

    /// Runs an operation in a group and returns its result.
    async fn run_in_group<T: Send + 'static>(
        &self,
        group: GroupId,
        kind: Kind,
        bytes: ByteCount,
        operation: impl FnOnce(&super::Inner, &Group) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (send, done) = oneshot::channel();
        let inner = Arc::clone(self.inner());
        let work = move |ready: Result<&Group>| {
            let _ = send.send(ready.and_then(|ready| operation(&inner, ready)));
        };
        let work = Box::new(work);
        let task = Task { group, kind, bytes, due: None, needs: None, work };
        self.inner().driver.submit(task)?;
        done.await.unwrap_or(Err(RackError::Stopping))
    }
}

fn repair_all(inner: &super::Inner, group: &Group, blobs: &[BlobId]) -> Result<Report> {
    let mut report = Report::default();
    for &blob in blobs {
        let row = inner.index().blob(group.id, blob)?;
        match repair_blob(inner.ctx(), group, blob) {
            Ok(None) => {}
            Ok(Some(repaired)) => {
                report.blobs += 1;
                report.bytes += row.map_or(0, |row| row.length.get());
                report.lost += crate::format::bytes(repaired.lost.len());
                report.made += crate::format::bytes(repaired.rebuilt.len());
                if repaired.still_lost() > 0 {
                    let lost = crate::error::list(&repaired.lost);
                    report.problems.push(format!("blob {blob} still lacks redundancy: {lost}"));
                }
            }
            Err(error @ (RackError::Catalog(_) | RackError::Index { .. })) => {
                return Err(error);
            }
            Err(error) => report.problems.push(error.to_string()),
        }
    }
    Ok(report)
}
