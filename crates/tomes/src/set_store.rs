//! What a set keeps of itself: which tomes and groups it has, and who has which token.
//!
//! ```text
//! space    key       row
//! set      "set"     SetRow: id, layout, groups' split, tomes
//!          "made", tome   MadeRow: a tome was made, and is not made again
//! groups   group     GroupRow
//! tokens   token     TokenRow: the epoch, and who has it
//! ```
//!
//! Groups are in the awake stores of their tomes as well, each of which knows its own. Not here:
//! objects.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use fulgurite_catalog::keys::{KeyReader, KeyWriter};
use fulgurite_catalog::row::{self, Row, rows_in};
use fulgurite_catalog::{Batch, CatalogError, FjallStore, KeyRange, KeyValue as _, Space};
use fulgurite_tome::group::{Group, Groups};
use fulgurite_tome::token::{Kept, TokenId};
use fulgurite_tome::{Layout, Split, TomeId};
use fulgurite_units::TomeSetId;
use serde::{Deserialize, Serialize};

use crate::awake_store::{config, lock};
use crate::limits::{GROUPS_MAX, TOMES_MAX};
use crate::{Result, TomesError};

const SET: Space = Space::new("set");
const GROUPS: Space = Space::new("groups");
const TOKENS: Space = Space::new("tokens");
const SPACES: [Space; 3] = [SET, GROUPS, TOKENS];
const SET_KEY: &[u8] = b"set";
const MADE_KEY: &[u8] = b"made";
/// The folder of the store itself.
const STORE: &str = "set";

/// What a set is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetRow {
    pub(crate) set: TomeSetId,
    /// Of each tome.
    pub(crate) layout: Layout,
    /// Of each group.
    pub(crate) split: Split,
    pub(crate) tomes: u32,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupRow(pub(crate) Group);

/// What is known of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenRow(pub(crate) Kept);

/// That a tome was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeRow(pub(crate) TomeId);

impl Row for MadeRow {
    const VERSION: u8 = 1;
}

impl Row for SetRow {
    const VERSION: u8 = 1;
}

impl Row for GroupRow {
    const VERSION: u8 = 1;
}

impl Row for TokenRow {
    const VERSION: u8 = 1;
}

/// What a set keeps of itself, on stable storage.
#[derive(Debug)]
pub(crate) struct SetStore {
    store: FjallStore,
    _lock: File,
}

impl SetStore {
    /// Opens the store of a set; with `new`, makes one where none is.
    ///
    /// # Errors
    /// [`TomesError::InUse`] when another process has it, [`TomesError::Invalid`] when there is
    /// none, or it is of a set that is divided otherwise.
    pub(crate) fn open(folder: &Path, wanted: &SetRow, is_new: bool) -> Result<(Self, SetRow)> {
        if is_new {
            std::fs::create_dir_all(folder).map_err(TomesError::io("make", folder))?;
        }
        let none = || TomesError::Invalid {
            what: format!("there is no set of tomes in \"{}\"", folder.display()),
        };
        if !is_new && !folder.join(STORE).is_dir() {
            return Err(none());
        }
        let lock = lock(folder)?;
        let mut found = None;
        let opened = FjallStore::open_if(&folder.join(STORE), &SPACES, &config(), |view| {
            found = row::get::<SetRow>(view, SET, SET_KEY)?;
            match &found {
                None if !is_new => Err(none()),
                Some(row) if !row.is_divided_as(wanted) => Err(TomesError::Invalid {
                    what: format!("the set is of {row}, and {wanted} is asked for"),
                }),
                None | Some(_) => Ok(()),
            }
        });
        let store = match opened {
            Err(TomesError::Catalog(CatalogError::Locked { path })) => {
                return Err(TomesError::InUse { path });
            }
            opened => opened?,
        };
        let this = Self { store, _lock: lock };
        match found {
            Some(row) => Ok((this, row)),
            None => {
                this.make(wanted)?;
                Ok((this, wanted.clone()))
            }
        }
    }

    /// Writes down what the set is, with groups that take as many regions as can be taken.
    fn make(&self, row: &SetRow) -> Result<()> {
        let mut groups = Groups::new(row.split)?;
        for tome in 0..row.tomes {
            groups.add_tome(TomeId::new(tome), row.layout.parts().regions)?;
        }
        groups.populate();
        if groups.iter().next().is_none() {
            let have = row.tomes as usize;
            let need = row.split.total() as usize;
            return Err(fulgurite_tome::TomeError::TooFewTomes { have, need }.into());
        }
        let mut batch = Batch::new();
        batch.put(SET, SET_KEY, row::encode(row)?)?;
        for group in groups.iter() {
            let key = KeyWriter::new().u32(group.id().get()).finish();
            batch.put(GROUPS, key, row::encode(&GroupRow(group.clone()))?)?;
        }
        Ok(self.store.apply(batch)?)
    }

    /// All groups.
    pub(crate) fn groups(&self) -> Result<Vec<Group>> {
        let rows = rows_in::<GroupRow>(&self.store, GROUPS, &KeyRange::all(), GROUPS_MAX)?;
        Ok(rows.into_iter().map(|(_, GroupRow(group))| group).collect())
    }

    /// What is known of each token.
    pub(crate) fn tokens(&self) -> Result<BTreeMap<TokenId, Kept>> {
        let rows = rows_in::<TokenRow>(&self.store, TOKENS, &KeyRange::all(), TOMES_MAX as usize)?;
        let token = |(key, TokenRow(kept)): (Vec<u8>, TokenRow)| {
            Ok((TokenId(KeyReader::new(&key).u32()?), kept))
        };
        rows.into_iter().map(token).collect()
    }

    /// Keeps what is known of a token; it is on stable storage when it returns.
    pub(crate) fn keep(&self, token: TokenId, kept: Kept) -> Result<()> {
        let mut batch = Batch::new();
        let key = KeyWriter::new().u32(token.0).finish();
        batch.put(TOKENS, key, row::encode(&TokenRow(kept))?)?;
        Ok(self.store.apply(batch)?)
    }

    /// Whether a tome was made.
    pub(crate) fn is_made(&self, tome: TomeId) -> Result<bool> {
        Ok(row::get::<MadeRow>(&self.store, SET, &made_key(tome))?.is_some())
    }

    /// Keeps that it was.
    pub(crate) fn note_made(&self, tome: TomeId) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(SET, made_key(tome), row::encode(&MadeRow(tome))?)?;
        Ok(self.store.apply(batch)?)
    }
}

fn made_key(tome: TomeId) -> Vec<u8> {
    KeyWriter::new().fixed(MADE_KEY).u32(tome.get()).finish()
}

impl SetRow {
    fn is_divided_as(&self, other: &Self) -> bool {
        (self.layout, self.split, self.tomes) == (other.layout, other.split, other.tomes)
    }
}

impl std::fmt::Display for SetRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { layout, split, tomes, .. } = self;
        write!(f, "{tomes} tomes in groups {split}, divided as {:?}", layout.parts())
    }
}
