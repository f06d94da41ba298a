//! Baselines without controllers: the time of one fragment, of an object in one site, and a model
//! of the same design on a replicated database.
//!
//! The last is a MODEL by the text of section 6.4 and no database. A write is one transaction of
//! statements in sequence: a row in each fragment's table, replicated three times within its site;
//! a row in the versions' table, with one replica in each site; and the commit. Each waits for the
//! disks of a majority. The leader of a fragment table is at its site; the leader of the versions'
//! table is at the node's, the best case for the node. A read asks for the version and then for
//! each fragment.

use fulgurite_geo_core::SiteIndex;
use fulgurite_units::{Duration, Instant};

use super::latencies::{megabytes, ms};
use super::run::{Geo, Observation, PendingEvent};
use super::scenario::Design;
use crate::engine::{Context, Observer};

impl Geo {
    /// Starts an operation without a controller; its end is known at once.
    pub(super) fn begin_baseline<O: Observer<Self>>(
        &mut self,
        (key, node_site): (u64, u8),
        put: bool,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let takes = match (self.scenario.design, put) {
            (Design::Local, true) => {
                self.write_time(node_site, SiteIndex(node_site), self.scenario.size.get())
            }
            (Design::Local, false) => {
                self.read_time(node_site, SiteIndex(node_site), self.scenario.size.get())
            }
            (Design::Cockroach, true) => self.transaction(node_site),
            (Design::Cockroach, false) => self.transaction_of_read(node_site),
            (_, true) => self.farthest_put(node_site),
            (_, false) => self.farthest_get(node_site),
        };
        self.waiting += 1;
        let began = ctx.now();
        ctx.put(began + takes, PendingEvent::Plain { key, node_site, began, put });
    }

    pub(super) fn end_baseline<O: Observer<Self>>(
        &mut self,
        (key, node_site): (u64, u8),
        began: Instant,
        put: bool,
        ctx: &mut Context<'_, Self, O>,
    ) {
        let took = ctx.now().since(began);
        ctx.record(&Observation::Ended(key, took.as_nanos()));
        ctx.notify(Observation::Ended(key, took.as_nanos()));
        if put {
            self.stats.puts += 1;
            self.stats.put.add(took);
            self.after_write(key, node_site, true, ctx);
        } else {
            self.stats.gets += 1;
            self.stats.get.add(took);
        }
    }

    /// Returns the time to write one body to a site.
    fn write_time(&mut self, node_site: u8, site: SiteIndex, bytes: u64) -> Duration {
        let trip = self.trip(node_site, site);
        let transfer = self.transfer(bytes, (node_site, site), 1, true);
        trip + transfer + self.times.write(&self.scenario.blob, bytes)
    }

    /// Returns the time to read one body from a site.
    fn read_time(&mut self, node_site: u8, site: SiteIndex, bytes: u64) -> Duration {
        let trip = self.trip(node_site, site);
        let transfer = self.transfer(bytes, (node_site, site), 1, false);
        trip + transfer + self.times.read(&self.scenario.blob, bytes)
    }

    fn farthest_put(&mut self, node_site: u8) -> Duration {
        let sites = self.scenario.nearest(node_site, self.holders.clone());
        let bytes = self.scenario.fragment(self.scenario.size.get());
        let farthest = sites.last().copied().unwrap_or(node_site);
        self.write_time(node_site, SiteIndex(farthest), bytes)
    }

    /// Returns the time to read from the farthest site that a read needs.
    fn farthest_get(&mut self, node_site: u8) -> Duration {
        let sites = self.scenario.nearest(node_site, self.holders.clone());
        let bytes = self.scenario.fragment(self.scenario.size.get());
        let last = usize::from(self.scenario.data).min(sites.len()) - 1;
        self.read_time(node_site, SiteIndex(sites[last]), bytes)
    }

    fn transaction(&mut self, node_site: u8) -> Duration {
        let (size, disk) = (self.scenario.size.get(), self.scenario.disk);
        let bytes = self.scenario.fragment(size);
        let mut takes = ms(megabytes(size) * self.scenario.coding.encode_ms_per_mb);
        for site in self.scenario.nearest(node_site, self.holders.clone()) {
            let site = SiteIndex(site);
            let transfer = self.transfer(bytes, (node_site, site), 1, true);
            takes = takes + self.trip(node_site, site) + transfer + self.times.disk(&disk, true);
        }
        let voters = self.scenario.nearest(node_site, self.voters.clone());
        let majority = voters.get(voters.len() / 2).copied().unwrap_or(node_site);
        takes = takes + self.trip(node_site, SiteIndex(majority)) + self.times.disk(&disk, true);
        takes + self.trip(node_site, SiteIndex(node_site)) + self.times.disk(&disk, true)
    }

    fn transaction_of_read(&mut self, node_site: u8) -> Duration {
        let (size, disk) = (self.scenario.size.get(), self.scenario.disk);
        let bytes = self.scenario.fragment(size);
        let mut takes = self.trip(node_site, SiteIndex(node_site)) + self.times.disk(&disk, false);
        let sites = self.scenario.nearest(node_site, self.holders.clone());
        for site in sites.into_iter().take(usize::from(self.scenario.data)) {
            let site = SiteIndex(site);
            let transfer = self.transfer(bytes, (node_site, site), 1, false);
            takes = takes + self.trip(node_site, site) + transfer + self.times.disk(&disk, false);
        }
        takes + ms(megabytes(size) * self.scenario.coding.decode_ms_per_mb)
    }
}
