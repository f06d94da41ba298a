//! Restores that are asked for and that the controller was not told of: by retrieval, in the order
//! of their requests.
//!
//! A million may wait, and the controller needs to know the first of each retrieval only. The rows
//! say what is wanted; here is no more of it than a time and an id.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use fulgurite_catalog::keys::KeyReader;
use fulgurite_catalog::{Direction, KeyRange, ReadView as _};
use fulgurite_units::{ObjectId, UnixTime};

use crate::ground::Ground;
use crate::objects::object::Retrieval;
use crate::rows::{self, RESTORES, RestoreMark, RestoreRow};
use crate::{ArchiveError, Result};

/// What waits, by time and id.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeMap<Retrieval, BTreeSet<(UnixTime, ObjectId)>>,
}

impl Queue {
    /// All that the rows ask for.
    pub(super) fn of_rows(ground: &Ground) -> Result<Self> {
        let mut queue = Self::default();
        let mut failure = None;
        let all = KeyRange::prefix(b"");
        ground.kv.scan(RESTORES, &all, Direction::Ascending, &mut |key, value| {
            let found = KeyReader::new(key).fixed::<16>().map_err(ArchiveError::from);
            let row = rows::decode_of::<RestoreRow>(&*ground.kv, RESTORES, value);
            match found.and_then(|id| Ok((ObjectId::from_bytes(id), row?))) {
                Ok((object, row)) => {
                    queue.add(object, row.mark);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failure.map_or(Ok(queue), Err)
    }

    /// One more is asked for, or one that was is wanted sooner.
    pub(super) fn add(&mut self, object: ObjectId, mark: RestoreMark) {
        self.waiting.entry(mark.retrieval).or_default().insert((mark.requested, object));
    }

    /// The first of a retrieval.
    pub(super) fn take(&mut self, retrieval: Retrieval) -> Option<ObjectId> {
        let (_, object) = self.waiting.get_mut(&retrieval)?.pop_first()?;
        Some(object)
    }
}
