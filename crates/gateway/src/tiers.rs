//! The tiers that the operator can inspect and repair.

use std::collections::BTreeMap;

use fulgurite_archive::config::TierName;
use fulgurite_geo::objects::GeoStore;
use fulgurite_rack::RackStore;
use fulgurite_tome::objects::TomeStore;
use serde::{Deserialize, Serialize};

/// The tiers of an archive, by name.
pub type Tiers = BTreeMap<TierName, TierStore>;

/// An open tier.
#[derive(Clone, Debug)]
pub enum TierStore {
    /// A rack of cold disks.
    Rack(RackStore),
    /// A set of tomes.
    Tome(TomeStore),
    /// A namespace over several sites.
    Geo(GeoStore),
    /// A directory or a bucket, which only the archive uses.
    Objects,
}

/// The kind of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TierKind {
    /// A rack of cold disks.
    Rack,
    /// A set of tomes.
    Tome,
    /// A namespace over several sites.
    Geo,
    /// A directory or a bucket.
    Objects,
}

impl TierKind {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rack => "rack",
            Self::Tome => "tome",
            Self::Geo => "geo",
            Self::Objects => "objects",
        }
    }
}

impl TierStore {
    /// Returns its kind.
    #[must_use]
    pub const fn kind(&self) -> TierKind {
        match self {
            Self::Rack(_) => TierKind::Rack,
            Self::Tome(_) => TierKind::Tome,
            Self::Geo(_) => TierKind::Geo,
            Self::Objects => TierKind::Objects,
        }
    }

    pub(crate) const fn rack(&self) -> Option<&RackStore> {
        if let Self::Rack(store) = self { Some(store) } else { None }
    }

    pub(crate) const fn tome(&self) -> Option<&TomeStore> {
        if let Self::Tome(store) = self { Some(store) } else { None }
    }

    pub(crate) const fn geo(&self) -> Option<&GeoStore> {
        if let Self::Geo(store) = self { Some(store) } else { None }
    }
}
