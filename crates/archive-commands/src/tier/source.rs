//! Where the tiers of a command are: behind a running server, or in a configuration.

use std::path::PathBuf;

use fulgurite_archive::config::TierName;
use fulgurite_client::remote::RemoteArgs;
use fulgurite_terminal::exit::{Exit, ExitError};

use crate::archive::AdminClient;
use crate::config::{Config, Overrides, TierArgs, process_environment};

/// Selects the tiers: of a running server, or of a configuration.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TierSource {
    /// Configuration file (TOML), when no server runs
    #[arg(long, value_name = "FILE", env = "FULGURITE_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    tiers: TierArgs,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl TierSource {
    /// Returns the data directory.
    pub(crate) fn data(&self) -> anyhow::Result<PathBuf> {
        let missing = || ExitError::new(Exit::Usage, "no archive is named: pass --data DIR");
        Ok(self.remote.data.clone().ok_or_else(missing)?)
    }

    /// Returns the running server, if one answers.
    pub(crate) async fn server(&self) -> anyhow::Result<Option<AdminClient>> {
        AdminClient::connect(&self.remote, || self.data()).await
    }

    /// Returns the configuration: file, environment and flags together.
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        let overrides = Overrides { tiers: self.tiers.tier.clone(), ..Overrides::default() };
        let config = Config::load(self.config.as_deref(), process_environment(), overrides)?;
        if let Some(data) = &self.remote.data {
            config.check_tiers(data)?;
        }
        Ok(config)
    }
}

/// Parses the name of a tier.
pub(crate) fn tier_name(text: &str) -> Result<TierName, String> {
    TierName::new(text).map_err(|error| error.to_string())
}
