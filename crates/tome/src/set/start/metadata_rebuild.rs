//! Rebuilds lost metadata stores at a start, from inventories of their disks.
//!
//! At a start all tomes are quiescent and get no requests: what all others of a group know is
//! consistent, and a tome that comes back is compared with it once. Not here: how it is rebuilt
//! ([`crate::rebuild_metadata`]), and how the disk is read ([`super::super::inventories`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fulgurite_disks::LedgerFile;
use fulgurite_tome_core::group::Group;
use fulgurite_tome_core::metadata::TomeMetadata;
use fulgurite_tome_core::{GroupId, TomeId};
use fulgurite_units::{Instant, error_chain};
use tokio::sync::oneshot;

use super::super::inventories::{InventoryRunner, RebuiltTome};
use super::{LEDGER, LoadedTome, OpenTome, Startup, TomeHandle};
use crate::driver::TomeRequest;
use crate::identity::TomeIdentity;
use crate::inventory::Inventory;
use crate::metadata_store::MetadataStore;
use crate::piece_store::OpenedPieces;
use crate::rebuild_metadata::{self, GroupContext};
use crate::set_store::SetStore;
use crate::start_counts::{CountedStore, StartRow};
use crate::{Result, TomesError};

impl Startup {
    /// Rebuilds lost tomes whose disks have a complete inventory. One that fails is logged, and
    /// stays lost.
    ///
    /// # Errors
    /// When the set's state cannot be read, or an inventory not be removed.
    pub(super) fn rebuild_lost_metadata(
        &self,
        store: &SetStore,
        (pieces, is_behind): (&OpenedPieces, bool),
        loaded: &mut BTreeMap<TomeId, Result<LoadedTome, String>>,
    ) -> Result<Vec<RebuiltTome>> {
        let (out, retired) = (store.out()?, store.retired()?);
        let mut rebuilt = Vec::new();
        let tomes: Vec<TomeId> = loaded.keys().copied().collect();
        for tome in tomes.into_iter().filter(|t| !out.contains(t) && !retired.contains(t)) {
            let folder = self.folder(tome);
            let Some(Err(why)) = loaded.get(&tome) else {
                // The tome has been in use since, so the inventory is out of date.
                Inventory::remove(&folder)?;
                continue;
            };
            let identity = TomeIdentity::new(self.set, tome, self.options.layout);
            let inventory = match Inventory::open(&folder, &identity) {
                Ok(Some(inventory)) if inventory.is_whole() => inventory,
                Ok(_) => continue,
                Err(error) => {
                    tracing::error!(%tome, "its inventory cannot be used: {}", error_chain(&error));
                    continue;
                }
            };
            let why = why.clone();
            let made = if is_behind {
                let why = "the set's record of objects is missing or an older copy".to_owned();
                Err(TomesError::Away { tome, why })
            } else {
                self.rebuild_metadata(store, pieces, loaded, &identity, inventory)
            };
            match made {
                Ok((found, report)) => {
                    report.log();
                    loaded.insert(tome, Ok(found));
                    rebuilt.push(report);
                    Inventory::remove(&folder)?;
                }
                Err(error) => {
                    let error = error_chain(&error);
                    tracing::error!(%tome, "its metadata store was not rebuilt: {error}");
                    loaded.insert(tome, Err(format!("{why}; {error}")));
                }
            }
        }
        Ok(rebuilt)
    }

    fn rebuild_metadata(
        &self,
        store: &SetStore,
        pieces: &OpenedPieces,
        loaded: &BTreeMap<TomeId, Result<LoadedTome, String>>,
        identity: &TomeIdentity,
        inventory: Inventory,
    ) -> Result<(LoadedTome, RebuiltTome)> {
        let tome = identity.tome;
        let mut tomes: BTreeMap<TomeId, &TomeMetadata> = BTreeMap::new();
        for (other, loaded) in loaded {
            tomes.extend(loaded.as_ref().ok().map(|loaded| (*other, &loaded.metadata)));
        }
        let groups = self.latest_groups(tome, &tomes)?;
        let moves = store.moves()?;
        let now = self.options.clock.now().as_millis().saturating_mul(1_000_000);
        let others = GroupContext {
            groups: &groups,
            tomes: &tomes,
            moves: &moves,
            now: Instant::from_nanos(now),
        };
        let mut found = Vec::new();
        inventory.for_each(|block| found.push(block))?;
        drop(inventory);
        let mut recorded = BTreeMap::new();
        pieces.for_each(tome, |name, placed| {
            recorded.insert(name, placed);
        })?;
        let rebuilt =
            rebuild_metadata::rebuild_metadata(tome, &identity.layout, &others, found, &recorded)?;
        let start = StartRow(store.starts(CountedStore::Tome(tome))?.begun);
        let folder = self.folder(tome);
        let own = MetadataStore::rebuild_metadata(&folder, identity, &rebuilt, start, &self.fail)?;
        let metadata = own.load(identity)?;
        let (ledger, _) = LedgerFile::open_or_quarantine(&folder.join(LEDGER))?;
        let mut report = RebuiltTome {
            tome,
            objects: rebuilt.objects.len() as u64,
            lost: rebuilt.lost,
            bad: rebuilt.bad,
            differing: Vec::new(),
        };
        tomes.insert(tome, &metadata);
        for group in groups.iter().filter(|g| g.slots().iter().any(|slot| slot.tome == tome)) {
            let findings = rebuild_metadata::compare(group, &identity.layout, &tomes)?;
            if !findings.is_empty() {
                report.differing.push((group.id(), findings.len() as u64));
            }
        }
        drop(tomes);
        let opened = OpenTome { identity: identity.clone(), store: own, ledger };
        Ok((LoadedTome { opened, metadata }, report))
    }

    /// Returns the latest known version of all groups.
    ///
    /// # Errors
    /// [`TomesError::Away`] when a member slot of the tome is another's and the set does not know
    /// yet: it must first learn which objects went with it.
    fn latest_groups(
        &self,
        tome: TomeId,
        tomes: &BTreeMap<TomeId, &TomeMetadata>,
    ) -> Result<Vec<Group>> {
        let mut latest: BTreeMap<GroupId, &Group> =
            self.groups.iter().map(|group| (group.id(), group)).collect();
        for (_, region) in tomes.values().flat_map(|metadata| metadata.regions()) {
            let known = latest.get_mut(&region.group().id());
            let holds_slot = region.building().is_none();
            if let Some(known) = known
                && holds_slot
                && region.group().epoch() > known.epoch()
            {
                *known = region.group();
            }
        }
        let has_slot = |group: &Group| group.slots().iter().any(|slot| slot.tome == tome);
        for group in self.groups.iter().filter(|group| has_slot(group)) {
            if latest.get(&group.id()).is_some_and(|latest| !has_slot(latest)) {
                let why =
                    format!("another tome has taken over its member slot in group {}", group.id());
                return Err(TomesError::Away { tome, why });
            }
        }
        Ok(latest.into_values().cloned().collect())
    }

    /// Returns the reader of inventories; those that were begun continue.
    pub(super) fn inventory_runner(
        &self,
        handles: &BTreeMap<TomeId, TomeHandle>,
        out: &BTreeSet<TomeId>,
        retired: &BTreeSet<TomeId>,
    ) -> Result<InventoryRunner> {
        let inventory_runner = InventoryRunner::new(
            (self.set, self.options.layout, self.options.directory.clone()),
            (self.guard.clone(), Arc::clone(&self.options.backend), Arc::clone(&self.gate)),
            Arc::clone(&self.network),
            self.options.clock.clone(),
            self.options.entropy.clone(),
            Arc::clone(&self.fail),
        );
        for (tome, handle) in handles {
            let is_lost =
                matches!(handle, TomeHandle::Lost(_)) && self.options.roots.contains_key(tome);
            let is_out = out.contains(tome) || retired.contains(tome);
            if is_lost && !is_out && inventory_runner.is_begun(*tome) {
                inventory_runner.begin(*tome)?;
            }
        }
        Ok(inventory_runner)
    }
}

/// Scrubs tomes with missing blocks, so that those are found and rebuilt.
pub(super) fn scrub_rebuilt(rebuilt: &[RebuiltTome], handles: &BTreeMap<TomeId, TomeHandle>) {
    for rebuilt in rebuilt.iter().filter(|rebuilt| rebuilt.bad > 0) {
        if let Some(TomeHandle::Live(driver)) = handles.get(&rebuilt.tome) {
            let (reply, _) = oneshot::channel();
            if let Err(error) = driver.send_request(TomeRequest::Scrub { reply }) {
                tracing::warn!(tome = %rebuilt.tome, "not scrubbed: {error}");
            }
        }
    }
}
