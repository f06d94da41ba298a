//! Configuration flags of the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Config, Overrides, TlsChoice, process_environment};

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
    /// Rack of simulated cold disks in DATA/rack, made at the first start: laptop, shelf, pelican,
    /// a file with a shape, or none
    #[arg(long, value_name = "SHAPE")]
    rack: Option<String>,
    /// Tomes with simulated disks in DATA/tomes, made at the first start: how many, or 0
    #[arg(long, value_name = "COUNT")]
    tomes: Option<u32>,
}

impl ConfigArgs {
    /// Loads the effective configuration.
    pub fn load(&self) -> anyhow::Result<Config> {
        let overrides = Overrides {
            listen: self.listen,
            tls: self.tls.clone(),
            profile: self.profile.clone(),
            rack: self.rack.clone(),
            tomes: self.tomes,
        };
        Ok(Config::load(self.config.as_deref(), process_environment(), overrides)?)
    }
}
