//! The requests accepted and not finished, by number.
//!
//! Looked up with every request and never walked through except by `check`, so a hash table is
//! used, with a fixed hash: nothing depends on the order of its entries.

use std::hash::{BuildHasherDefault, Hasher};

use crate::RequestId;
use crate::state::Request;

#[expect(clippy::disallowed_types, reason = "its order is never used; the hash is fixed")]
type Table = std::collections::HashMap<RequestId, Request, BuildHasherDefault<Spread>>;

/// Requests by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    table: Table,
}

impl Requests {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn get(&self, request: RequestId) -> Option<&Request> {
        self.table.get(&request)
    }

    pub(crate) fn insert(&mut self, request: RequestId, what: Request) {
        let before = self.table.insert(request, what);
        assert!(before.is_none(), "request {request} is accepted once");
    }

    pub(crate) fn remove(&mut self, request: RequestId) -> Option<Request> {
        self.table.remove(&request)
    }

    /// All requests, by number.
    pub(crate) fn sorted(&self) -> Vec<(RequestId, Request)> {
        let mut all: Vec<_> = self.table.iter().map(|(id, request)| (*id, *request)).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }
}

/// Spreads numbers given out in sequence over a table (Fibonacci hashing).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
