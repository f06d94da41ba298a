//! What nobody wants goes, when its group spins anyway: stacks of blobs that were deleted or
//! overwritten, and of those whose write was cut short.
//!
//! Only what the index says is unwanted. A stack that it does not know stays where it is: it may be
//! one that a lost index knew.

use super::{Group, Shop};
use crate::Result;
use crate::index::Unwanted;
use crate::stack::file_name;

/// What was swept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Stacks that are gone.
    pub stacks: u64,
    /// Blobs, or tries to write one, none of whose unwanted stacks is left.
    pub blobs: u64,
}

/// Sweeps a group, at most a page of it. What lies on disks that cannot be used waits for them, and
/// what was on disks that were given up is forgotten.
///
/// # Errors
/// Those of the index.
pub fn sweep(shop: &Shop, group: &Group) -> Result<Swept> {
    let mut swept = Swept::default();
    let mut done = Vec::new();
    for unwanted in shop.index.unwanted(group.id)? {
        if sweep_one(shop, group, &unwanted, &mut swept)? {
            swept.blobs += 1;
            done.push(unwanted);
        }
        shop.fail.pass("rack-swept-half");
    }
    shop.index.swept(&done)?;
    shop.fail.pass("rack-swept");
    Ok(swept)
}

/// Whether none of them is left.
fn sweep_one(shop: &Shop, group: &Group, unwanted: &Unwanted, swept: &mut Swept) -> Result<bool> {
    let mut is_done = true;
    for &(index, place) in &unwanted.stacks {
        if shop.places.is_given_up(place)
            || shop.index.needs(group.id, unwanted.blob, index, place)?
        {
            continue;
        }
        let usable = group.usable.contains(&place);
        if usable && shop.remove(place, &file_name(unwanted.blob, index)).is_ok() {
            swept.stacks += 1;
        } else {
            is_done = false;
        }
    }
    Ok(is_done)
}
