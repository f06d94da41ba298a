//! Rebuilds lost metadata stores at a start, from inventories of their disks.
//!
//! At a start all tomes are quiescent and get no requests: what all others of a group know is
//! consistent, and a tome that comes back is compared with it once. Not here: how it is rebuilt
//! ([`crate::regain`]), and how the disk is read ([`super::super::surveying`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fulgurite_disks::LedgerFile;
use fulgurite_tome::awake::Awake;
use fulgurite_tome::group::Group;
use fulgurite_tome::{GroupId, TomeId};
use fulgurite_units::{Instant, error_chain};
use tokio::sync::oneshot;

use super::super::surveying::{RegainedTome, Surveyor};
use super::{LEDGER, Loaded, Opened, Seat, Start};
use crate::awake_store::AwakeStore;
use crate::driver::Ask;
use crate::identity::TomeIdentity;
use crate::piece_store::OpenedPieces;
use crate::regain::{self, Others};
use crate::set_store::SetStore;
use crate::starts::{Counted, StartRow};
use crate::survey::Survey;
use crate::{Result, TomesError};

impl Start {
    /// Rebuilds lost tomes whose disks have a complete inventory. One that fails is logged, and
    /// stays lost.
    ///
    /// # Errors
    /// When the set's state cannot be read, or an inventory not be removed.
    pub(super) fn regain_all(
        &self,
        store: &SetStore,
        (pieces, is_behind): (&OpenedPieces, bool),
        loaded: &mut BTreeMap<TomeId, Result<Loaded, String>>,
    ) -> Result<Vec<RegainedTome>> {
        let (out, retired) = (store.out()?, store.retired()?);
        let mut regained = Vec::new();
        let tomes: Vec<TomeId> = loaded.keys().copied().collect();
        for tome in tomes.into_iter().filter(|t| !out.contains(t) && !retired.contains(t)) {
            let folder = self.folder(tome);
            let Some(Err(why)) = loaded.get(&tome) else {
                // The tome has been in use since, so the inventory is out of date.
                Survey::remove(&folder)?;
                continue;
            };
            let identity = TomeIdentity::new(self.set, tome, self.options.layout);
            let survey = match Survey::open(&folder, &identity) {
                Ok(Some(survey)) if survey.is_whole() => survey,
                Ok(_) => continue,
                Err(error) => {
                    tracing::error!(%tome, "its survey is not used: {}", error_chain(&error));
                    continue;
                }
            };
            let why = why.clone();
            let made = if is_behind {
                let why = "what the set keeps of objects is missing or an older copy".to_owned();
                Err(TomesError::Away { tome, why })
            } else {
                self.regain(store, pieces, loaded, &identity, survey)
            };
            match made {
                Ok((found, told)) => {
                    told.tell();
                    loaded.insert(tome, Ok(found));
                    regained.push(told);
                    Survey::remove(&folder)?;
                }
                Err(error) => {
                    let error = error_chain(&error);
                    tracing::error!(%tome, "its awake store is not made again: {error}");
                    loaded.insert(tome, Err(format!("{why}; {error}")));
                }
            }
        }
        Ok(regained)
    }

    fn regain(
        &self,
        store: &SetStore,
        pieces: &OpenedPieces,
        loaded: &BTreeMap<TomeId, Result<Loaded, String>>,
        identity: &TomeIdentity,
        survey: Survey,
    ) -> Result<(Loaded, RegainedTome)> {
        let tome = identity.tome;
        let mut tomes: BTreeMap<TomeId, &Awake> = BTreeMap::new();
        for (other, loaded) in loaded {
            tomes.extend(loaded.as_ref().ok().map(|loaded| (*other, &loaded.awake)));
        }
        let groups = self.latest_groups(tome, &tomes)?;
        let moves = store.moves()?;
        let now = self.options.clock.now().as_millis().saturating_mul(1_000_000);
        let others =
            Others { groups: &groups, tomes: &tomes, moves: &moves, now: Instant::from_nanos(now) };
        let mut found = Vec::new();
        survey.each(|block| found.push(block))?;
        drop(survey);
        let mut noted = BTreeMap::new();
        pieces.each(tome, |name, placed| {
            noted.insert(name, placed);
        })?;
        let regained = regain::regain(tome, &identity.layout, &others, found, &noted)?;
        let start = StartRow(store.starts(Counted::Tome(tome))?.begun);
        let folder = self.folder(tome);
        let own = AwakeStore::regain(&folder, identity, &regained, start, &self.fail)?;
        let awake = own.load(identity)?;
        let (ledger, _) = LedgerFile::open_or_set_aside(&folder.join(LEDGER))?;
        let mut told = RegainedTome {
            tome,
            objects: regained.objects.len() as u64,
            lost: regained.lost,
            bad: regained.bad,
            differing: Vec::new(),
        };
        tomes.insert(tome, &awake);
        for group in groups.iter().filter(|g| g.seats().iter().any(|seat| seat.tome == tome)) {
            let findings = regain::compare(group, &identity.layout, &tomes)?;
            if !findings.is_empty() {
                told.differing.push((group.id(), findings.len() as u64));
            }
        }
        drop(tomes);
        let opened = Opened { identity: identity.clone(), store: own, ledger };
        Ok((Loaded { opened, awake }, told))
    }

    /// Returns the latest known version of all groups.
    ///
    /// # Errors
    /// [`TomesError::Away`] when a member slot of the tome is another's and the set does not know
    /// yet: it must first learn which objects went with it.
    fn latest_groups(&self, tome: TomeId, tomes: &BTreeMap<TomeId, &Awake>) -> Result<Vec<Group>> {
        let mut latest: BTreeMap<GroupId, &Group> =
            self.groups.iter().map(|group| (group.id(), group)).collect();
        for (_, region) in tomes.values().flat_map(|awake| awake.regions()) {
            let known = latest.get_mut(&region.group().id());
            let is_seated = region.building().is_none();
            if let Some(known) = known
                && is_seated
                && region.group().epoch() > known.epoch()
            {
                *known = region.group();
            }
        }
        let has = |group: &Group| group.seats().iter().any(|seat| seat.tome == tome);
        for group in self.groups.iter().filter(|group| has(group)) {
            if latest.get(&group.id()).is_some_and(|latest| !has(latest)) {
                let why = format!("another tome has its seat of group {} by now", group.id());
                return Err(TomesError::Away { tome, why });
            }
        }
        Ok(latest.into_values().cloned().collect())
    }

    /// Returns the reader of inventories; those that were begun continue.
    pub(super) fn surveyor(
        &self,
        seats: &BTreeMap<TomeId, Seat>,
        out: &BTreeSet<TomeId>,
        retired: &BTreeSet<TomeId>,
    ) -> Result<Surveyor> {
        let surveyor = Surveyor::new(
            (self.set, self.options.layout, self.options.directory.clone()),
            (self.guard.clone(), Arc::clone(&self.options.backend), Arc::clone(&self.gate)),
            Arc::clone(&self.network),
            self.options.clock.clone(),
            self.options.entropy.clone(),
            Arc::clone(&self.fail),
        );
        for (tome, seat) in seats {
            let is_lost = matches!(seat, Seat::Lost(_)) && self.options.roots.contains_key(tome);
            let is_out = out.contains(tome) || retired.contains(tome);
            if is_lost && !is_out && surveyor.is_begun(*tome) {
                surveyor.begin(*tome)?;
            }
        }
        Ok(surveyor)
    }
}

/// Scrubs tomes with missing blocks, so that those are found and rebuilt.
pub(super) fn look_through(regained: &[RegainedTome], seats: &BTreeMap<TomeId, Seat>) {
    for regained in regained.iter().filter(|regained| regained.bad > 0) {
        if let Some(Seat::Live(driver)) = seats.get(&regained.tome) {
            let (reply, _) = oneshot::channel();
            if let Err(error) = driver.ask(Ask::Scrub { reply }) {
                tracing::warn!(tome = %regained.tome, "not looked through: {error}");
            }
        }
    }
}
