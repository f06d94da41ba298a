//! Identity of a disk: a file on it that states its set, its number and its layout.
//!
//! It is read after each spin-up, before anything else on the disk. A disk of another set, tome or
//! layout is reported and not used; nothing on it is overwritten. There are two copies, so that the
//! loss of a few hundred bytes is not that of a disk. Not here: blocks.

use fulgurite_disks::{DisksError, Lease};
use fulgurite_tome_core::{Layout, TomeId};
use fulgurite_units::{ErrorKind, TomeSetId, error_chain};
use serde::{Deserialize, Serialize};

use crate::FailPoints;
use crate::limits::IDENTITY_BYTES_MAX;
use crate::{Result, TomesError};

/// The file's name, in the root of a disk.
pub const TOME_FILE: &str = "fulgurite-tome.json";

/// The name of its copy.
pub const TOME_FILE_COPY: &str = "fulgurite-tome.copy.json";

/// Prefix of files with blocks.
pub(crate) const BLOCKS_PREFIX: &str = "blocks-";

/// Format identifier.
const FORMAT: &str = "fulgurite-tome-1";

/// Identity of a tome's disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TomeIdentity {
    format: String,
    /// Its set.
    pub set: TomeSetId,
    /// Its number in the set.
    pub tome: TomeId,
    /// How its disk is divided.
    pub layout: Layout,
}

impl TomeIdentity {
    /// Returns the identity of a new disk.
    #[must_use]
    pub fn new(set: TomeSetId, tome: TomeId, layout: Layout) -> Self {
        Self { format: FORMAT.to_owned(), set, tome, layout }
    }

    /// Describes how another identity differs; `None` when they are equal.
    pub(crate) fn describe_difference(&self, found: &Self) -> Option<String> {
        if found.set != self.set {
            return Some(format!("it belongs to set {}, not to set {}", found.set, self.set));
        }
        if found.tome != self.tome {
            return Some(format!("it belongs to tome {}, not to tome {}", found.tome, self.tome));
        }
        let layouts = (found.layout.parts(), self.layout.parts());
        (layouts.0 != layouts.1).then(|| {
            format!("its layout is {:?}, and that of its set is {:?}", layouts.0, layouts.1)
        })
    }
}

/// Reads the identity of a disk; `None` when it has none.
///
/// # Errors
/// [`TomesError::Damaged`] when neither copy is valid.
pub fn read(lease: &Lease) -> Result<Option<TomeIdentity>> {
    match (read_copy(lease, TOME_FILE)?, read_copy(lease, TOME_FILE_COPY)?) {
        (Found::Whole(found), _) | (_, Found::Whole(found)) => Ok(Some(found)),
        (Found::Nothing, Found::Nothing) => Ok(None),
        (Found::Damaged(what), _) | (_, Found::Damaged(what)) => {
            Err(TomesError::Damaged { tome: TomeId::new(lease.place().get()), what })
        }
    }
}

/// Checks that the disk is the expected one.
///
/// # Errors
/// [`TomesError::WrongDisk`] with what it is instead.
pub(crate) fn check(lease: &Lease, expected: &TomeIdentity) -> Result<()> {
    let tome = expected.tome;
    let wrong = |what| Err(TomesError::WrongDisk { tome, what });
    match read(lease)? {
        Some(found) => expected.describe_difference(&found).map_or(Ok(()), wrong),
        None if lease.exists("")? => wrong("it has no identity file".to_owned()),
        None => wrong("it is missing".to_owned()),
    }
}

/// Writes the identity to a disk. Idempotent; a missing or damaged copy is rewritten.
///
/// # Errors
/// [`TomesError::WrongDisk`] when it is another's, or has blocks but no identity.
pub fn make(lease: &Lease, identity: &TomeIdentity, fail: &FailPoints) -> Result<()> {
    let tome = identity.tome;
    lease.prepare()?;
    match read(lease)? {
        Some(found) => {
            if let Some(what) = identity.describe_difference(&found) {
                return Err(TomesError::WrongDisk { tome, what });
            }
        }
        None => reject_unidentified_blocks(lease, tome)?,
    }
    for name in [TOME_FILE, TOME_FILE_COPY] {
        if !matches!(read_copy(lease, name)?, Found::Whole(_)) {
            write_copy(lease, identity, name)?;
            fail.pass("tomes-disk-named");
        }
    }
    lease.sync_folder("")?;
    Ok(())
}

fn reject_unidentified_blocks(lease: &Lease, tome: TomeId) -> Result<()> {
    for entry in lease.list("")? {
        let name = entry?.name.to_string_lossy().into_owned();
        if name.starts_with(BLOCKS_PREFIX) {
            let what = format!("it has \"{name}\" but no identity file");
            return Err(TomesError::WrongDisk { tome, what });
        }
    }
    Ok(())
}

/// State of one copy.
enum Found {
    Nothing,
    Whole(TomeIdentity),
    Damaged(String),
}

fn read_copy(lease: &Lease, name: &str) -> Result<Found> {
    let file = match lease.open(name) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error.into()),
    };
    let damaged = |what: String| Ok(Found::Damaged(format!("{name}: {what}")));
    let length = file.bytes()?.get();
    if length > IDENTITY_BYTES_MAX {
        return damaged(format!("its size of {length} bytes is over the limit"));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    match file.read_exact_at(&mut bytes, 0) {
        Err(error @ DisksError::Io { .. }) if !error.is_exhausted() => {
            return damaged(error_chain(&error));
        }
        read => read?,
    }
    match serde_json::from_slice::<TomeIdentity>(&bytes) {
        Ok(found) if found.format == FORMAT => Ok(Found::Whole(found)),
        Ok(found) => damaged(format!("its format is {:?} and not {FORMAT:?}", found.format)),
        Err(error) => damaged(error_chain(&error)),
    }
}

/// Writes one copy, in place of a damaged one.
fn write_copy(lease: &Lease, identity: &TomeIdentity, name: &str) -> Result<()> {
    let text = serde_json::to_vec_pretty(identity).map_err(|error| TomesError::Invalid {
        what: format!("cannot encode an identity: {error}"),
    })?;
    let new = format!("{name}.new");
    lease.remove(&new)?;
    let file = lease.create_new(&new)?;
    file.write_all_at(&text, 0)?;
    file.sync()?;
    lease.replace(&new, name)?;
    Ok(lease.sync_folder("")?)
}
