//! The requests accepted and not finished, by number.
//!
//! Numbers are assigned in sequence, so requests are kept in pages of neighbors: of tens of
//! thousands of requests, the active ones lie close together. A request takes four bytes; the rest
//! is kept with its platter.
//!
//! It is looked up with every request and only iterated by `check`, so the pages are in a hash
//! table with a fixed hash: nothing depends on the order of its entries.

use std::hash::{BuildHasherDefault, Hasher};

use crate::control::RequestId;
use crate::control::state::{Job, PlatterKey, Request};

#[expect(clippy::disallowed_types, reason = "its order is never used; the hash is fixed")]
type Table = std::collections::HashMap<u64, Page, BuildHasherDefault<FibonacciHasher>>;

/// Requests per page, as a power of two.
const PAGE_BITS: u32 = 6;
const PAGE_REQUESTS: usize = 1 << PAGE_BITS;

/// Requests by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    pages: Table,
    len: usize,
}

/// Requests whose numbers differ only in the low bits.
#[derive(Clone, Debug)]
struct Page {
    used: usize,
    requests: [Packed; PAGE_REQUESTS],
}

impl Requests {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, request: RequestId) -> Option<Request> {
        let (page, index) = place(request);
        self.pages.get(&page)?.requests[index].unpack()
    }

    pub(crate) fn insert(&mut self, request: RequestId, entry: Request) {
        let (number, index) = place(request);
        let empty = || Page { used: 0, requests: [Packed::NONE; PAGE_REQUESTS] };
        let page = self.pages.entry(number).or_insert_with(empty);
        let before = std::mem::replace(&mut page.requests[index], Packed::new(entry));
        assert!(before == Packed::NONE, "request {request} is accepted once");
        page.used += 1;
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, request: RequestId) -> Option<Request> {
        let (number, index) = place(request);
        let page = self.pages.get_mut(&number)?;
        let known = std::mem::replace(&mut page.requests[index], Packed::NONE).unpack()?;
        page.used -= 1;
        self.len -= 1;
        if page.used == 0 {
            self.pages.remove(&number);
        }
        Some(known)
    }

    /// Returns all requests, by number.
    pub(crate) fn sorted(&self) -> Vec<(RequestId, Request)> {
        let mut all = Vec::with_capacity(self.len);
        for (number, page) in &self.pages {
            for (index, packed) in (0..).zip(&page.requests) {
                let id = RequestId::new(number << PAGE_BITS | index);
                all.extend(packed.unpack().map(|request| (id, request)));
            }
        }
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }
}

/// Returns the page of a request, and its index there.
fn place(request: RequestId) -> (u64, usize) {
    let index = usize::try_from(request.get() % (1 << PAGE_BITS)).unwrap_or(0);
    (request.get() >> PAGE_BITS, index)
}

/// A platter and a job packed into one number, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packed(u32);

impl Packed {
    const NONE: Self = Self(u32::MAX);
    /// Bits of the job.
    const JOB_BITS: u32 = 2;

    fn new(request: Request) -> Self {
        let job = match request.job {
            Job::Read => 0,
            Job::Verify => 1,
            Job::Store => 2,
        };
        let PlatterKey(key) = request.platter;
        assert!(key < 1 << (u32::BITS - Self::JOB_BITS), "the platter key is too large to pack");
        Self(key << Self::JOB_BITS | job)
    }

    fn unpack(self) -> Option<Request> {
        let job = match self.0 & ((1 << Self::JOB_BITS) - 1) {
            0 => Job::Read,
            1 => Job::Verify,
            2 => Job::Store,
            _ => return None,
        };
        Some(Request { platter: PlatterKey(self.0 >> Self::JOB_BITS), job })
    }
}

/// Hashes numbers assigned in sequence (Fibonacci hashing).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FibonacciHasher(u64);

impl Hasher for FibonacciHasher {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fulgurite_units::Seed;

    use super::Requests;
    use crate::control::RequestId;
    use crate::control::state::{Job, PlatterKey, Request};

    #[test]
    fn requests_behave_like_a_map() {
        let mut random = Seed::new(1).stream();
        let (mut requests, mut known) = (Requests::default(), BTreeMap::new());
        for _ in 0..20_000 {
            let number = random.below(300) << (20 * random.below(4));
            let id = RequestId::new(number);
            assert_eq!(requests.get(id), known.get(&id).copied());
            if requests.get(id).is_some() {
                assert_eq!(requests.remove(id), known.remove(&id));
            } else {
                let job =
                    [Job::Read, Job::Verify, Job::Store][usize::try_from(number % 3).unwrap()];
                let key = u32::try_from(random.below((1 << 30) - 1)).unwrap();
                let request = Request { platter: PlatterKey(key), job };
                requests.insert(id, request);
                known.insert(id, request);
            }
            assert_eq!(requests.len(), known.len());
        }
        assert_eq!(requests.sorted(), known.clone().into_iter().collect::<Vec<_>>());
        known.keys().for_each(|id| assert!(requests.remove(*id).is_some()));
        assert!(requests.pages.is_empty(), "empty pages are removed");
    }
}
