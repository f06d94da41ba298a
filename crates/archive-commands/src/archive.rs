//! `archive`: an operator's requests to a running archive, over its admin API.
//!
//! Each call is signed under a key derived from the secret key, so anyone who can start the server
//! can administer it. Long calls answer with one JSON object per line: progress, and at last a
//! report or an error.

mod client;

use fulgurite_archive::status::{
    DamagedCopy, DamagedInTier, FarStatus, JobStatus, MoveReport, SealReport, ShardLocation,
    SkippedObject, Status, VerifiedPlatter, VerifiedTier, VerifyReport, WaitingTier,
};
use fulgurite_archive::{DecodeStatus, Verification, VerifiedSector, VerifiedTrack};
use fulgurite_client::names::S3Url;
use fulgurite_client::remote::RemoteArgs;
use fulgurite_gateway::FullStatus;
use fulgurite_terminal::CommandFuture;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{
    Output, bytes, group_digits, hint, note, pluralize, rate, seconds, timestamp,
};
use fulgurite_terminal::style::{self, Tone};
use fulgurite_tier::TierKind;
use fulgurite_units::PlatterId;

pub use self::client::AdminClient;
pub(crate) use self::client::parse;

use crate::orphans::orphans;

/// `archive`, with one of its commands.
#[derive(Clone, Debug, clap::Args)]
pub struct ArchiveCommand {
    #[command(subcommand)]
    command: ArchiveAction,
}

/// The commands.
#[derive(Clone, Debug, clap::Subcommand)]
enum ArchiveAction {
    /// Write everything staged to glass now; returns when it is verified, stored and released
    Seal {
        /// Also wait for moves to tiers of objects (rack, tomes, sites and the like)
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Read platters whole again and report their margins
    Verify {
        /// Only this platter
        #[arg(long, value_name = "ID")]
        platter: Option<PlatterId>,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Show how close each sector of a platter was to failing at its last verification
    Margins {
        /// The platter
        #[arg(value_name = "PLATTER")]
        platter: PlatterId,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Show what the archive holds and what it is doing
    Status {
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// List log segments that the catalog does not reference, or remove them for good
    Orphans {
        /// Remove them; this cannot be undone
        #[arg(long)]
        discard: bool,
        /// Remove them without confirmation
        #[arg(long, requires = "discard")]
        yes: bool,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Change the storage class of objects, and move them to the tier of that class
    Move {
        /// Object, or folder with --recursive: s3://bucket/key
        #[arg(value_name = "S3-URL")]
        url: S3Url,
        /// Storage class, such as STANDARD, STANDARD_IA, GLACIER_IR, GLACIER or DEEP_ARCHIVE
        #[arg(long, value_name = "CLASS")]
        class: String,
        /// Every object whose key begins with this; for a bucket, all of its objects
        #[arg(long, short)]
        recursive: bool,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Show which platters and tracks an object is on
    Locate {
        /// Object: s3://bucket/key
        #[arg(value_name = "S3-URL")]
        url: S3Url,
        #[command(flatten)]
        remote: RemoteArgs,
    },
}

/// Runs `archive`.
pub fn archive<'a>(args: &'a ArchiveCommand, out: &'a Output) -> CommandFuture<'a> {
    Box::pin(run(args, out))
}

async fn run(args: &ArchiveCommand, out: &Output) -> anyhow::Result<()> {
    match &args.command {
        ArchiveAction::Seal { wait, remote } => {
            seal(&AdminClient::new(&remote.resolve_operator()?)?, *wait, out).await
        }
        ArchiveAction::Verify { platter, remote } => {
            verify(&AdminClient::new(&remote.resolve_operator()?)?, *platter, out).await
        }
        ArchiveAction::Margins { platter, remote } => {
            let found = AdminClient::new(&remote.resolve_operator()?)?.margins(*platter).await?;
            out.json("margins", &found)?;
            out.text(show_margins(&found))
        }
        ArchiveAction::Status { remote } => {
            status(&AdminClient::new(&remote.resolve_operator()?)?, out).await
        }
        ArchiveAction::Orphans { discard, yes, remote } => {
            orphans(&AdminClient::new(&remote.resolve_operator()?)?, *discard, *yes, out).await
        }
        ArchiveAction::Move { url, class, recursive, remote } => {
            let client = AdminClient::new(&remote.resolve_operator()?)?;
            move_objects(&client.reclassify(url, class, *recursive, out.is_json()).await?, out)
        }
        ArchiveAction::Locate { url, remote } => {
            let places = AdminClient::new(&remote.resolve_operator()?)?
                .locate(&url.bucket, &url.key)
                .await?;
            for place in &places {
                out.json("place", place)?;
                out.text(show_place(place))?;
            }
            Ok(())
        }
    }
}

async fn seal(client: &AdminClient, waits: bool, out: &Output) -> anyhow::Result<()> {
    let report = match client.seal(waits, out.is_json()).await {
        Ok(report) => report,
        Err(error) => {
            // Other sets were sealed all the same: name what still waits, each with its error.
            if let Ok(status) = client.status().await {
                for failure in &status.seal_failures {
                    note(failure);
                }
                for line in show_waiting(&status) {
                    note(line);
                }
            }
            return Err(error);
        }
    };
    let status = client.status().await?;
    let (moving_bytes, tiers_waiting) = (status.moving_bytes, &status.tiers_waiting);
    out.json("seal", &Sealed { report: &report, moving_bytes, tiers_waiting })?;
    if report.objects == 0 && report.sets.is_empty() {
        nothing_to_seal(&status, out)?;
    } else {
        show_seal(&report, out)?;
    }
    for line in show_waiting(&status) {
        out.text(line)?;
    }
    if !tiers_waiting.is_empty() {
        note(hint("`fulgurite archive seal --wait` waits for tiers of objects"));
    }
    Ok(())
}

/// The report of a seal, and what was not part of it.
#[derive(serde::Serialize)]
struct Sealed<'a> {
    #[serde(flatten)]
    report: &'a SealReport,
    moving_bytes: u64,
    tiers_waiting: &'a [WaitingTier],
}

/// Lists what waits for tiers of objects and far libraries, with errors, if any.
fn show_waiting(s: &Status) -> Vec<String> {
    let names: Vec<String> = s
        .tiers_waiting
        .iter()
        .map(|WaitingTier { tier, since }| format!("{tier} since {}", timestamp(*since)))
        .collect();
    let mut lines = Vec::new();
    if !names.is_empty() {
        let moving = bytes(s.moving_bytes);
        lines.push(format!("{moving} still wait for tiers of objects: {}", names.join(", ")));
    }
    let is_moving = |job: &&JobStatus| {
        let tier = job.name.strip_prefix("moving-");
        tier.is_some_and(|tier| s.tiers_waiting.iter().any(|waiting| waiting.tier == tier))
    };
    lines.extend(s.jobs.iter().filter(is_moving).filter_map(JobStatus::failure_report));
    let far = s.far_libraries.iter().filter(|far| far.waiting > 0);
    lines.extend(far.map(|far| {
        format!("{} still wait for library {}", pluralize(far.waiting, "platter"), far.library)
    }));
    lines
}

fn show_seal(report: &SealReport, out: &Output) -> anyhow::Result<()> {
    out.text(format_args!(
        "{} with {} on glass in {} ({})",
        pluralize(report.objects, "object"),
        bytes(report.bytes),
        seconds(report.seconds),
        rate(report.bytes, report.seconds)
    ))?;
    for set in &report.sets {
        out.text(format_args!(
            "set {}: {} information + {} redundancy platters, {}",
            set.set, set.information_platters, set.redundancy_platters, set.state
        ))?;
    }
    if report.sets.iter().any(|set| set.state == "unreadable") {
        out.text("the catalog is damaged: stop the archive and run `fulgurite recover`")?;
    }
    if report.kept_staged > 0 {
        let bodies = pluralize(report.kept_staged, "body");
        out.text(format_args!("{bodies} would not survive where they were written; still staged"))?;
    }
    Ok(())
}

/// Shows what the archive holds when there was nothing to seal.
fn nothing_to_seal(status: &Status, out: &Output) -> anyhow::Result<()> {
    if out.is_json() {
        return Ok(());
    }
    let glass = pluralize(status.objects_on_glass, "object");
    let sets = pluralize(status.sets.len() as u64, "set");
    out.text(format_args!("nothing is staged: {glass} on glass already, in {sets}"))?;
    if status.objects_online > 0 {
        let online = pluralize(status.objects_online, "object");
        note(hint(format_args!("{online} of class STANDARD on disk, which never go to glass")));
    }
    for body in &status.staged_damaged {
        note(format_args!("{}/{} is set aside: staging is damaged", body.bucket, body.key));
    }
    Ok(())
}

/// Shows the result of changing the class of objects.
fn move_objects(report: &MoveReport, out: &Output) -> anyhow::Result<()> {
    out.json("move", report)?;
    out.text(format_args!(
        "{} with {} moved; {} there already",
        pluralize(report.objects, "object"),
        bytes(report.bytes),
        group_digits(report.objects_there)
    ))?;
    for SkippedObject { bucket, key, error } in &report.left {
        out.text(format_args!("s3://{bucket}/{key}  left: {error}"))?;
    }
    if report.objects_left == 0 {
        return Ok(());
    }
    let left = pluralize(report.objects_left, "object");
    let message = format!("{left} unchanged; restore archived objects first");
    Err(ExitError::new(Exit::Partial, message).into())
}

async fn verify(
    client: &AdminClient,
    platter: Option<PlatterId>,
    out: &Output,
) -> anyhow::Result<()> {
    let report = client.verify(platter, out.is_json()).await?;
    let mut unreadable = 0;
    for platter in &report.platters {
        out.json("verified_platter", platter)?;
        unreadable += u64::from(show_platter(platter, out)?);
    }
    for copy in &report.damaged_copies {
        out.json("damaged_copy", copy)?;
        let fate = if copy.is_dropped { "is damaged and dropped" } else { "cannot be read" };
        let DamagedCopy { bucket, key, error, .. } = copy;
        out.text(format_args!("s3://{bucket}/{key}  restored copy {fate}: {error}"))?;
    }
    for tier in &report.tiers {
        out.json("verified_tier", tier)?;
        let VerifiedTier { tier: name, bodies, bodies_damaged, .. } = tier;
        let read = pluralize(*bodies, "body");
        out.text(format_args!("tier {name}  {bodies_damaged} of {read} damaged"))?;
        for DamagedInTier { bucket, key, error } in &tier.damaged {
            out.text(format_args!("s3://{bucket}/{key}  {error}"))?;
        }
        if let Some(error) = &tier.error {
            out.text(format_args!("tier {name}  not read to the end: {error}"))?;
        }
    }
    report_verdict(&report, unreadable, out)
}

/// Shows the verification of a platter; whether it cannot be read alone.
pub(crate) fn show_platter(report: &VerifiedPlatter, out: &Output) -> anyhow::Result<bool> {
    let verdict = match &report.error {
        Some(error) => error.clone(),
        None if report.tracks_unreadable > 0 => {
            let tracks = pluralize(report.tracks_unreadable, "track");
            format!("{tracks} that only the set can recover")
        }
        None => format!("margin {}", report.margin_min),
    };
    out.text(format_args!(
        "{}  {} of {} sectors failed  {verdict}",
        report.platter,
        group_digits(report.sectors_failed),
        group_digits(report.sectors)
    ))?;
    Ok(report.error.is_some() || report.tracks_unreadable > 0)
}

/// Shows the verdict; returns the error that the command ends with if something is damaged.
fn report_verdict(report: &VerifyReport, unreadable: u64, out: &Output) -> anyhow::Result<()> {
    let read = pluralize(report.platters.len() as u64, "platter");
    let copies = pluralize(report.copies, "restored copy");
    let (mut wrong, mut help) = (Vec::new(), Vec::new());
    if unreadable > 0 {
        wrong.push(format!("{unreadable} of {read} cannot be read alone"));
        help.push("restores take what is missing from the rest of the set");
    }
    if report.copies_damaged > 0 {
        wrong.push(format!("{} of {copies} cannot be read", report.copies_damaged));
        help.push("restore the objects of dropped copies again");
    }
    let read_in_tiers: u64 = report.tiers.iter().map(|tier| tier.bodies).sum();
    let in_tiers = format!("{} in tiers of objects", pluralize(read_in_tiers, "body"));
    let damaged: u64 = report.tiers.iter().map(|tier| tier.bodies_damaged).sum();
    if damaged > 0 {
        wrong.push(format!("{damaged} of {in_tiers} are damaged"));
        help.push("restore older versions of them in the store, or delete their objects");
    }
    let away = report.tiers.iter().filter(|tier| tier.error.is_some()).count() as u64;
    if away > 0 {
        wrong.push(format!("{} could not be read", pluralize(away, "tier of objects")));
        help.push("fix the error shown for the tier and verify again");
    }
    if !wrong.is_empty() {
        let (verdict, wrong) = (style::out(Tone::Bad, "verdict: damaged"), wrong.join("; "));
        out.text(format_args!("{verdict}, {wrong}"))?;
        let message = format!("{wrong}; {}", help.join("; "));
        return Err(ExitError::new(Exit::Corrupt, message).into());
    }
    let verdict = style::out(Tone::Good, "verdict: sound");
    if report.platters.is_empty() && read_in_tiers == 0 {
        return out.text("verdict: nothing is on glass yet");
    }
    if report.platters.is_empty() {
        return out.text(format_args!("{verdict}, {in_tiers} read whole"));
    }
    let copies = if report.copies == 0 { String::new() } else { format!("; {copies} as well") };
    let tiers = if read_in_tiers == 0 { String::new() } else { format!("; {in_tiers} as well") };
    out.text(format_args!("{verdict}, {read} read whole and none needs another{copies}{tiers}"))
}

async fn status(client: &AdminClient, out: &Output) -> anyhow::Result<()> {
    let status = client.full_status().await?;
    out.json("archive_status", &status)?;
    let FullStatus { archive, server, tiers } = status;
    out.text(show_status(&archive))?;
    out.text(format_args!(
        "clients    {} of {} connections; {} idle ones ended to make room",
        group_digits(server.connections),
        group_digits(server.connections_max),
        group_digits(server.connections_ended_idle)
    ))?;
    if tiers.len() == 1 {
        return Ok(());
    }
    let mut unanswered = Vec::new();
    for tier in client.tiers().await? {
        // The status of the archive has that of glass, and a directory or a bucket reports nothing.
        if matches!(tier.kind, TierKind::Glass | TierKind::Objects) {
            continue;
        }
        let lines = match (&tier.unanswered, tier.reasons.is_empty()) {
            (Some(why), _) => vec![format!("does not answer: {why}")],
            (None, true) => vec!["well".to_owned()],
            (None, false) => tier.reasons,
        };
        for line in lines {
            out.text(format_args!("{:<10} {line}", tier.name.as_str()))?;
        }
        unanswered.extend(tier.unanswered.map(|_| tier.name.to_string()));
    }
    if unanswered.is_empty() {
        return Ok(());
    }
    let message = format!("no answer from: {}", unanswered.join(", "));
    Err(ExitError::new(Exit::Partial, message).into())
}

/// Formats the disk of the data directory and its failures.
fn show_disk(s: &Status) -> String {
    let mut line = format!(
        "disk       {} free, {} of them kept free, {} in reserve",
        bytes(s.free_bytes),
        bytes(s.free_bytes_min),
        bytes(s.reserve_bytes)
    );
    if s.reserve_bytes < s.reserve_bytes_wanted {
        line.push_str(&format!(" of {}", bytes(s.reserve_bytes_wanted)));
    }
    if let Some(damage) = &s.catalog_damage {
        line.push_str(&format!(
            "\ncatalog    is damaged: {damage}; stop the archive and run `fulgurite recover`"
        ));
    }
    if let Some(reason) = &s.catalog_refusal {
        line.push_str(&format!("\ncatalog    takes no writes: {reason}"));
    }
    line
}

/// Most failed restores in a status as text.
const FAILED_SHOWN: usize = 10;

/// Most unconfirmed objects in a status as text.
const UNCONFIRMED_SHOWN: usize = 10;

fn show_unconfirmed(s: &Status) -> Vec<String> {
    if s.bodies_unconfirmed == 0 {
        return Vec::new();
    }
    let mut lines = vec![format!(
        "unconfirmed  {} have keys, and nothing names them: uploads that a crash cut short, or the \
         catalog is behind; put or delete their names, or recover --salvage",
        pluralize(s.bodies_unconfirmed, "body")
    )];
    for body in s.objects_unconfirmed.iter().take(UNCONFIRMED_SHOWN) {
        lines.push(format!("           {}/{}: {}", body.bucket, body.key, bytes(body.bytes)));
    }
    lines
}

fn show_platters(s: &Status) -> String {
    let stored = format!("platters   {} in {}", s.platters, pluralize(s.sets.len() as u64, "set"));
    if s.unverified_platters == 0 {
        return stored;
    }
    let minutes = s.unverified_seconds / 60;
    format!(
        "{stored}; {} to verify, the oldest for {minutes} min",
        group_digits(s.unverified_platters)
    )
}

fn show_far(s: &Status) -> Vec<String> {
    let line = |far: &FarStatus| {
        let there = format!(
            "far        {} at {}, {}",
            pluralize(far.platters, "platter"),
            far.library,
            bytes(far.bytes)
        );
        match far.waiting {
            0 => there,
            waiting => format!("{there}; {} to go there, at home still", group_digits(waiting)),
        }
    };
    s.far_libraries.iter().map(line).collect()
}

fn show_objects(s: &Status) -> String {
    let (online, staged) = (group_digits(s.objects_online), group_digits(s.objects_staged));
    let glass = group_digits(s.objects_on_glass);
    let line = format!("objects    {online} on disk, {staged} staged, {glass} on glass");
    match s.objects_in_tiers {
        0 => line,
        in_tiers => format!("{line}, {} in tiers of objects", group_digits(in_tiers)),
    }
}

fn show_staged(s: &Status) -> String {
    let line = format!("staged     {}", bytes(s.staged_bytes));
    match s.moving_bytes {
        0 => line,
        moving => format!("{line} for glass, {} for tiers of objects", bytes(moving)),
    }
}

/// Formats restores, and the first failed ones with their errors.
fn show_restores(s: &Status) -> String {
    let mut line = format!(
        "restores   {} waiting, {} held",
        group_digits(s.restores_waiting),
        pluralize(s.restored_objects, "copy")
    );
    if s.restores_failed > 0 {
        line.push_str(&format!(
            ", {} given up; request them again to retry",
            group_digits(s.restores_failed)
        ));
    }
    for failed in s.failed_restores.iter().take(FAILED_SHOWN) {
        let what = if failed.is_given_up { "given up" } else { "is tried again" };
        let tries = pluralize(u64::from(failed.failures), "failure");
        line.push_str(&format!(
            "\n           {}/{} {what} after {tries}: {}",
            failed.bucket, failed.key, failed.error
        ));
    }
    line
}

fn show_status(s: &Status) -> String {
    let mut lines = vec![
        format!("archive    {} (software {})", s.archive, s.version),
        format!("medium     profile {}, fidelity {}", s.profile, s.fidelity),
        show_objects(s),
        show_staged(s),
        format!("logs       {} of {}", bytes(s.log_bytes), bytes(s.log_bytes_max)),
        show_disk(s),
        show_platters(s),
        show_restores(s),
        format!(
            "repaired   {} by track, {} by group, {} by set",
            group_digits(s.repaired_by_track),
            group_digits(s.repaired_by_group),
            group_digits(s.repaired_by_set)
        ),
        show_pipeline(s),
    ];
    // Sealing has a line of its own above.
    let other_jobs = s.jobs.iter().filter(|job| job.name != "sealing");
    lines.extend(other_jobs.filter_map(show_job));
    lines.extend(s.decode.as_ref().map(show_decode));
    lines.extend(s.unverified_failure.as_ref().map(|failure| format!("failure    {failure}")));
    for failure in &s.seal_failures {
        lines.push(format!("failure    {failure}"));
    }
    for body in &s.staged_damaged {
        lines.push(format!(
            "damaged    {}/{}: {} staged differ from the ingested ones; repair the disk, restart",
            body.bucket,
            body.key,
            bytes(body.bytes)
        ));
    }
    if s.orphaned_segments > 0 {
        lines.push(format!(
            "orphaned   {}, {}: not in the catalog; see `fulgurite archive orphans`",
            pluralize(s.orphaned_segments, "segment"),
            bytes(s.orphaned_bytes)
        ));
    }
    lines.extend(show_unconfirmed(s));
    lines.extend(show_far(s));
    if let Some(cut) = &s.catalog_cut {
        lines.push(format!("cut off    a torn batch of the catalog's journal; see \"{cut}\""));
    }
    if s.keys_lost > 0 {
        lines.push(format!(
            "keys lost  {}: in no file of the key table; restore a backup of it",
            group_digits(s.keys_lost)
        ));
    }
    if let Some(seconds) = s.debug_day_seconds {
        lines.push(format!("day        {seconds} s: for tests, not a real day"));
    }
    lines.join("\n")
}

/// Formats a job that is running or failing.
fn show_job(job: &JobStatus) -> Option<String> {
    match job.failure_report() {
        Some(failure) => Some(format!("failure    {failure}")),
        None => job.doing.as_ref().map(|doing| format!("job        {}: {doing}", job.name)),
    }
}

/// Formats the progress of sealing.
fn show_pipeline(s: &Status) -> String {
    let (done, total) = (bytes(s.seal_bytes_done), bytes(s.seal_bytes_total));
    let far = match s.seal_bytes_total {
        0 => String::new(),
        _ => format!(", {done} of {total} of tracks written and read back"),
    };
    format!("pipeline   {}{far}", s.pipeline)
}

/// Formats the decode service as text.
fn show_decode(decode: &DecodeStatus) -> String {
    let most = decode.workers_max.map_or_else(String::new, |most| format!(" of {most}"));
    let (urgent, deferred) = decode.queued;
    format!(
        "decoding   {}{most} workers; {urgent} urgent and {deferred} deferred parts wait, {} of \
         them for a cheaper hour, {} under way, the oldest for {:.1} s; {} done, {} kJ (assumed)",
        decode.workers,
        decode.held,
        decode.in_flight,
        decode.oldest_seconds,
        group_digits(decode.parts),
        (decode.joules / 1e3).ceil()
    )
}

/// Most tracks shown as text; `--json` has them all.
const TRACKS_SHOWN: usize = 10;

/// Formats margins as text: a histogram over sectors, and the worst tracks.
fn show_margins(found: &Verification) -> String {
    let mut text = format!(
        "platter {}, verified {}: {} of {} sectors failed",
        found.platter,
        timestamp(found.at),
        group_digits(found.sectors_failed),
        group_digits(found.sectors)
    );
    let Some(margins) = found.sector_margins else {
        text.push_str("\nthis fidelity of the medium has no margins");
        return text;
    };
    let count = |from: u8| {
        let is_in = |sector: &&VerifiedSector| match sector {
            VerifiedSector::Margin(margin) => (from..from + 10).contains(&(*margin).min(99)),
            VerifiedSector::Lost | VerifiedSector::Read => false,
        };
        found.tracks.iter().flat_map(|track| &track.sectors).filter(is_in).count()
    };
    let most = (0..100).step_by(10).map(count).max().unwrap_or(0).max(1);
    for from in (0..100).step_by(10) {
        let bar = "#".repeat((count(from) * 40).div_ceil(most));
        let sectors = group_digits(count(from) as u64);
        text.push_str(&format!("\n{from:>3} to {:>3}  {sectors:>9}  {bar}", from + 10));
    }
    text.push_str(&format!(
        "\nmargins in hundredths of the decoder's effort: least {}, a tenth below {}, half \
         below {}",
        margins.least, margins.tenth, margins.median
    ));
    let worst = |track: &&VerifiedTrack| {
        let lost = |sector: &&VerifiedSector| **sector == VerifiedSector::Lost;
        let margin = |sector: &VerifiedSector| match sector {
            VerifiedSector::Margin(margin) => *margin,
            VerifiedSector::Lost | VerifiedSector::Read => 100,
        };
        let lost = track.sectors.iter().filter(lost).count();
        (std::cmp::Reverse(lost), track.sectors.iter().map(margin).min().unwrap_or(100))
    };
    let mut tracks: Vec<&VerifiedTrack> = found.tracks.iter().collect();
    tracks.sort_by_key(worst);
    for track in tracks.into_iter().take(TRACKS_SHOWN) {
        let (std::cmp::Reverse(lost), least) = worst(&track);
        text.push_str(&format!("\ntrack {:>6}  {lost} lost, least margin {least}", track.track));
    }
    text
}

/// Formats a place on glass, in a tier of objects or on the way there, as text.
pub fn show_place(place: &ShardLocation) -> String {
    let size = bytes(place.bytes);
    let Some(platter) = place.platter else {
        let tier = place.tier.as_ref();
        let place_name = match (place.residence.as_str(), tier) {
            ("tier", Some(tier)) => format!("in tier {tier}"),
            (residence, Some(tier)) => format!("{residence} for tier {tier}"),
            (residence, None) => residence.to_owned(),
        };
        return format!("body {}: {size} {place_name}", place.body);
    };
    let slot = place.slot.map_or_else(|| "no slot".to_owned(), |slot| format!("slot {slot}"));
    let (first, last) = (place.track_first, place.track_last);
    let tracks =
        if first == last { format!("track {first}") } else { format!("tracks {first} to {last}") };
    format!("body {}: {size} on platter {platter}, {tracks}, {slot}", place.body)
}

#[cfg(test)]
mod tests;
