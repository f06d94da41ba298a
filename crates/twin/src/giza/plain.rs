//! Baselines without controllers: the time of one fragment, of an object in one site, and a model
//! of the same design on a replicated database.
//!
//! The last is a MODEL by the text of section 6.4 and no database. A write is one transaction of
//! statements in sequence: a row in each fragment's table, replicated three times within its site;
//! a row in the versions' table, with one replica in each site; and the commit. Each waits for the
//! disks of a majority. The leader of a fragment table is at its site; the leader of the versions'
//! table is at the node's, the best case for the node. A read asks for the version and then for
//! each fragment.

use fulgurite_geo::SiteIndex;
use fulgurite_units::{Duration, Instant};

use super::run::{Next, Seen, Sites};
use super::scenario::Design;
use super::times::{megabytes, ms};
use crate::engine::{Observer, Stage};

impl Sites {
    /// Starts an operation without a controller; its end is known at once.
    pub(super) fn begin_plain<O: Observer<Self>>(
        &mut self,
        (key, near): (u64, u8),
        put: bool,
        stage: &mut Stage<'_, Self, O>,
    ) {
        let takes = match (self.scenario.design, put) {
            (Design::Local, true) => self.stored(near, SiteIndex(near), self.scenario.size.get()),
            (Design::Local, false) => self.had(near, SiteIndex(near), self.scenario.size.get()),
            (Design::Cockroach, true) => self.transaction(near),
            (Design::Cockroach, false) => self.transaction_of_read(near),
            (_, true) => self.farthest_put(near),
            (_, false) => self.farthest_get(near),
        };
        self.waiting += 1;
        let began = stage.now();
        stage.put(began + takes, Next::Plain { key, near, began, put });
    }

    pub(super) fn ended_plain<O: Observer<Self>>(
        &mut self,
        (key, near): (u64, u8),
        began: Instant,
        put: bool,
        stage: &mut Stage<'_, Self, O>,
    ) {
        let took = stage.now().since(began);
        stage.note(&Seen::Ended(key, took.as_nanos()));
        stage.show(Seen::Ended(key, took.as_nanos()));
        if put {
            self.accounts.puts += 1;
            self.accounts.put.add(took);
            self.follow(key, near, true, stage);
        } else {
            self.accounts.gets += 1;
            self.accounts.get.add(took);
        }
    }

    /// Returns the time to write one body to a site.
    fn stored(&mut self, near: u8, site: SiteIndex, bytes: u64) -> Duration {
        let trip = self.trip(near, site);
        let transfer = self.transfer(bytes, (near, site), 1, true);
        trip + transfer + self.times.write(&self.scenario.blob, bytes)
    }

    /// Returns the time to read one body from a site.
    fn had(&mut self, near: u8, site: SiteIndex, bytes: u64) -> Duration {
        let trip = self.trip(near, site);
        let transfer = self.transfer(bytes, (near, site), 1, false);
        trip + transfer + self.times.read(&self.scenario.blob, bytes)
    }

    fn farthest_put(&mut self, near: u8) -> Duration {
        let sites = self.scenario.nearest(near, self.holders.clone());
        let bytes = self.scenario.fragment(self.scenario.size.get());
        let farthest = sites.last().copied().unwrap_or(near);
        self.stored(near, SiteIndex(farthest), bytes)
    }

    /// Returns the time to read from the farthest site that a read needs.
    fn farthest_get(&mut self, near: u8) -> Duration {
        let sites = self.scenario.nearest(near, self.holders.clone());
        let bytes = self.scenario.fragment(self.scenario.size.get());
        let last = usize::from(self.scenario.data).min(sites.len()) - 1;
        self.had(near, SiteIndex(sites[last]), bytes)
    }

    fn transaction(&mut self, near: u8) -> Duration {
        let (size, disk) = (self.scenario.size.get(), self.scenario.disk);
        let bytes = self.scenario.fragment(size);
        let mut takes = ms(megabytes(size) * self.scenario.coding.encode_ms_per_mb);
        for site in self.scenario.nearest(near, self.holders.clone()) {
            let site = SiteIndex(site);
            let transfer = self.transfer(bytes, (near, site), 1, true);
            takes = takes + self.trip(near, site) + transfer + self.times.disk(&disk, true);
        }
        let voters = self.scenario.nearest(near, self.voters.clone());
        let majority = voters.get(voters.len() / 2).copied().unwrap_or(near);
        takes = takes + self.trip(near, SiteIndex(majority)) + self.times.disk(&disk, true);
        takes + self.trip(near, SiteIndex(near)) + self.times.disk(&disk, true)
    }

    fn transaction_of_read(&mut self, near: u8) -> Duration {
        let (size, disk) = (self.scenario.size.get(), self.scenario.disk);
        let bytes = self.scenario.fragment(size);
        let mut takes = self.trip(near, SiteIndex(near)) + self.times.disk(&disk, false);
        let sites = self.scenario.nearest(near, self.holders.clone());
        for site in sites.into_iter().take(usize::from(self.scenario.data)) {
            let site = SiteIndex(site);
            let transfer = self.transfer(bytes, (near, site), 1, false);
            takes = takes + self.trip(near, site) + transfer + self.times.disk(&disk, false);
        }
        takes + ms(megabytes(size) * self.scenario.coding.decode_ms_per_mb)
    }
}
