//! `demo`: the whole life of a folder in one run: put through S3, onto glass, damaged, and
//! restored.
//!
//! ```text
//! folder --put--> archive --seal, verify--> platters --damage: sectors, tracks, one whole platter
//!    ^                                                          |
//!    '-- compare every byte <-- get <-- restore (codes repair) -'
//! ```
//!
//! The archive, its HTTP endpoint and the client are those of every other command; only the medium
//! and the mechanics are simulated, and the report says so.

mod compare;
mod damage;
mod report;
mod source;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use fulgurite_archive::status::{ShardLocation, VerifiedPlatter};
use fulgurite_archive_commands::archive::AdminClient;
use fulgurite_archive_commands::config::{Config, Fidelity, Overrides};
use fulgurite_archive_commands::serve::{self, OpenTiers, RunningServer};
use fulgurite_client::credentials::KeyPair;
use fulgurite_client::names::S3Url;
use fulgurite_client::remote::Remote;
use fulgurite_client::s3::{Client, S3ErrorKind, Trust};
use fulgurite_gateway::BoundAddress;
use fulgurite_object_commands::{
    self as objects, GetJob, PlannedPut, PutJob, RestoreJob, RestoreTier,
};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{self, Output, note, pluralize};
use fulgurite_units::{Duration, Seed};
use report::Report;

use crate::exit::exit_of;

/// Flags of `demo`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Folder to archive; by default the project's own sources
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Seed of all damage
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How the medium is simulated
    #[arg(long, value_enum, default_value = "sector")]
    fidelity: Fidelity,
    /// Statistics from lab calibrate, for fidelity soft
    #[arg(long, value_name = "FILE")]
    statistics: Option<PathBuf>,
    /// Keep the temporary directory: archive, platters, restored files
    #[arg(long)]
    keep: bool,
}

const BUCKET: &str = "demo";
const CLASS: &str = "DEEP_ARCHIVE";
const PREFIX: &str = "files/";
/// Number of files whose places are shown.
const PLACES_SHOWN: usize = 3;

/// Runs `demo`.
pub(crate) async fn demo(args: &DemoArgs, out: &Output) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new()
        .prefix("fulgurite-demo-")
        .tempdir()
        .context("cannot create a temporary directory")?;
    let root = directory.path().to_owned();
    let result = run(args, &root, out).await;
    let is_corrupt = result.as_ref().err().is_some_and(|error| exit_of(error) == Exit::Corrupt);
    if args.keep || is_corrupt {
        let path = directory.keep();
        note(format_args!("kept: {}", path.display()));
    }
    result
}

async fn run(args: &DemoArgs, root: &Path, out: &Output) -> anyhow::Result<()> {
    let is_analog = args.fidelity == Fidelity::Analog;
    // Voxels are simulated at about a hundred kilobytes a second, so little is archived by default.
    let source = source::choose(args.folder.as_deref(), &root.join("source"), is_analog)?;
    let files = source.files()?;
    if files.is_empty() {
        let message = format!("\"{}\" holds no files", source.folder.display());
        return Err(ExitError::new(Exit::NotFound, message).into());
    }
    let data = root.join("archive");
    std::fs::create_dir(&data)?;
    let overrides = Overrides {
        listen: Some((std::net::Ipv4Addr::LOCALHOST, 0).into()),
        profile: Some(if is_analog { "sliver" } else { "demo" }.to_owned()),
        ..Overrides::default()
    };
    let mut config = Config::load(None, std::iter::empty(), overrides)?;
    config.glass.medium.fidelity = args.fidelity;
    config.glass.medium.seed = args.seed;
    config.glass.medium.statistics.clone_from(&args.statistics);
    // Nothing is sealed before it is requested, so that staging and sealing are timed separately.
    config.glass.moves.bytes = Some(config.storage.log_capacity);
    config.glass.moves.age = Duration::from_secs(7 * 24 * 3600);
    let keys = KeyPair::generate()?;
    let archive = serve::open(&config, &data, &OpenTiers::new()).await?;
    let address = BoundAddress::new(config.listen)?;
    let opened = (archive, OpenTiers::new());
    let running = serve::listen(&config, &data, (&keys, None), opened, address).await?;
    let session = DemoSession::new(&running, keys, &config, &data, root, out)?;
    let result = session.run_steps(args.seed, &source, &files).await;
    let stopped = running.stop().await;
    let report = result?;
    stopped?;
    report.show(out)?;
    match report.differing.len() {
        0 => Ok(()),
        count => {
            let message = format!("{} differ after the restore", pluralize(count as u64, "file"));
            Err(ExitError::new(Exit::Corrupt, message).into())
        }
    }
}

/// The archive of a demo and its clients.
struct DemoSession<'a> {
    client: Client,
    admin: AdminClient,
    endpoint: String,
    config: &'a Config,
    data: &'a Path,
    root: &'a Path,
    out: &'a Output,
    /// Silences the steps: only the report is data.
    quiet: Output,
}

impl<'a> DemoSession<'a> {
    fn new(
        running: &RunningServer,
        keys: KeyPair,
        config: &'a Config,
        data: &'a Path,
        root: &'a Path,
        out: &'a Output,
    ) -> anyhow::Result<Self> {
        let remote = Remote {
            endpoint: running.endpoint.clone(),
            keys,
            session_token: None,
            region: "us-east-1".to_owned(),
            trust: Trust::System,
        };
        Ok(Self {
            client: remote.client()?,
            admin: AdminClient::new(&remote)?,
            endpoint: running.endpoint.clone(),
            config,
            data,
            root,
            out,
            quiet: Output::silent(),
        })
    }

    fn step(&self, text: impl std::fmt::Display) {
        if !self.out.is_json() {
            note(format_args!("- {text}"));
        }
    }

    async fn run_steps(
        &self,
        seed: u64,
        source: &source::Source,
        files: &[PlannedPut],
    ) -> anyhow::Result<Report> {
        let mut report =
            Report::new(seed, self.config.glass.medium.fidelity, source, &self.endpoint);
        let geometry = self.config.glass.effective_geometry()?;
        self.put(files, &mut report).await?;
        self.step("sealing: plan, encode, write, read back, store");
        let sealed = self.admin.seal(false, self.out.is_json()).await?;
        report.record_seal(&sealed);
        self.step("verifying every platter");
        check_readable(&self.admin.verify(None, self.out.is_json()).await?.platters)?;
        self.check_archived(files).await?;
        self.step("damaging sectors, tracks and one whole platter");
        report.platter_bytes = damage::platter_bytes(&self.data.join("platters"))?;
        report.damage =
            damage::damage(&self.data.join("platters"), &self.root.join("lost"), Seed::new(seed))?;
        self.restore(files, &mut report).await?;
        self.compare(source, files, &mut report).await?;
        let status = self.admin.status().await?;
        report.record_repairs(&status, geometry);
        for file in files.iter().step_by(files.len().div_ceil(PLACES_SHOWN)) {
            let places: Vec<ShardLocation> = self.admin.locate(BUCKET, file.key()).await?;
            report.places.push((file.key().to_owned(), places));
        }
        Ok(report)
    }

    async fn put(&self, files: &[PlannedPut], report: &mut Report) -> anyhow::Result<()> {
        let bytes = files.iter().map(PlannedPut::bytes).sum();
        let count = pluralize(files.len() as u64, "file");
        self.step(format_args!("putting {count}, {}", output::bytes(bytes)));
        self.client.create_bucket(BUCKET).await?;
        let job = PutJob {
            client: &self.client,
            bucket: BUCKET,
            class: CLASS,
            transfers: objects::limits::TRANSFERS_DEFAULT,
            out: &self.quiet,
        };
        let (summary, failures) = objects::put_all(&job, files).await?;
        failures.into_result("put", summary.objects)?;
        report.put = summary;
        Ok(())
    }

    /// Checks that staging is empty: the archive has the bytes of the files on glass only, and
    /// refuses to read them without a restore.
    async fn check_archived(&self, files: &[PlannedPut]) -> anyhow::Result<()> {
        let status = self.admin.status().await?;
        if status.objects_staged != 0 || status.staged_bytes != 0 {
            let message = format!("{} objects are still staged", status.objects_staged);
            return Err(ExitError::new(Exit::Failure, message).into());
        }
        let probe = self.root.join("probe");
        let key = files[0].key();
        match self.client.get_file(BUCKET, key, &probe, &|_| {}).await {
            Err(error) if error.kind() == S3ErrorKind::Archived => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => {
                let message = format!("\"{key}\" could be read without a restore");
                Err(ExitError::new(Exit::Failure, message).into())
            }
        }
    }

    async fn restore(&self, files: &[PlannedPut], report: &mut Report) -> anyhow::Result<()> {
        self.step("restoring everything from what is left");
        let keys: Vec<String> = files.iter().map(|file| file.key().to_owned()).collect();
        let started = Instant::now();
        let job = RestoreJob {
            client: &self.client,
            bucket: BUCKET,
            days: 1,
            tier: RestoreTier::Standard,
            transfers: objects::limits::TRANSFERS_DEFAULT,
            out: &self.quiet,
        };
        let (counts, failures) = objects::restore_all(&job, &keys).await?;
        failures.into_result("restored", counts.total())?;
        let url = S3Url { bucket: BUCKET.to_owned(), key: PREFIX.to_owned() };
        objects::wait_for_restore(&self.client, &url, true, self.out.is_json()).await?;
        report.restore_seconds = started.elapsed().as_secs_f64();
        Ok(())
    }

    async fn compare(
        &self,
        source: &source::Source,
        files: &[PlannedPut],
        report: &mut Report,
    ) -> anyhow::Result<()> {
        self.step("fetching and comparing every byte");
        let folder = self.root.join("restored");
        std::fs::create_dir(&folder)?;
        let objects = objects::list_all(&self.client, BUCKET, PREFIX).await?;
        if objects.len() != files.len() {
            let message = format!("{} of {} files are listed", objects.len(), files.len());
            return Err(ExitError::new(Exit::Corrupt, message).into());
        }
        let job = GetJob {
            client: &self.client,
            bucket: BUCKET,
            strip: PREFIX,
            folder: &folder,
            transfers: objects::limits::TRANSFERS_DEFAULT,
            out: &self.quiet,
        };
        let (summary, failures) = objects::get_all(&job, &objects).await?;
        failures.into_result("fetched", summary.objects)?;
        report.get = summary;
        let (original, files) = (source.folder.clone(), files.to_vec());
        report.differing = tokio::task::spawn_blocking(move || {
            compare::differing_keys(&original, &folder, PREFIX, &files)
        })
        .await??;
        Ok(())
    }
}

/// Checks that every platter can be read completely before anything is damaged.
fn check_readable(platters: &[VerifiedPlatter]) -> anyhow::Result<()> {
    let bad = platters.iter().find(|p| p.error.is_some() || p.tracks_unreadable > 0);
    let Some(bad) = bad else { return Ok(()) };
    let reason = bad.error.clone().unwrap_or_else(|| "tracks are unreadable".to_owned());
    let message = format!("platter {} failed before it was damaged: {reason}", bad.platter);
    Err(ExitError::new(Exit::Corrupt, message).into())
}

#[cfg(test)]
mod tests;
