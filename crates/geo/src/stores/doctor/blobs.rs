//! Checks of a blob store.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use fulgurite_units::UnixTime;
use futures::future::join_all;
use futures::{StreamExt as _, TryStreamExt as _};

use super::{CheckResult, DoctorError, describe, passed};
use crate::stores::{Blob, BlobError, Entropy, Key};

/// Number of concurrent writers of one blob, and of rounds.
const WRITERS: usize = 8;
const ROUNDS: usize = 6;
/// Later than every write.
const LATER: UnixTime = UnixTime::from_millis(u64::MAX);

/// A blob store under examination.
pub(super) struct Subject<'a> {
    blobs: &'a dyn Blob,
    second: &'a dyn Blob,
    prefix: &'a Key,
    entropy: &'a Entropy,
    used: Mutex<BTreeSet<Key>>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(
        blobs: &'a dyn Blob,
        second: &'a dyn Blob,
        prefix: &'a Key,
        entropy: &'a Entropy,
    ) -> Self {
        Self { blobs, second, prefix, entropy, used: Mutex::default() }
    }

    pub(super) async fn check_empty(&self) -> Result<(), DoctorError> {
        match self.blobs.list(Some(self.prefix), LATER).next().await.transpose()? {
            Some(found) => Err(DoctorError::Occupied { key: found.key }),
            None => Ok(()),
        }
    }

    fn key(&self, name: &str, number: usize) -> Key {
        let key = self.prefix.join(&format!("{name}-{number}")).expect("a prefix has room");
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        key
    }

    /// Returns bytes that nobody else writes, slightly more than one page of memory.
    fn body(&self) -> Bytes {
        let seed = self.entropy.draw();
        seed.iter().copied().cycle().take(5000).collect()
    }

    /// Checks that a blob is written once and never overwritten.
    pub(super) async fn check_read_back(&self) -> CheckResult {
        let key = self.key("kept", 0);
        let (body, other) = (self.body(), self.body());
        self.blobs.create(&key, body.clone()).await.map_err(|error| describe("a write", &error))?;
        self.blobs.create(&key, body.clone()).await.map_err(|e| describe("the same write", &e))?;
        match self.blobs.create(&key, other).await {
            Err(BlobError::Exists) => {}
            Ok(()) => return Err("a blob was overwritten, or the store claims so".to_owned()),
            Err(error) => return Err(describe("an overwrite of a blob", &error)),
        }
        self.check_stored(self.blobs, &key, &body).await?;
        passed("a blob is written once; an identical write succeeds, any other is refused")
    }

    async fn check_stored(&self, blobs: &dyn Blob, key: &Key, body: &Bytes) -> Result<(), String> {
        let found = blobs.get(key, None).await.map_err(|error| describe("a read", &error))?;
        let meta = blobs.head(key).await.map_err(|error| describe("a head request", &error))?;
        if found != *body || Ok(meta.bytes.get()) != u64::try_from(body.len()) || meta.key != *key {
            return Err("a stored blob differs from the acknowledged one".to_owned());
        }
        Ok(())
    }

    /// Checks that only one of many writers succeeds.
    pub(super) async fn create_race(&self) -> CheckResult {
        let mut without = 0;
        for round in 0..ROUNDS {
            let key = self.key("create-race", round);
            let bodies: Vec<Bytes> = (0..WRITERS).map(|_| self.body()).collect();
            let writers = bodies.iter().enumerate().map(|(writer, body)| {
                [self.blobs, self.second][writer % 2].create(&key, body.clone())
            });
            let answers = join_all(writers).await;
            let won = bodies.iter().zip(&answers).filter(|(_, answer)| answer.is_ok());
            let won: Vec<&Bytes> = won.map(|(body, _)| body).collect();
            match &*won {
                [] => without += 1,
                [winner] => self.check_stored(self.blobs, &key, winner).await?,
                several => {
                    let count = several.len();
                    return Err(format!("{count} of {WRITERS} writers of one blob won"));
                }
            }
        }
        if without == ROUNDS {
            return Err(format!("no round of {ROUNDS} had a winner"));
        }
        let with = ROUNDS - without;
        passed(format!("{with} rounds of {WRITERS} writers had one winner, {without} had none"))
    }

    /// Checks that another connection reads a write at once.
    pub(super) async fn second_connection(&self) -> CheckResult {
        for round in 0..ROUNDS {
            let (key, body) = (self.key("second", round), self.body());
            self.blobs.create(&key, body.clone()).await.map_err(|e| describe("a write", &e))?;
            self.check_stored(self.second, &key, &body).await?;
        }
        passed(format!("{ROUNDS} blobs were read over another connection at once"))
    }

    /// Checks range reads.
    pub(super) async fn ranges(&self) -> CheckResult {
        let (key, body) = (self.key("ranges", 0), self.body());
        self.blobs.create(&key, body.clone()).await.map_err(|error| describe("a write", &error))?;
        for (begin, end) in [(0, 1), (0, 5000), (17, 4099), (4999, 5000)] {
            let part = self.blobs.get(&key, Some(begin..end)).await;
            let part = part.map_err(|error| describe("a range read", &error))?;
            let whole = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
            if whole.and_then(|(begin, end)| body.get(begin..end)) != Some(&*part) {
                return Err(format!("bytes {begin} to {end} differ from what was written"));
            }
        }
        for (begin, end) in [(4000, 6000), (6000, 7000)] {
            match self.blobs.get(&key, Some(begin..end)).await {
                Err(BlobError::Corrupt(_)) => {}
                Ok(part) => {
                    let (have, need) = (part.len(), end - begin);
                    return Err(format!("a read past the end returned {have} of {need} bytes"));
                }
                Err(error) => return Err(describe("a read past the end", &error)),
            }
        }
        passed("range reads return the requested bytes and end with the blob")
    }

    /// Checks that removed blobs are gone and not listed.
    pub(super) async fn removal(&self) -> CheckResult {
        let (key, body) = (self.key("removal", 0), self.body());
        let is_absent = |found: Result<Bytes, BlobError>| match found {
            Err(BlobError::NotFound) => Ok(()),
            Ok(_) => Err("a missing blob was read".to_owned()),
            Err(error) => Err(describe("a read of a missing blob", &error)),
        };
        is_absent(self.blobs.get(&key, None).await)?;
        self.blobs.delete(&key).await.map_err(|e| describe("a removal of a missing blob", &e))?;
        self.blobs.create(&key, body).await.map_err(|error| describe("a write", &error))?;
        let listed = |before| self.second.list(Some(self.prefix), before).try_collect::<Vec<_>>();
        let found = listed(LATER).await.map_err(|error| describe("a list", &error))?;
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let keys: BTreeSet<Key> = found.into_iter().map(|meta| meta.key).collect();
        if !keys.contains(&key) || !keys.is_subset(&used) {
            return Err(format!("{} blobs are listed, but not the existing ones", keys.len()));
        }
        let older = listed(UnixTime::from_millis(0)).await.map_err(|e| describe("a list", &e))?;
        if !older.is_empty() {
            return Err(format!("{} blobs are listed, though none is that old", older.len()));
        }
        self.blobs.delete(&key).await.map_err(|error| describe("a removal", &error))?;
        is_absent(self.second.get(&key, None).await)?;
        self.blobs.delete(&key).await.map_err(|error| describe("the same removal", &error))?;
        passed("a removed blob is gone, and removing it again is no error")
    }

    /// Removes what the checks left.
    pub(super) async fn clean_up(&self) -> CheckResult {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for key in &used {
            self.blobs.delete(key).await.map_err(|error| describe("a removal", &error))?;
        }
        let left = self.blobs.list(Some(self.prefix), LATER).try_collect::<Vec<_>>().await;
        match left.map_err(|error| describe("a list", &error))?.len() {
            0 => passed(format!("{} blobs removed, none is left", used.len())),
            left => Err(format!("{left} removed blobs are still listed")),
        }
    }
}
