//! Selects one tier: of a running server, or of a configuration.

use std::path::PathBuf;

use fulgurite_archive::config::TierName;
use fulgurite_client::remote::RemoteArgs;
use fulgurite_terminal::exit::{Exit, ExitError};

use crate::admin::{AdminClient, TierClient};
use crate::config::{Config, Overrides, Tier, TierArgs, process_environment};

/// Selects a tier: of a running server, or of a configuration.
#[derive(Clone, Debug, clap::Args)]
pub struct TierSelection {
    /// Configuration file (TOML), when no server runs
    #[arg(long, value_name = "FILE", env = "FULGURITE_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    tiers: TierArgs,
    /// Name of the tier, if there are several of its kind
    #[arg(long, value_name = "NAME", value_parser = tier_name)]
    name: Option<TierName>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl TierSelection {
    /// Returns the data directory.
    pub(crate) fn data(&self) -> anyhow::Result<PathBuf> {
        let missing = || ExitError::new(Exit::Usage, "no archive is named: pass --data DIR");
        Ok(self.remote.data.clone().ok_or_else(missing)?)
    }

    /// Returns the tier behind a server, if one answers.
    pub(crate) async fn server(&self) -> anyhow::Result<Option<TierClient>> {
        let server = AdminClient::connect(&self.remote, || self.data()).await?;
        Ok(server.map(|server| TierClient::new(server, self.name.clone())))
    }

    /// Returns the configured tier that is named, or the only one of its kind.
    pub(crate) fn configured<T: Clone>(
        &self,
        kind: &str,
        settings_of: fn(&Tier) -> Option<&T>,
    ) -> anyhow::Result<(TierName, T)> {
        let overrides = Overrides { tiers: self.tiers.tier.clone(), ..Overrides::default() };
        let config = Config::load(self.config.as_deref(), process_environment(), overrides)?;
        only_of_kind(&config, self.name.as_ref(), (kind, settings_of))
    }
}

/// Returns the tier `name` of a configuration, or the only one of its kind.
pub(crate) fn only_of_kind<T: Clone>(
    config: &Config,
    name: Option<&TierName>,
    (kind, settings_of): (&str, fn(&Tier) -> Option<&T>),
) -> anyhow::Result<(TierName, T)> {
    let meant = config.tiers.iter().filter(|(known, _)| name.is_none_or(|name| name == *known));
    let mut found = meant.filter_map(|(name, tier)| Some((name, settings_of(tier)?)));
    match (found.next(), found.next()) {
        (Some((name, settings)), None) => Ok((name.clone(), settings.clone())),
        (Some((one, _)), Some((other, _))) => {
            let message = format!(
                "there are tiers \"{one}\" and \"{other}\" of kind {kind}: say which, by --name"
            );
            Err(ExitError::new(Exit::Usage, message).into())
        }
        (None, _) => {
            let name = name.map_or_else(String::new, |name| format!(" \"{name}\""));
            let message = format!(
                "no configuration names a tier{name} of kind {kind}: give --config FILE with \
                 [tiers.NAME], or --tier NAME={kind}:VALUE"
            );
            Err(ExitError::new(Exit::Config, message).into())
        }
    }
}

/// Parses the name of a tier.
pub(crate) fn tier_name(text: &str) -> Result<TierName, String> {
    TierName::new(text).map_err(|error| error.to_string())
}
