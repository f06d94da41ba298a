//! The set's own state: its tomes and groups, and the holder of each token.
//!
//! ```text
//! space    key       row
//! set      "set"     SetRow: id, layout, code of the groups, tomes
//!          "made", tome   MadeRow: a tome was created, and is not created again
//!          "left", tome   LeavingRow: its member slots move to others, since it is lost or retired
//!          "gone", tome   RetiredRow: it was retired, and does not come back
//!          "starts", tome, "pieces", "index"   StartCountsRow: how often a store was opened
//! groups   group     GroupRow
//! moves    group     MoveRow: a member slot of it moves
//! tokens   token     TokenRow: the epoch, and the holder
//! ```
//!
//! Groups are in the metadata stores of their tomes as well, each of which knows its own. Not here:
//! objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use fulgurite_catalog::keys::{KeyReader, KeyWriter};
use fulgurite_catalog::row::{self, Row, rows_in};
use fulgurite_catalog::{Batch, CatalogError, FjallStore, KeyRange, KeyValue as _, Space};
use fulgurite_disks::make_folder;
use fulgurite_tome_core::group::{Group, Groups, Move, Retirement};
use fulgurite_tome_core::token::{TokenId, TokenState};
use fulgurite_tome_core::{CodeParams, GroupId, Layout, TomeError, TomeId};
use fulgurite_units::TomeSetId;
use serde::{Deserialize, Serialize};

use crate::FailPoints;
use crate::limits::{GROUPS_MAX, TOMES_MAX};
use crate::metadata_store::{config, lock};
use crate::start_counts::{CountedStore, StartCountsRow};
use crate::{Result, TomesError};

const SET: Space = Space::new("set");
const GROUPS: Space = Space::new("groups");
const TOKENS: Space = Space::new("tokens");
const MOVES: Space = Space::new("moves");
const SPACES: [Space; 4] = [SET, GROUPS, TOKENS, MOVES];
const SET_KEY: &[u8] = b"set";
const MADE_KEY: &[u8] = b"made";
const LEAVING_KEY: &[u8] = b"left";
const RETIRED_KEY: &[u8] = b"gone";
const STARTS_KEY: &[u8] = b"starts";
const PIECES_KEY: &[u8] = b"pieces";
const INDEX_KEY: &[u8] = b"index";
/// The folder of the store itself.
const STORE: &str = "set";

/// Parameters of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetRow {
    pub(crate) set: TomeSetId,
    /// Layout of each tome.
    pub(crate) layout: Layout,
    /// Code of each group.
    pub(crate) split: CodeParams,
    pub(crate) tomes: u32,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupRow(pub(crate) Group);

/// State of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenRow(pub(crate) TokenState);

/// Marks a tome as created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeRow(pub(crate) TomeId);

/// Marks a tome whose member slots move to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeavingRow(pub(crate) TomeId);

/// Marks a tome as retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RetiredRow(pub(crate) TomeId);

/// A move of a member slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MoveRow(pub(crate) Move);

impl Row for LeavingRow {
    const VERSION: u8 = 1;
}

impl Row for RetiredRow {
    const VERSION: u8 = 1;
}

impl Row for MoveRow {
    const VERSION: u8 = 1;
}

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

/// The set's own state, on stable storage.
#[derive(Debug)]
pub(crate) struct SetStore {
    store: FjallStore,
    _lock: File,
}

impl SetStore {
    /// Opens the store of a set; with `is_new`, creates it if missing, or adds more tomes. Returns
    /// how many were added to an existing set.
    ///
    /// # Errors
    /// [`TomesError::InUse`] when another process has it, [`TomesError::NotCreated`] when there is
    /// none, [`TomesError::Invalid`] when the set has another layout or code.
    pub(crate) fn open(
        folder: &Path,
        requested: &SetRow,
        is_new: bool,
        fail: &FailPoints,
    ) -> Result<(Self, SetRow, u32)> {
        if is_new {
            make_folder(folder).map_err(TomesError::io("make", folder))?;
        }
        let none = || TomesError::NotCreated { folder: folder.to_owned() };
        if !is_new && !folder.join(STORE).is_dir() {
            return Err(none());
        }
        let lock = lock(folder)?;
        let mut found = None;
        let opened = FjallStore::open_if(&folder.join(STORE), &SPACES, &config(), |view| {
            found = row::get::<SetRow>(view, SET, SET_KEY)?;
            match &found {
                None if !is_new => Err(none()),
                Some(row) if !row.may_become(requested, is_new) => {
                    Err(TomesError::Invalid { what: format!("the set has {row}, not {requested}") })
                }
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
            Some(row) if row.tomes < requested.tomes => {
                let grown = this.grow(&row, requested.tomes)?;
                let added = grown.tomes - row.tomes;
                Ok((this, grown, added))
            }
            Some(row) => Ok((this, row, 0)),
            None => {
                fail.pass("tomes-store-made");
                this.make(requested)?;
                Ok((this, requested.clone(), 0))
            }
        }
    }

    /// Writes the parameters of a new set, with as many groups as its regions allow.
    fn make(&self, row: &SetRow) -> Result<()> {
        let mut groups = Groups::new(row.split)?;
        for tome in 0..row.tomes {
            groups.add_tome(TomeId::new(tome), row.layout.parts().regions)?;
        }
        groups.populate();
        if groups.iter().next().is_none() {
            let have = row.tomes as usize;
            let need = row.split.total() as usize;
            return Err(TomeError::TooFewTomes { have, need }.into());
        }
        let mut batch = Batch::new();
        batch.put(SET, SET_KEY, row::encode(row)?)?;
        for group in groups.iter() {
            batch.put(GROUPS, group_key(group.id()), row::encode(&GroupRow(group.clone()))?)?;
        }
        self.apply(batch)
    }

    /// Returns all groups.
    pub(crate) fn groups(&self) -> Result<Vec<Group>> {
        let rows = rows_in::<GroupRow>(&self.store, GROUPS, &KeyRange::all(), GROUPS_MAX)?;
        Ok(rows.into_iter().map(|(_, GroupRow(group))| group).collect())
    }

    /// Returns the state of each token.
    pub(crate) fn tokens(&self) -> Result<BTreeMap<TokenId, TokenState>> {
        let rows = rows_in::<TokenRow>(&self.store, TOKENS, &KeyRange::all(), TOMES_MAX as usize)?;
        let token = |(key, TokenRow(state)): (Vec<u8>, TokenRow)| {
            Ok((TokenId(KeyReader::new(&key).u32()?), state))
        };
        rows.into_iter().map(token).collect()
    }

    /// Records the state of a token; durable when it returns.
    pub(crate) fn record_token(&self, token: TokenId, state: TokenState) -> Result<()> {
        let mut batch = Batch::new();
        let key = KeyWriter::new().u32(token.0).finish();
        batch.put(TOKENS, key, row::encode(&TokenRow(state))?)?;
        self.apply(batch)
    }

    /// Reopens a store that could not be written, and returns the state of each token.
    pub(crate) fn reload_tokens(&self) -> Result<BTreeMap<TokenId, TokenState>> {
        if self.store.check().is_err() {
            self.store.reopen()?;
        }
        self.tokens()
    }

    /// Writes a batch. A store that could not be written before is reopened first.
    fn apply(&self, batch: Batch) -> Result<()> {
        if self.store.check().is_err() {
            self.store.reopen()?;
        }
        Ok(self.store.apply(batch)?)
    }

    /// Whether a tome was created.
    pub(crate) fn is_made(&self, tome: TomeId) -> Result<bool> {
        Ok(row::get::<MadeRow>(&self.store, SET, &made_key(tome))?.is_some())
    }

    /// Records that a tome was created.
    pub(crate) fn record_made(&self, tome: TomeId) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(SET, made_key(tome), row::encode(&MadeRow(tome))?)?;
        self.apply(batch)
    }

    /// Returns how often a store was opened with the set.
    pub(crate) fn starts(&self, counted: CountedStore) -> Result<StartCountsRow> {
        Ok(row::get::<StartCountsRow>(&self.store, SET, &starts_key(counted))?.unwrap_or_default())
    }

    /// Records how often some stores were opened.
    pub(crate) fn record_starts(&self, all: &BTreeMap<CountedStore, StartCountsRow>) -> Result<()> {
        let mut batch = Batch::new();
        for (counted, starts) in all {
            batch.put(SET, starts_key(*counted), row::encode(starts)?)?;
        }
        self.apply(batch)
    }
}

/// Groups, and moves of member slots.
impl SetStore {
    /// Returns the moves in progress.
    pub(crate) fn moves(&self) -> Result<Vec<Move>> {
        let rows = rows_in::<MoveRow>(&self.store, MOVES, &KeyRange::all(), GROUPS_MAX)?;
        Ok(rows.into_iter().map(|(_, MoveRow(planned))| planned).collect())
    }

    /// Returns the tomes whose member slots move to others.
    pub(crate) fn leaving(&self) -> Result<BTreeSet<TomeId>> {
        let range = KeyRange::prefix(&KeyWriter::new().fixed(LEAVING_KEY).finish());
        let rows = rows_in::<LeavingRow>(&self.store, SET, &range, TOMES_MAX as usize)?;
        Ok(rows.into_iter().map(|(_, LeavingRow(tome))| tome).collect())
    }

    /// Returns the leaving tomes without member slots.
    pub(crate) fn out(&self) -> Result<BTreeSet<TomeId>> {
        let groups = self.groups()?;
        let slots = groups.iter().flat_map(|group| group.slots());
        let slot_holders: BTreeSet<TomeId> = slots.map(|slot| slot.tome).collect();
        Ok(self.leaving()?.difference(&slot_holders).copied().collect())
    }

    /// Returns all groups with the free regions of each tome, moves included.
    pub(crate) fn room(&self, row: &SetRow) -> Result<Groups> {
        let mut groups = Groups::new(row.split)?;
        for tome in (0..row.tomes).map(TomeId::new) {
            groups.add_tome(tome, row.layout.parts().regions)?;
        }
        self.groups()?.into_iter().try_for_each(|group| groups.claim(group))?;
        self.moves()?.iter().try_for_each(|planned| groups.plan(planned))?;
        self.leaving()?.into_iter().try_for_each(|tome| groups.leave(tome))?;
        Ok(groups)
    }

    /// Marks a tome whose member slots are to move to others.
    pub(crate) fn leave(&self, tome: TomeId) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(SET, leaving_key(tome), row::encode(&LeavingRow(tome))?)?;
        self.apply(batch)
    }

    /// Retires a tome that is here: its member slots move to others, and it does not come back.
    pub(crate) fn retire_permanently(&self, tome: TomeId) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(SET, leaving_key(tome), row::encode(&LeavingRow(tome))?)?;
        batch.put(SET, retired_key(tome), row::encode(&RetiredRow(tome))?)?;
        self.apply(batch)
    }

    /// Returns the retired tomes.
    pub(crate) fn retired(&self) -> Result<BTreeSet<TomeId>> {
        let range = KeyRange::prefix(&KeyWriter::new().fixed(RETIRED_KEY).finish());
        let rows = rows_in::<RetiredRow>(&self.store, SET, &range, TOMES_MAX as usize)?;
        Ok(rows.into_iter().map(|(_, RetiredRow(tome))| tome).collect())
    }

    /// Plans moves for the member slots of a leaving tome that have none yet, to `targets`. The
    /// plan is persisted before anything moves.
    pub(crate) fn retire(
        &self,
        row: &SetRow,
        tome: TomeId,
        targets: &BTreeSet<TomeId>,
    ) -> Result<Retirement> {
        let mut room = self.room(row)?;
        for other in (0..row.tomes).map(TomeId::new).filter(|other| !targets.contains(other)) {
            room.leave(other)?;
        }
        let retirement = room.retire(tome, &self.moves()?)?;
        if retirement.moves.is_empty() {
            return Ok(retirement);
        }
        let mut batch = Batch::new();
        for planned in &retirement.moves {
            batch.put(MOVES, group_key(planned.group), row::encode(&MoveRow(*planned))?)?;
        }
        self.apply(batch)?;
        Ok(retirement)
    }

    /// Completes a move.
    pub(crate) fn complete_move(&self, done: &Move) -> Result<()> {
        let groups = self.groups()?;
        let found = groups.iter().find(|group| group.id() == done.group);
        let group = found.ok_or(TomeError::NoGroup { group: done.group })?;
        let mut batch = Batch::new();
        if group.slots().get(done.member.as_usize()) == Some(&done.from) {
            let after = GroupRow(group.after(done)?);
            batch.put(GROUPS, group_key(done.group), row::encode(&after)?)?;
        }
        batch.delete(MOVES, group_key(done.group))?;
        self.apply(batch)
    }

    /// Drops a move, since its tome is back.
    pub(crate) fn drop_move(&self, dropped: &Move) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(MOVES, group_key(dropped.group))?;
        self.apply(batch)
    }

    /// Unmarks a tome that was lost and is back: it keeps its remaining member slots.
    pub(crate) fn unmark_leaving(&self, tome: TomeId) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(SET, leaving_key(tome))?;
        self.apply(batch)
    }

    /// Adds tomes up to a count, and makes groups of the free regions.
    fn grow(&self, row: &SetRow, tomes: u32) -> Result<SetRow> {
        let grown = SetRow { tomes, ..row.clone() };
        let mut room = self.room(&grown)?;
        let made = room.populate();
        let mut batch = Batch::new();
        batch.put(SET, SET_KEY, row::encode(&grown)?)?;
        for group in made {
            let row = row::encode(&GroupRow(room.get(group)?.clone()))?;
            batch.put(GROUPS, group_key(group), row)?;
        }
        self.apply(batch)?;
        Ok(grown)
    }
}

fn group_key(group: GroupId) -> Vec<u8> {
    KeyWriter::new().u32(group.get()).finish()
}

fn leaving_key(tome: TomeId) -> Vec<u8> {
    KeyWriter::new().fixed(LEAVING_KEY).u32(tome.get()).finish()
}

fn retired_key(tome: TomeId) -> Vec<u8> {
    KeyWriter::new().fixed(RETIRED_KEY).u32(tome.get()).finish()
}

fn starts_key(counted: CountedStore) -> Vec<u8> {
    match counted {
        CountedStore::Tome(tome) => KeyWriter::new().fixed(STARTS_KEY).u32(tome.get()).finish(),
        CountedStore::Pieces => PIECES_KEY.to_vec(),
        CountedStore::Index => INDEX_KEY.to_vec(),
    }
}

fn made_key(tome: TomeId) -> Vec<u8> {
    KeyWriter::new().fixed(MADE_KEY).u32(tome.get()).finish()
}

impl SetRow {
    /// Whether it is the requested set, or with `may_grow` becomes it with more tomes.
    fn may_become(&self, other: &Self, may_grow: bool) -> bool {
        let is_same_layout = (self.layout, self.split) == (other.layout, other.split);
        let is_larger = may_grow && self.tomes < other.tomes;
        is_same_layout && (self.tomes == other.tomes || is_larger)
    }
}

impl std::fmt::Display for SetRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { layout, split, tomes, .. } = self;
        write!(f, "{tomes} tomes in groups {split}, divided as {:?}", layout.parts())
    }
}
