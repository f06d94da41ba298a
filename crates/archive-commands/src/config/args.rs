//! Configuration flags of the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Config, Overrides, TierFlag, TlsChoice, process_environment};

/// Flags that add tiers to the configuration.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TierArgs {
    /// Tier: NAME=rack:SHAPE or NAME=tome:COUNT (simulated disks in DATA/tiers/NAME, made at the
    /// first start), NAME=geo:MAP or NAME=objects:URL; can be repeated
    #[arg(long, value_name = "NAME=KIND:VALUE")]
    pub(crate) tier: Vec<TierFlag>,
}

/// Flags that select and override the configuration.
#[derive(Clone, Debug, clap::Args)]
pub struct ConfigArgs {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE", env = "FULGURITE_CONFIG")]
    config: Option<PathBuf>,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// TLS: off, auto (self-signed) or CERT,KEY (PEM files)
    #[arg(long, value_name = "CHOICE")]
    tls: Option<TlsChoice>,
    /// Platter profile: sliver, demo, desk or silica
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    #[command(flatten)]
    tiers: TierArgs,
}

impl ConfigArgs {
    /// Loads the effective configuration.
    pub fn load(&self) -> anyhow::Result<Config> {
        let overrides = Overrides {
            listen: self.listen,
            tls: self.tls.clone(),
            profile: self.profile.clone(),
            tiers: self.tiers.tier.clone(),
        };
        Ok(Config::load(self.config.as_deref(), process_environment(), overrides)?)
    }
}
