//! Readable rows of a damaged catalog: kept where nothing else has the data, and used as evidence
//! where platters and logs have it too.
//!
//! A readable row may be outdated or deleted. So object rows count only for bodies whose keys
//! exist, and everything derivable (queue, totals, segments, plans, slots) is rebuilt.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_catalog::keys::KeyReader;
use fulgurite_catalog::{Damage, FjallStore, Space};
use fulgurite_glass::SalvagedRows;
use fulgurite_units::{ObjectId, UploadId};

use super::evidence::{Bodies, KnownEntry};
use crate::bodies::digest::Checksum;
use crate::bodies::entry::{Entry, PartEntry};
use crate::bodies::key_table::UsedSlot;
use crate::bodies::log::LogKind;
use crate::bodies::unconfirmed::UnconfirmedList;
use crate::model::classes::{Classes, Home, TierName};
use crate::model::names::{BucketName, ObjectName};
use crate::rows::{
    self, BODIES, BUCKETS, BodyRow, BucketRow, CHECKSUMS, COPIES, META, OBJECTS, ObjectRow, PARTS,
    PartRow, Place, RESTORES, RestoreRow, SHREDS, SPACES, UNCONFIRMED, UPLOADS, UnconfirmedRow,
    UploadRow,
};
use crate::{ArchiveError, Result};

/// Rows of a damaged catalog.
#[derive(Debug, Default)]
pub(super) struct Salvaged {
    pub(super) rows: u64,
    pub(super) damages: Vec<Damage>,
    pub(super) buckets: BTreeMap<String, BucketRow>,
    /// By object id, with their names.
    pub(super) objects: BTreeMap<ObjectId, (ObjectName, ObjectRow)>,
    bodies: BTreeMap<Vec<u8>, BodyRow>,
    /// Checksums of parts, by the row keys of their bodies.
    checksums: BTreeMap<Vec<u8>, Checksum>,
    /// By row key, with the upload id.
    pub(super) uploads: BTreeMap<Vec<u8>, (UploadId, UploadRow)>,
    /// By upload and part number.
    pub(super) parts: BTreeMap<UploadId, BTreeMap<Vec<u8>, PartRow>>,
    /// Tiers that belonged to the archive, or that its rows of bodies and copies name.
    pub(super) tiers: BTreeSet<TierName>,
    /// Unconfirmed bodies in its rows.
    pub(super) unconfirmed: UnconfirmedList,
    /// Bodies whose deletion was committed, and their key slots.
    pub(super) shreds: BTreeMap<ObjectId, u32>,
    pub(super) restores: BTreeMap<ObjectId, RestoreRow>,
    /// Rows of the glass tier.
    pub(super) glass: SalvagedRows,
    /// Rows that were read but do not decode.
    pub(super) unreadable: u64,
    /// Why a newer program is needed: the store, or its first row that needs one.
    pub(super) newer: Option<String>,
}

/// Reads all readable rows of the catalog at `path`, without changing it.
pub(super) fn salvage(path: &std::path::Path) -> Result<Salvaged> {
    let mut salvaged = Salvaged::default();
    let report = FjallStore::salvage(path, &SPACES, &mut |space, key, value| {
        if let Err(error) = salvaged.keep(space, key, value) {
            salvaged.unreadable += 1;
            if matches!(error, ArchiveError::Newer { .. }) {
                salvaged.newer.get_or_insert_with(|| error.to_string());
            }
        }
    })?;
    salvaged.rows = report.rows;
    salvaged.damages = report.damages;
    salvaged.newer = report.newer.or(salvaged.newer);
    Ok(salvaged)
}

fn id<T>(key: &[u8], from: fn([u8; 16]) -> T) -> Result<T> {
    let mut reader = KeyReader::new(key);
    let id = from(reader.fixed()?);
    reader.finish()?;
    Ok(id)
}

impl Salvaged {
    /// Keeps a row if its kind is needed; returns an error if it does not decode.
    fn keep(&mut self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        if space == BUCKETS {
            let name = BucketName::try_from(String::from_utf8_lossy(key).into_owned())?.to_string();
            self.buckets.insert(name, rows::decode(space, value)?);
        } else if space == OBJECTS {
            let (bucket, key) = rows::parse_object_key(key)?;
            let row: ObjectRow = rows::decode(space, value)?;
            let name = ObjectName::parse(&bucket, &key, row.version)?;
            self.objects.insert(row.object_id, (name, row));
        } else if space == BODIES {
            let row: BodyRow = rows::decode(space, value)?;
            if let Place::Tier(tier) = &row.place {
                self.tiers.insert(tier.clone());
            }
            self.bodies.insert(key.to_vec(), row);
        } else if space == COPIES {
            self.tiers.insert(rows::decode(space, value)?);
        } else if space == META {
            self.tiers.extend(rows::tiers::parse_claim_key(key));
        } else if space == CHECKSUMS {
            self.checksums.insert(key.to_vec(), rows::decode(space, value)?);
        } else if space == UPLOADS {
            let (_, upload) = rows::parse_upload_key(key)?;
            self.uploads.insert(key.to_vec(), (upload, rows::decode(space, value)?));
        } else if space == PARTS {
            let upload = UploadId::from_bytes(KeyReader::new(key).fixed()?);
            self.parts.entry(upload).or_default().insert(key.to_vec(), rows::decode(space, value)?);
        } else if space == SHREDS {
            self.shreds.insert(id(key, ObjectId::from_bytes)?, rows::decode(space, value)?);
        } else if space == UNCONFIRMED {
            let row: UnconfirmedRow = rows::decode(space, value)?;
            self.unconfirmed.insert(row.body.body_id, row.object_id);
        } else if space == RESTORES {
            self.restores.insert(id(key, ObjectId::from_bytes)?, rows::decode(space, value)?);
        } else {
            self.glass.keep(space, key, value)?;
        }
        Ok(())
    }

    /// Returns the unconfirmed bodies in its rows or `listed`, without objects that it shows.
    pub(super) fn unconfirmed(&self, listed: &UnconfirmedList) -> UnconfirmedList {
        let all = listed.iter().chain(self.unconfirmed.iter());
        all.filter(|(_, object)| !self.objects.contains_key(object)).collect()
    }

    /// Adds what its rows contain about bodies whose keys are in `slots` to the evidence.
    pub(super) fn add_evidence(
        &mut self,
        slots: &BTreeMap<ObjectId, UsedSlot>,
        bodies: &mut Bodies,
    ) {
        let rows = std::mem::take(&mut self.bodies);
        let mut checksums = std::mem::take(&mut self.checksums);
        for (object_id, (name, object)) in &self.objects {
            let created =
                self.buckets.get(name.bucket.as_str()).map_or(object.modified, |row| row.created);
            for index in 0..object.body_count {
                let row_key = rows::body_key(*object_id, index);
                let Some(row) = rows.get(&row_key) else { continue };
                let Some(&slot) = slots.get(&row.body_id) else { continue };
                let found = bodies.entry(row.body_id).or_default();
                if found.known.is_none() {
                    let body = (index, row.bytes, row.digest);
                    let entry = Entry::build(name.clone(), created, object, body);
                    let entry = entry.with_part(checksums.remove(&row_key));
                    found.record_entry(KnownEntry { entry: Box::new(entry), slot, written: None });
                }
                found.row = Some(Box::new(row.clone()));
            }
        }
    }

    /// Returns incomplete uploads with their usable parts, and the number of lost parts. A usable
    /// part has a key in `slots`, is not part of an object, and `is_there` finds its bytes.
    pub(super) fn open_uploads(
        &mut self,
        slots: &BTreeMap<ObjectId, UsedSlot>,
        taken: &BTreeSet<ObjectId>,
        completed: &BTreeSet<UploadId>,
        is_there: &dyn Fn(&BodyRow) -> bool,
    ) -> (Uploads, u64) {
        let mut uploads = Uploads::default();
        let mut lost = 0;
        for (key, (upload, row)) in std::mem::take(&mut self.uploads) {
            if completed.contains(&upload) {
                continue;
            }
            for (part_key, mut part) in self.parts.remove(&upload).unwrap_or_default() {
                let slot = slots.get(&part.body.body_id);
                match slot.filter(|_| !taken.contains(&part.body.body_id) && is_there(&part.body)) {
                    Some(slot) => {
                        part.body.key_slot = slot.index;
                        uploads.parts.insert(part_key, part);
                    }
                    None => lost += 1,
                }
            }
            uploads.uploads.insert(key, row);
        }
        (uploads, lost)
    }
}

/// Uploads that continue after a recovery.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    pub(super) uploads: BTreeMap<Vec<u8>, UploadRow>,
    pub(super) parts: BTreeMap<Vec<u8>, PartRow>,
}

impl Uploads {
    /// Adds a part that a log has and the catalog did not, with its upload.
    pub(super) fn add(&mut self, part: &PartEntry, body: BodyRow, classes: &Classes) {
        let key = rows::upload_key(&part.bucket, &part.key, part.upload_id);
        let is_online = body.in_log().is_some_and(|log| log.kind == LogKind::Online);
        let home = if is_online { Home::Online } else { classes.staged(part.class) };
        self.uploads.entry(key).or_insert_with(|| UploadRow {
            initiated: part.initiated,
            class: part.class,
            meta: part.meta.clone(),
            algorithm: part.algorithm,
            full_object: part.full_object,
            home,
        });
        let (md5, modified, checksum) = (part.md5, part.modified, part.checksum.clone());
        self.parts.entry(rows::part_key(part.upload_id, part.number)).or_insert(PartRow {
            body,
            md5,
            modified,
            checksum,
        });
    }
}
