//! Reads in progress: a seek, then a flow over the links of a server.

use fulgurite_units::{Duration, Instant};

use super::result::Times;
use super::scenario::{Disks, Network};
use super::share::{Kind, LinkUsage, Server};

/// A read or a rebuild of a stack, by its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OpIndex(pub(crate) u32);

/// An operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) kind: Kind,
    pub(crate) times: Times,
    pub(crate) group: u32,
    /// Bytes per stack.
    pub(crate) stack: f64,
}

/// All operations that wait or are in progress; slots are reused.
#[derive(Debug, Default)]
pub(crate) struct Ops {
    all: Vec<Op>,
    free: Vec<u32>,
}

impl Ops {
    pub(crate) fn put(&mut self, op: Op) -> OpIndex {
        if let Some(place) = self.free.pop() {
            self.all[place as usize] = op;
            return OpIndex(place);
        }
        self.all.push(op);
        OpIndex(u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX))
    }

    pub(crate) fn get(&self, index: OpIndex) -> &Op {
        &self.all[index.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, index: OpIndex) -> &mut Op {
        &mut self.all[index.0 as usize]
    }

    pub(crate) fn take(&mut self, index: OpIndex) -> Op {
        self.free.push(index.0);
        self.all[index.0 as usize]
    }

    /// Returns whether there are no operations.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.all.len()
    }
}

/// The servers and their flows.
#[derive(Debug)]
pub(crate) struct Transfers {
    servers: Vec<Server<OpIndex>>,
    seek: Duration,
}

impl Transfers {
    pub(crate) fn new(disks: &Disks, network: &Network) -> Self {
        let bytes = |gbps: f64| gbps * 1e9 / 8.0;
        let links = [bytes(network.root_gbps), bytes(network.nic_gbps)];
        let read = LinkUsage([f64::from(disks.read_stacks), f64::from(disks.stacks)]);
        // A rebuild reads the other stacks of the blob and writes one.
        let rebuild = LinkUsage([f64::from(disks.read_stacks), 0.0]);
        let server = Server::new(links, disks.rate, [read, rebuild]);
        Self { servers: vec![server; network.servers as usize], seek: disks.seek }
    }

    /// Returns the seek time of a disk.
    pub(crate) const fn seek(&self) -> Duration {
        self.seek
    }

    /// Returns the server of a half of the rack.
    pub(crate) const fn server_of(&self, half: usize) -> usize {
        half % self.servers.len()
    }

    /// Starts the flow of an operation after its seek.
    pub(crate) fn begin(&mut self, now: Instant, server: usize, index: OpIndex, op: &Op) {
        self.servers[server].begin(now, op.kind, op.stack, index);
    }

    /// Removes and returns an operation of a server that has ended by now.
    pub(crate) fn take_ended(&mut self, now: Instant, server: usize) -> Option<OpIndex> {
        self.servers[server].take_ended(now)
    }

    /// Returns when the next one ends, if nothing changes before.
    pub(crate) fn next_end(&self, server: usize) -> Option<(Instant, u64)> {
        self.servers[server].next_end()
    }

    /// Returns whether nothing has changed since this version.
    pub(crate) fn is_current(&self, server: usize, version: u64) -> bool {
        self.servers[server].is_current(version)
    }
}
