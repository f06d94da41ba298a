//! `tomes`: the set of tomes, made, opened, and asked by an operator.
//!
//! ```text
//! open    what the configuration says, as a set that is made or opened
//! show    what people see of it
//! ```

mod open;
mod show;

use std::path::PathBuf;

use fulgurite_tome_store::{Found, Snapshot, TomeStore};

pub(crate) use self::open::{close, is_fail_point, open, open_now, to_serve};
use crate::admin::AdminClient;
use crate::config::{Config, Overrides, Tomes, of_process};
use crate::exit::{Coded, Exit};
use crate::objects::counted;
use crate::output::Output;
use crate::process::keep_private;
use crate::remote::RemoteArgs;

/// What can be asked.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum TomesCommand {
    /// Make the set that the configuration describes: its awake stores, and a file on each disk
    Init(TomesArgs),
    /// Show whether all is well, what each tome does and what is not protected
    Status(TomesArgs),
    /// Look through all tomes for objects that the index does not know, as when it was lost
    Recover(TomesArgs),
}

/// Which set: that of a running server, or one of a configuration.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TomesArgs {
    /// Configuration file (TOML), when no server runs
    #[arg(long, value_name = "FILE", env = "FULGURITE_CONFIG")]
    config: Option<PathBuf>,
    /// Tomes with simulated disks in DATA/tomes, as `serve` was told of them, when no server runs
    #[arg(long, value_name = "COUNT")]
    tomes: Option<u32>,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// A set that can be asked.
enum Asked {
    /// That of a running server.
    Server(AdminClient),
    /// One that this process has open.
    Store(TomeStore),
}

impl TomesArgs {
    fn data(&self) -> anyhow::Result<PathBuf> {
        let missing = || Coded::new(Exit::Usage, "no set of tomes is named: give --data DIR");
        Ok(self.remote.data.clone().ok_or_else(missing)?)
    }

    /// The set of the configuration.
    fn configured(&self) -> anyhow::Result<Tomes> {
        let overrides = Overrides { tomes: self.tomes, ..Overrides::default() };
        let config = Config::load(self.config.as_deref(), of_process(), overrides)?;
        config.tomes.ok_or_else(|| {
            let message = "no server runs there, and no configuration names tomes: give --config \
                           FILE with a table [tomes], or --tomes COUNT";
            Coded::new(Exit::Config, message).into()
        })
    }

    /// Has `act` ask the set, and lets go of it.
    async fn with(
        &self,
        act: impl AsyncFnOnce(&Asked) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if let Some(server) = AdminClient::serving(&self.remote, || self.data()).await? {
            return act(&Asked::Server(server)).await;
        }
        let store = open(&self.configured()?, &self.data()?).await?;
        let done = act(&Asked::Store(store.clone())).await;
        close(store).await;
        done
    }
}

impl Asked {
    async fn status(&self) -> anyhow::Result<Snapshot> {
        match self {
            Self::Server(server) => server.tomes().await,
            Self::Store(store) => Ok(store.snapshot().await?),
        }
    }

    async fn recover(&self, is_quiet: bool) -> anyhow::Result<Found> {
        match self {
            Self::Server(server) => server.tomes_recover(is_quiet).await,
            Self::Store(store) => Ok(store.recover().await?),
        }
    }
}

/// Runs `tomes`.
pub(crate) async fn tomes(command: &TomesCommand, out: &Output) -> anyhow::Result<()> {
    keep_private();
    match command {
        TomesCommand::Init(args) => init(args, out).await,
        TomesCommand::Status(args) => {
            args.with(async |set: &Asked| {
                let snapshot = set.status().await?;
                out.json(&snapshot)?;
                out.text(show::snapshot(&snapshot))
            })
            .await
        }
        TomesCommand::Recover(args) => {
            args.with(async |set: &Asked| show_found(&set.recover(out.is_json()).await?, out)).await
        }
    }
}

async fn init(args: &TomesArgs, out: &Output) -> anyhow::Result<()> {
    let (tomes, data) = (args.configured()?, args.data()?);
    let was_made = open::is_made(&tomes, &data);
    let made = open::make(&tomes, &data).await?;
    let what = if was_made { "is whole" } else { "is made" };
    out.json(&made)?;
    out.text(format_args!("set {} {what}, of {}", made.set, counted(made.tomes as u64, "tome")))
}

fn show_found(found: &Found, out: &Output) -> anyhow::Result<()> {
    out.json(found)?;
    let Found { objects, known, problems } = found;
    out.text(format_args!("{} found; {known} known already", counted(*objects, "object")))?;
    for problem in problems {
        out.text(format_args!("problem: {problem}"))?;
    }
    if problems.is_empty() {
        return Ok(());
    }
    let count = counted(problems.len() as u64, "problem");
    Err(Coded::new(Exit::Partial, format!("{count}: each was named")).into())
}
