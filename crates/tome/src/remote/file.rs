//! `tomes.toml`: the id of the set, where each of its tomes is, and the certificates.
//!
//! ```toml
//! set = "5e7b3c1a-0d6f-4a53-9f0e-0c2f6a1d9b42"
//!
//! [tls]
//! ca = "ca.pem"                     # paths from the folder of this file
//! certificate = "tome-1.pem"
//! key = "tome-1.key"
//!
//! [tomes]
//! 0 = { root = "/srv/disk-0" }      # in the process of the set
//! 1 = { address = "10.0.0.11:7443" }
//! ```
//!
//! All processes use the same file, except for certificate and key. Not here: the content of the
//! files that it names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fulgurite_tome_core::TomeId;
use fulgurite_units::{TomeSetId, settings};
use serde::Deserialize;

use crate::limits::TOMES_MAX;
use crate::remote::Result;
use fulgurite_rpc::{RpcError, TlsFiles, read_file};

/// Content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TomesFile {
    /// Id of the set.
    pub set: TomeSetId,
    /// Certificates and key.
    pub tls: TlsFiles,
    /// Location of each tome, numbered from zero without gaps.
    pub tomes: BTreeMap<TomeId, TomeAddress>,
}

/// Location of a tome.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TomeAddress {
    /// In the process of the set, with its disk in this folder.
    Here(PathBuf),
    /// In a process of its own, at this host and port.
    At(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    set: String,
    tls: TlsFiles,
    tomes: BTreeMap<String, RawTomeAddress>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTomeAddress {
    address: Option<String>,
    root: Option<PathBuf>,
}

impl TomesFile {
    /// Reads the file.
    ///
    /// # Errors
    /// When it cannot be read, or as [`Self::parse`].
    pub fn read(path: &Path) -> Result<Self> {
        let text = String::from_utf8_lossy(&read_file(path)?).into_owned();
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let wrong = |what| RpcError::File { path: path.to_owned(), what }.into();
        Self::parse(&text, folder).map_err(wrong)
    }

    /// Parses a text, with paths relative to a folder.
    ///
    /// # Errors
    /// A description of the error, with a line number where there is one.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let raw: Raw = settings::from_toml(text).map_err(|error| error.to_string())?;
        let set = raw.set.parse().map_err(|_| format!("set = {:?} is not an id", raw.set))?;
        let mut tomes = BTreeMap::new();
        for (number, raw) in raw.tomes {
            let tome = number.parse().ok().filter(|tome: &u32| tome.to_string() == number);
            let tome = tome.ok_or_else(|| format!("{number:?} is not the number of a tome"))?;
            tomes.insert(TomeId::new(tome), place(tome, raw, folder)?);
        }
        check(&tomes)?;
        let TlsFiles { ca, certificate, key } = raw.tls;
        let [ca, certificate, key] = [ca, certificate, key].map(|path| folder.join(path));
        Ok(Self { set, tls: TlsFiles { ca, certificate, key }, tomes })
    }

    /// Returns tomes in processes of their own, with their addresses.
    #[must_use]
    pub fn addresses(&self) -> BTreeMap<TomeId, String> {
        let remote = |(tome, place): (&TomeId, &TomeAddress)| match place {
            TomeAddress::At(address) => Some((*tome, address.clone())),
            TomeAddress::Here(_) => None,
        };
        self.tomes.iter().filter_map(remote).collect()
    }

    /// Returns tomes in the process of the set, with the folders of their disks.
    #[must_use]
    pub fn roots(&self) -> BTreeMap<TomeId, PathBuf> {
        let local = |(tome, place): (&TomeId, &TomeAddress)| match place {
            TomeAddress::Here(root) => Some((*tome, root.clone())),
            TomeAddress::At(_) => None,
        };
        self.tomes.iter().filter_map(local).collect()
    }
}

fn place(tome: u32, raw: RawTomeAddress, folder: &Path) -> Result<TomeAddress, String> {
    match (raw.address, raw.root) {
        (Some(address), None) => match address.parse::<http::uri::Authority>() {
            Ok(authority) if authority.port_u16().is_some() && !address.contains('@') => {
                Ok(TomeAddress::At(address))
            }
            Ok(_) | Err(_) => Err(format!("tome {tome}: {address:?} is not a host with a port")),
        },
        (None, Some(root)) => Ok(TomeAddress::Here(folder.join(root))),
        (Some(_), Some(_)) => {
            Err(format!("tome {tome} has both an address and a root: give one of them"))
        }
        (None, None) => Err(format!("tome {tome} has neither an address nor a root")),
    }
}

fn check(tomes: &BTreeMap<TomeId, TomeAddress>) -> Result<(), String> {
    if tomes.is_empty() || tomes.len() > TOMES_MAX as usize {
        return Err(format!("there are {} tomes: 1 to {TOMES_MAX} are allowed", tomes.len()));
    }
    for (expected, tome) in (0..).zip(tomes.keys()) {
        if tome.get() != expected {
            return Err(format!(
                "tome {expected} is missing: tomes are numbered from zero without gaps"
            ));
        }
    }
    let mut places = BTreeSet::new();
    for (tome, place) in tomes {
        if !places.insert(place) {
            let place = match place {
                TomeAddress::At(address) => address.clone(),
                TomeAddress::Here(root) => root.display().to_string(),
            };
            return Err(format!("tome {tome}: another tome is at \"{place}\" too"));
        }
    }
    Ok(())
}
