//! Requested restores that were not submitted to the controller yet: by retrieval class, in request
//! order.
//!
//! A million may wait, and the controller only needs the first of each class. The rows have the
//! details; this keeps only a time and an id of each.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use fulgurite_catalog::keys::KeyReader;
use fulgurite_catalog::{Direction, KeyRange, ReadView as _};
use fulgurite_units::{ObjectId, UnixTime};

use crate::model::object::Retrieval;
use crate::rows::{self, RESTORES, RestoreMark, RestoreRow};
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

/// Waiting restores, ordered by time and id.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeMap<Retrieval, BTreeSet<(UnixTime, ObjectId)>>,
}

impl Queue {
    /// Reads all requested restores from the rows.
    pub(super) fn from_rows(state: &ArchiveState) -> Result<Self> {
        let mut queue = Self::default();
        let mut failure = None;
        let all = KeyRange::prefix(b"");
        state.kv.scan(RESTORES, &all, Direction::Ascending, &mut |key, value| {
            let found = KeyReader::new(key).fixed::<16>().map_err(ArchiveError::from);
            let row = rows::decode_row::<RestoreRow>(&*state.kv, RESTORES, value);
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

    /// Adds a request, or a faster one for a queued object.
    pub(super) fn add(&mut self, object: ObjectId, mark: RestoreMark) {
        self.waiting.entry(mark.retrieval).or_default().insert((mark.requested, object));
    }

    /// Removes and returns the first of a retrieval class.
    pub(super) fn take(&mut self, retrieval: Retrieval) -> Option<ObjectId> {
        let (_, object) = self.waiting.get_mut(&retrieval)?.pop_first()?;
        Some(object)
    }
}
