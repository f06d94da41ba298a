//! Recovery: rebuilds the catalog from platters, logs and keys, and from the readable rows of a
//! damaged catalog.
//!
//! ```text
//! damaged catalog --salvaged--> readable rows            evidence, and data found nowhere else
//! every *.glass   --lists-----> bodies on glass
//! every *.seg     --records---> bodies in logs
//! bodies with keys --> objects with all their bodies --> rows of a new catalog
//! ```
//!
//! A body without a key was deleted, and stays deleted. Only the new catalog is written, and it is
//! renamed into place when it is complete. Before that, segments that it does not name are moved to
//! the orphans, so that no start unlinks them. The report lists what was not recovered.

mod body_reader;
mod context;
pub(crate) mod evidence;
mod glass;
mod inventory;
pub(crate) mod logs;
mod objects;
mod rebuild;
mod salvage;
mod shard_chain;
mod tiers;

use std::collections::BTreeSet;
use std::sync::Mutex;

use fulgurite_glass::{Recovered, platter_files};
use fulgurite_units::{ArchiveId, Clock, Instant, ObjectId};

use self::context::RecoveryContext;
use self::evidence::Bodies;
use self::inventory::Inventory;
use self::logs::{LogFindings, Segment};
use self::objects::Objects;
use self::rebuild::{Tally, Writer, write_objects, write_tally, write_uploads};
use self::salvage::{Salvaged, salvage};
use self::tiers::TierScan;
use crate::bodies::cipher::cipher_bytes;
use crate::bodies::entry::PartEntry;
use crate::bodies::key_files;
use crate::bodies::unconfirmed::UnconfirmedList;
use crate::config::ArchiveConfig;
use crate::directory::{Paths, is_empty_dir};
use crate::model::classes::TierName;
use crate::rows::{BodyRow, BucketRow, LoggedBody, Place};
use crate::{ArchiveError, Result, clock};

/// Progress of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RecoverProgress {
    /// Platters whose file lists were read.
    pub platters: u64,
    /// Platters to read.
    pub platters_total: u64,
    /// Entries found on glass, or bodies found in total.
    pub entries: u64,
}

/// The result of a recovery.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct RecoverReport {
    /// Platters read.
    pub platters: u64,
    /// Missing platters of known sets whose lists were reconstructed from their sets.
    pub platters_rebuilt: u64,
    /// Platter-sets.
    pub sets: u64,
    /// Log segments read, including orphans.
    pub segments: u64,
    /// Buckets.
    pub buckets: u64,
    /// Complete objects.
    pub objects: u64,
    /// Of those, objects that wait for glass.
    pub staged: u64,
    /// Of those, objects of class `STANDARD`.
    pub online: u64,
    /// Plaintext bytes of those objects.
    pub bytes: u64,
    /// Bodies on glass without a key: deleted or overwritten, and they stay deleted.
    pub shredded: u64,
    /// Multipart uploads that can continue.
    pub uploads: u64,
    /// Parts of uploads that were lost and have to be sent again.
    pub parts_lost: u64,
    /// Objects whose name a later one has. They are among `unconfirmed_names`.
    pub overwritten: u64,
    /// Complete objects that are not shown because it is unknown whether they should be: a start
    /// found them unconfirmed, or a later one has the name. Bytes and keys stay until their names
    /// are put or deleted.
    pub unconfirmed: u64,
    /// Names of those objects, and of unconfirmed ones with a missing body.
    pub unconfirmed_names: Vec<String>,
    /// Objects with a body that is missing or damaged.
    pub incomplete: u64,
    /// Names of those objects.
    pub lost: Vec<String>,
    /// Keys of bodies of which nothing was found: interrupted uploads, or bodies in tiers, platters
    /// and segments that are not here. No start destroys them.
    pub keys_unexplained: u64,
    /// Segments moved to the orphans because they hold bodies that were not recovered.
    pub set_aside: u64,
    /// Rows read from a damaged catalog.
    pub rows_salvaged: u64,
    /// Damage found in it.
    pub catalog_damages: Vec<String>,
    /// Where it was moved.
    pub catalog_kept: Option<String>,
    /// Platter files, entries and records that could not be used, each with its reason.
    pub unusable: Vec<String>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Of those, the seconds of each step.
    pub steps: RecoverSteps,
}

/// Wall-clock seconds of the steps of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct RecoverSteps {
    /// Reading a damaged catalog.
    pub salvage: f64,
    /// Opening the key table.
    pub keys: f64,
    /// Reading the file lists of platters.
    pub glass: f64,
    /// Scanning logs, and opening the entries in them.
    pub logs: f64,
    /// Assembling objects.
    pub objects: f64,
    /// Writing the rows of the new catalog.
    pub rows: f64,
    /// Renaming it into place.
    pub publish: f64,
}

/// Measures consecutive steps.
struct Stopwatch<'a>(&'a Clock, Instant);

impl Stopwatch<'_> {
    /// Returns the seconds since the previous step.
    fn lap(&mut self) -> f64 {
        let now = self.0.passed();
        let seconds = now.since(self.1).as_secs_f64();
        self.1 = now;
        seconds
    }
}

/// Options of a recovery beyond what is certain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoverOptions {
    /// Rebuild even an undamaged catalog, and show unconfirmed objects.
    pub salvage: bool,
    /// Of several objects of one name show the earliest instead of the last.
    pub earliest: bool,
    /// Tiers of the damaged catalog that are left out: the objects in them are not recovered.
    pub without_tiers: BTreeSet<TierName>,
}

/// Rebuilds the catalog of `config.data`. The directory must not be in use. An existing catalog is
/// read as far as possible; an undamaged one is left alone, unless it is to be salvaged.
///
/// # Errors
/// When the catalog is undamaged or names a tier that is neither configured nor to be left out, the
/// keys are missing, nothing is found although logs are not empty, or the disk fails. What cannot
/// be used is in the report.
pub fn recover(
    config: ArchiveConfig,
    options: RecoverOptions,
    progress: &(dyn Fn(RecoverProgress) + Sync),
) -> Result<RecoverReport> {
    let clock = clock::system();
    let mut watch = Stopwatch(&clock, clock.passed());
    let paths = Paths::new(&config.data);
    let lock = context::lock(&config)?;
    if !key_files::any_exists(&config) {
        return Err(ArchiveError::Unusable {
            path: paths.key_table().display().to_string(),
            reason: "the key table is missing; restore it or its copy from a backup".to_owned(),
        });
    }
    if !paths.platters().exists() {
        return Err(ArchiveError::Unusable {
            path: paths.platters().display().to_string(),
            reason: "the folder of the platters is missing: bring it back; or, if there were no \
                     platters or they are lost, create it empty and recover from logs and tiers"
                .to_owned(),
        });
    }
    let mut report = RecoverReport::default();
    let mut salvaged = read_damaged(&paths, options.salvage, &mut report)?;
    refuse_missing_tiers(&config, &salvaged, &options.without_tiers)?;
    report.steps.salvage = watch.lap();
    let platters = platter_files(&paths.platters())?;
    let segments = logs::segments(&paths)?;
    logs::refuse_newer(&segments)?;
    let found = || find_archive(&platters, &segments);
    let context = RecoveryContext::open(config, lock, found)?;
    report.steps.keys = watch.lap();

    let mut bodies = Bodies::new();
    let glass = glass::open(&context, &platters, &mut report)?;
    glass::read_lists(&glass, &context, &mut bodies, &mut report, progress);
    let tiers = tiers::read(&context, &mut bodies, &mut report)?;
    let listed = UnconfirmedList::read(&context.paths)?;
    let unconfirmed =
        if options.salvage { UnconfirmedList::default() } else { salvaged.unconfirmed(&listed) };
    report.steps.glass = watch.lap();
    let findings = scan_logs(&context, segments, &unconfirmed, &mut bodies, &mut report, progress);
    report.steps.logs = watch.lap();
    salvaged.add_evidence(&context.slots, &mut bodies);
    report.keys_unexplained = count_unexplained_keys(&context, &bodies, &salvaged);
    let mut inventory = Inventory::new(&context, &glass, &findings.segments, &salvaged);
    let parts = collect_parts(&context, &bodies, &findings);
    keep_parts(&mut bodies, &findings);
    let mut objects = Objects::new(std::mem::take(&mut salvaged.shreds), options.earliest);
    objects.assemble(bodies, &mut inventory);
    refuse_empty_result(&context, objects.is_empty() && parts.is_empty(), &glass, &findings)?;
    report.steps.objects = watch.lap();
    let tally =
        write_rows(&context, objects, salvaged, parts, (&glass, &tiers), &inventory, &mut report)?;
    report.steps.rows = watch.lap();
    report.set_aside = set_aside(&context, &findings.segments, &tally)?;
    write_unconfirmed(&context, &listed, &tally)?;
    let moved_to = context.publish(clock.now())?;
    report.catalog_kept = moved_to.map(|path| path.display().to_string());
    report.steps.publish = watch.lap();
    report.seconds = clock.passed().since(Instant::ZERO).as_secs_f64();
    Ok(report)
}

/// Reads the existing catalog, if there is one.
fn read_damaged(paths: &Paths, is_forced: bool, report: &mut RecoverReport) -> Result<Salvaged> {
    if is_empty_dir(&paths.catalog()) {
        return Ok(Salvaged::default());
    }
    let salvaged = salvage(&paths.catalog())?;
    if let Some(newer) = salvaged.newer.as_ref().filter(|_| !is_forced) {
        return Err(ArchiveError::Unusable {
            path: paths.catalog().display().to_string(),
            reason: format!(
                "{newer}: recover with that program, because this one would drop the rows it \
                 cannot read; to do so anyway, pass --salvage"
            ),
        });
    }
    if salvaged.damages.is_empty() && salvaged.unreadable == 0 && !is_forced {
        return Err(ArchiveError::Unusable {
            path: paths.catalog().display().to_string(),
            reason: format!(
                "the catalog is undamaged, and all its {} rows are readable: start the archive, or \
                 rebuild the catalog anyway with --salvage",
                salvaged.rows
            ),
        });
    }
    report.rows_salvaged = salvaged.rows;
    let text = |damage: &fulgurite_catalog::Damage| {
        format!("{}: {}", damage.path.display(), damage.problem)
    };
    report.catalog_damages = salvaged.damages.iter().map(text).collect();
    if salvaged.unreadable > 0 {
        report.catalog_damages.push(format!("{} rows do not decode", salvaged.unreadable));
    }
    Ok(salvaged)
}

/// Refuses a configuration without a tier that the damaged catalog names, unless it is `left_out`:
/// the objects in it would not be recovered.
fn refuse_missing_tiers(
    config: &ArchiveConfig,
    salvaged: &Salvaged,
    left_out: &BTreeSet<TierName>,
) -> Result<()> {
    let is_missing =
        |tier: &&TierName| !config.tiers.contains_key(*tier) && !left_out.contains(*tier);
    let missing: Vec<&str> =
        salvaged.tiers.iter().filter(is_missing).map(TierName::as_str).collect();
    let [first, ..] = missing[..] else { return Ok(()) };
    let path = config.data.join("catalog").display().to_string();
    Err(ArchiveError::Unusable {
        path: config.data.display().to_string(),
        reason: format!(
            "\"{path}\" names tiers that the configuration does not have: \"{}\". Pass --config \
             FILE, or --tier as to serve. What is in a tier that is left out is not recovered, but \
             keeps its keys; to leave one out, pass --without-tier {first}",
            missing.join("\", \"")
        ),
    })
}

fn find_archive(platters: &[std::path::PathBuf], segments: &[Segment]) -> Option<ArchiveId> {
    let on_glass = fulgurite_glass::find_archive(platters).ok().flatten();
    on_glass.or_else(|| segments.iter().find_map(logs::archive_of))
}

fn scan_logs(
    context: &RecoveryContext,
    segments: Vec<Segment>,
    unconfirmed: &UnconfirmedList,
    bodies: &mut Bodies,
    report: &mut RecoverReport,
    progress: &(dyn Fn(RecoverProgress) + Sync),
) -> LogFindings {
    let last = Mutex::new(RecoverProgress {
        platters: report.platters,
        platters_total: report.platters,
        ..RecoverProgress::default()
    });
    let keys = (&context.keys, &context.slots);
    let mut findings = logs::scan(segments, keys, unconfirmed, bodies, &|entries| {
        let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        last.entries = entries;
        progress(*last);
    });
    report.segments = findings.segments.len() as u64;
    report.unusable.append(&mut findings.broken);
    findings
}

/// Treats a body with only a part's entry as a part: if a crash interrupted the completion, the
/// upload continues.
fn keep_parts(bodies: &mut Bodies, findings: &LogFindings) {
    for body in findings.parts.keys() {
        if let Some(found) = bodies.get_mut(body) {
            found.unconfirmed = None;
        }
    }
}

/// Writes the list of unconfirmed bodies, before the new catalog is renamed into place. Objects
/// that the catalog shows are removed from it.
fn write_unconfirmed(
    context: &RecoveryContext,
    listed: &UnconfirmedList,
    tally: &Tally,
) -> Result<()> {
    let has_unconfirmed = listed.iter().next().is_some();
    let shown: BTreeSet<ObjectId> =
        tally.objects.iter().copied().filter(|_| has_unconfirmed).collect();
    let is_left = |(body, object): &(ObjectId, ObjectId)| {
        context.slots.contains_key(body) && !shown.contains(object)
    };
    let unconfirmed: UnconfirmedList =
        listed.iter().filter(is_left).chain(tally.unconfirmed.iter()).collect();
    unconfirmed.write(&context.paths)
}

/// Returns parts of incomplete uploads whose bytes are all in a log.
fn collect_parts(
    context: &RecoveryContext,
    bodies: &Bodies,
    findings: &LogFindings,
) -> Vec<(PartEntry, BodyRow)> {
    let mut parts = Vec::new();
    for (&body_id, part) in &findings.parts {
        let Some(found) = bodies.get(&body_id) else { continue };
        let Some(slot) = context.slots.get(&body_id) else { continue };
        let Some((kind, extents)) = found.log_extents(cipher_bytes(part.body_bytes)) else {
            continue;
        };
        let body = BodyRow {
            body_id,
            key_slot: slot.index,
            bytes: part.body_bytes,
            digest: part.body_digest,
            place: Place::Log(LoggedBody::new(kind, extents, found.framing_in(kind))),
            restored: None,
        };
        parts.push((PartEntry::clone(part), body));
    }
    parts
}

fn count_unexplained_keys(context: &RecoveryContext, bodies: &Bodies, salvaged: &Salvaged) -> u64 {
    let is_explained = |body| bodies.contains_key(body) || salvaged.shreds.contains_key(body);
    let in_parts = salvaged.parts.values().flat_map(|parts| parts.values());
    let in_parts: BTreeSet<_> = in_parts.map(|part| part.body.body_id).collect();
    let unexplained =
        context.slots.keys().filter(|body| !is_explained(*body) && !in_parts.contains(body));
    unexplained.count() as u64
}

/// Refuses to create an empty catalog while logs hold data.
fn refuse_empty_result(
    context: &RecoveryContext,
    has_none: bool,
    glass: &Recovered,
    findings: &LogFindings,
) -> Result<()> {
    let segments: Vec<&Segment> =
        findings.segments.iter().filter(|segment| segment.may_hold_bodies()).collect();
    let is_nothing = has_none && glass.sets() == 0;
    if !is_nothing || segments.is_empty() || context.slots.is_empty() {
        return Ok(());
    }
    Err(ArchiveError::Unusable {
        path: context.config.data.display().to_string(),
        reason: format!(
            "no platter was found and no object recovered, but {} segments of the logs hold bytes \
             of {} keys: nothing was changed. Is the disk of the platters mounted, and is this the \
             right key table?",
            segments.len(),
            context.slots.len()
        ),
    })
}

fn write_rows(
    context: &RecoveryContext,
    objects: Objects,
    mut salvaged: Salvaged,
    parts: Vec<(PartEntry, BodyRow)>,
    (glass, tiers): (&Recovered, &TierScan),
    inventory: &Inventory<'_>,
    report: &mut RecoverReport,
) -> Result<Tally> {
    // An upload needs its bucket, even if the bucket has nothing else.
    for (part, _) in &parts {
        let bucket = BucketRow { created: part.bucket_created };
        salvaged.buckets.entry(part.bucket.clone()).or_insert(bucket);
    }
    let kv = context.begin_catalog()?;
    let mut writer = Writer::new(&kv);
    let mut tally = Tally::default();
    let classes = &context.config.classes;
    report.incomplete = objects.incomplete.len() as u64;
    report.lost.clone_from(&objects.incomplete);
    report.overwritten = objects.overwritten;
    report.unconfirmed = objects.unconfirmed.len() as u64;
    report.unconfirmed_names = objects.unconfirmed.iter().map(ToString::to_string).collect();
    report.unconfirmed_names.extend_from_slice(&objects.unconfirmed_incomplete);
    report.objects = objects.complete.len() as u64;
    report.buckets = write_objects(&mut writer, objects, (&salvaged, classes), &mut tally)?;
    report.bytes = tally.bytes;
    report.staged = tally.totals.objects_staged;
    report.online = tally.totals.objects_online;
    let is_there = |body: &BodyRow| inventory.holds_body(body);
    let has_parts = !salvaged.parts.is_empty();
    let taken = tally.bodies.iter().copied().filter(|_| has_parts).collect();
    let (mut uploads, lost) =
        salvaged.open_uploads(&context.slots, &taken, &tally.completed, &is_there);
    report.parts_lost = lost;
    for (part, body) in parts {
        if !tally.completed.contains(&part.upload_id) {
            uploads.add(&part, body, classes);
        }
    }
    write_uploads(&mut writer, &uploads, &mut tally)?;
    report.uploads = uploads.uploads.len() as u64;
    glass::write_sets(glass, &mut writer, &salvaged, &tally)?;
    tiers.write(&mut writer)?;
    write_tally(&mut writer, &mut tally, context.run)?;
    writer.flush()?;
    Ok(tally)
}

/// Moves segments to the orphans if they hold bodies with keys and the new catalog does not name
/// them: the next start would consider them older than the catalog and unlink them.
fn set_aside(context: &RecoveryContext, segments: &[Segment], tally: &Tally) -> Result<u64> {
    let mut count = 0;
    for segment in segments {
        if segment.may_hold_bodies()
            && !segment.is_orphan
            && !tally.names(segment.kind, segment.number)
        {
            logs::set_aside(&context.paths, segment)?;
            count += 1;
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests;
