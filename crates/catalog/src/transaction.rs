//! One closure's view of the catalog: the store, overlaid by the writes of its group, overlaid by
//! its own writes.
//!
//! ```text
//!   own writes      this closure; dropped as a whole if it fails
//!   group           accepted closures before it, not yet durable
//!   base            a snapshot of the store
//! ```
//!
//! There are no locks and no conflicts, because closures run serially.

use std::cmp::Ordering;
use std::fmt;
use std::iter::Peekable;
use std::ops::ControlFlow;

use crate::batch::Batch;
use crate::{CatalogError, Direction, KeyRange, ReadView, Space, Visitor};

/// Reads and buffered writes of one closure.
pub struct Transaction<'a> {
    base: &'a dyn ReadView,
    spaces: &'a [Space],
    group: &'a Batch,
    own: Batch,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(base: &'a dyn ReadView, spaces: &'a [Space], group: &'a Batch) -> Self {
        Self { base, spaces, group, own: Batch::new() }
    }

    /// Stores `value` under `key`.
    pub fn put(
        &mut self,
        space: Space,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
    ) -> Result<(), CatalogError> {
        self.check_space(space)?;
        self.own.put(space, key, value)
    }

    /// Removes `key`, present or not.
    pub fn delete(&mut self, space: Space, key: impl Into<Vec<u8>>) -> Result<(), CatalogError> {
        self.check_space(space)?;
        self.own.delete(space, key)
    }

    /// Whether nothing has been written so far.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.own.is_empty()
    }

    pub(crate) fn into_writes(self) -> Batch {
        self.own
    }

    // A write to an unknown space fails here, where it affects one closure, and not in the batch.
    fn check_space(&self, space: Space) -> Result<(), CatalogError> {
        if self.spaces.contains(&space) {
            return Ok(());
        }
        Err(CatalogError::UnknownSpace { space: space.name() })
    }
}

impl ReadView for Transaction<'_> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, CatalogError> {
        match self.own.get(space, key).or_else(|| self.group.get(space, key)) {
            Some(written) => Ok(written.map(<[u8]>::to_vec)),
            None => self.base.get(space, key),
        }
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<(), CatalogError> {
        self.check_space(space)?;
        if range.is_empty() {
            return Ok(());
        }
        let mut overlay = overlay(self.group, &self.own, space, range, direction).peekable();
        let mut flow = ControlFlow::Continue(());
        self.base.scan(space, range, direction, &mut |key, value| {
            flow = visit_overlaid(&mut overlay, direction, key, value, visit);
            flow
        })?;
        if flow.is_continue() {
            for (key, written) in overlay {
                if written.is_some_and(|value| visit(key, value).is_break()) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn report_damage(&self, error: &CatalogError) {
        self.base.report_damage(error);
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("own", &self.own).finish_non_exhaustive()
    }
}

/// A key in an overlay with its value; none if it is deleted.
type OverlayRow<'a> = (&'a [u8], Option<&'a [u8]>);

/// Visits the overlay rows that come before `key`, then the row at `key` unless the overlay hides
/// it.
fn visit_overlaid<'a, I: Iterator<Item = OverlayRow<'a>>>(
    overlay: &mut Peekable<I>,
    direction: Direction,
    key: &[u8],
    value: &[u8],
    visit: &mut Visitor<'_>,
) -> ControlFlow<()> {
    while let Some((over, written)) =
        overlay.next_if(|&(over, _)| compare(over, key, direction) != Ordering::Greater)
    {
        if over == key {
            return match written {
                Some(written) => visit(key, written),
                None => ControlFlow::Continue(()),
            };
        }
        if let Some(written) = written {
            visit(over, written)?;
        }
    }
    visit(key, value)
}

/// Merges the writes of both layers within `range`, in `direction`; `own` hides `group`.
fn overlay<'a>(
    group: &'a Batch,
    own: &'a Batch,
    space: Space,
    range: &KeyRange,
    direction: Direction,
) -> impl Iterator<Item = OverlayRow<'a>> {
    let mut below = layer(group, space, range, direction).peekable();
    let mut above = layer(own, space, range, direction).peekable();
    std::iter::from_fn(move || {
        let side = match (below.peek(), above.peek()) {
            (Some(&(below, _)), Some(&(above, _))) => compare(below, above, direction),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        match side {
            Ordering::Less => below.next(),
            Ordering::Equal => {
                below.next();
                above.next()
            }
            Ordering::Greater => above.next(),
        }
    })
}

fn layer<'a>(
    batch: &'a Batch,
    space: Space,
    range: &KeyRange,
    direction: Direction,
) -> impl Iterator<Item = OverlayRow<'a>> {
    let mut writes = batch.writes_in(space, range);
    std::iter::from_fn(move || {
        let writes = writes.as_mut()?;
        let (key, value) = match direction {
            Direction::Ascending => writes.next(),
            Direction::Descending => writes.next_back(),
        }?;
        Some((key.as_slice(), value.as_deref()))
    })
}

fn compare(a: &[u8], b: &[u8], direction: Direction) -> Ordering {
    match direction {
        Direction::Ascending => a.cmp(b),
        Direction::Descending => b.cmp(a),
    }
}
