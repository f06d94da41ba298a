//! Which tier the objects of a storage class go to, and whether they can be read there directly.
//!
//! Classes are rows of a table that the configuration may change. An object's home is stored with
//! it on arrival (`ObjectRow::home`): a later change of the table moves nothing by itself, and
//! loses nothing.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bodies::log::LogKind;
use crate::limits::TIER_NAME_BYTES_MAX;
use crate::model::object::StorageClass;
use crate::{ArchiveError, Result};

/// Names of built-in tiers, and of the state of bodies that wait for theirs.
const RESERVED: [&str; 2] = ["online", "staged"];

/// The name of the tier of kind `glass`, which every archive has.
const GLASS: &str = "glass";

/// The name of a configured tier: up to 32 of `a-z 0-9 -`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct TierName(String);

impl TierName {
    /// Checks `name`.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid or reserved name.
    pub fn new(name: &str) -> Result<Self> {
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let is_long = !(1..=TIER_NAME_BYTES_MAX).contains(&name.len());
        if is_long || !name.bytes().all(is_plain) || RESERVED.contains(&name) {
            return Err(ArchiveError::InvalidArgument {
                what: format!(
                    "{name:?} is not a valid name of a tier: use up to {TIER_NAME_BYTES_MAX} \
                     lower-case letters, digits and hyphens, and none of {}",
                    RESERVED.join(", ")
                ),
            });
        }
        Ok(Self(name.to_owned()))
    }

    /// Returns the name of the tier of kind `glass`.
    #[must_use]
    pub fn glass() -> Self {
        Self(GLASS.to_owned())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TierName {
    type Error = ArchiveError;

    fn try_from(name: String) -> Result<Self> {
        Self::new(&name)
    }
}

impl fmt::Display for TierName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The permanent location of an object's bodies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Home {
    /// The online log, in the data directory.
    Online,
    /// Glass.
    Glass,
    /// A tier of objects.
    Tier(TierName),
}

impl Home {
    /// Returns the log to which new bodies for this home are written.
    pub(crate) const fn log(&self) -> LogKind {
        match self {
            Self::Online => LogKind::Online,
            Self::Glass | Self::Tier(_) => LogKind::Staging,
        }
    }
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Online => f.write_str("online"),
            Self::Glass => f.write_str(GLASS),
            Self::Tier(name) => name.fmt(f),
        }
    }
}

/// When an object in a tier can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// At any time.
    AtOnce,
    /// After a restore, until the restored copy expires.
    AfterRestore,
}

/// The table: class, home, access.
#[derive(Clone, Debug)]
pub struct Classes {
    rows: BTreeMap<StorageClass, (Home, Access)>,
}

impl Default for Classes {
    /// `STANDARD` online; `GLACIER` and `DEEP_ARCHIVE` on glass.
    fn default() -> Self {
        let rows = [
            (StorageClass::Standard, (Home::Online, Access::AtOnce)),
            (StorageClass::Glacier, (Home::Glass, Access::AfterRestore)),
            (StorageClass::DeepArchive, (Home::Glass, Access::AfterRestore)),
        ];
        Self { rows: rows.into() }
    }
}

impl Classes {
    /// Sets the row of a class; without `access` it is S3's, as far as the tier supports that.
    ///
    /// # Errors
    /// `InvalidArgument` for direct reads of glass, and for online after a restore.
    pub fn assign(
        &mut self,
        class: StorageClass,
        home: Home,
        access: Option<Access>,
    ) -> Result<()> {
        let usual = match (&home, class) {
            (Home::Online, _) => Access::AtOnce,
            (Home::Glass, _) => Access::AfterRestore,
            (Home::Tier(_), StorageClass::Glacier | StorageClass::DeepArchive) => {
                Access::AfterRestore
            }
            (
                Home::Tier(_),
                StorageClass::Standard
                | StorageClass::GlacierIr
                | StorageClass::StandardIa
                | StorageClass::OnezoneIa
                | StorageClass::IntelligentTiering,
            ) => Access::AtOnce,
        };
        let access = access.unwrap_or(usual);
        let wrong = match (&home, access) {
            (Home::Glass, Access::AtOnce) => Some("glass can only be read after a restore"),
            (Home::Online, Access::AfterRestore) => Some("online objects need no restore"),
            _ => None,
        };
        if let Some(reason) = wrong {
            let what = format!("class {} cannot have this access: {reason}", class.name());
            return Err(ArchiveError::InvalidArgument { what });
        }
        self.rows.insert(class, (home, access));
        Ok(())
    }

    /// Returns all rows.
    pub fn iter(&self) -> impl Iterator<Item = (StorageClass, &Home, Access)> {
        self.rows.iter().map(|(&class, (home, access))| (class, home, *access))
    }

    /// Returns where new objects of a class go.
    pub(crate) fn home(&self, class: StorageClass) -> Result<&Home> {
        let (home, _) = self.rows.get(&class).ok_or_else(|| {
            let class = class.name().to_owned();
            ArchiveError::InvalidStorageClass { class }
        })?;
        Ok(home)
    }

    /// Returns the home of an object that a recovery found in the staging log. If its class is
    /// online now, it stays in that log, where it can be read as well.
    pub(crate) fn staged(&self, class: StorageClass) -> Home {
        self.home(class).cloned().unwrap_or(Home::Online)
    }

    /// Whether an object can only be read from a restored copy.
    pub(crate) fn needs_restore(&self, class: StorageClass, home: &Home) -> bool {
        match home {
            Home::Online => false,
            Home::Glass => true,
            Home::Tier(_) => {
                // A class without a row is treated as S3 does.
                let row = self.rows.get(&class).map(|&(_, access)| access);
                row.unwrap_or(Access::AtOnce) == Access::AfterRestore
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glass_requires_a_restore_and_online_does_not() {
        let mut classes = Classes::default();
        let mut assign = |home, access| classes.assign(StorageClass::Glacier, home, access);
        assert!(assign(Home::Glass, Some(Access::AtOnce)).is_err());
        assert!(assign(Home::Online, Some(Access::AfterRestore)).is_err());
        assign(Home::Online, None).unwrap();
        assert_eq!(*classes.home(StorageClass::Glacier).unwrap(), Home::Online);
    }

    #[test]
    fn unconfigured_class_is_refused_by_name() {
        for class in [
            StorageClass::GlacierIr,
            StorageClass::StandardIa,
            StorageClass::OnezoneIa,
            StorageClass::IntelligentTiering,
        ] {
            let error = Classes::default().home(class).unwrap_err();
            assert!(error.to_string().contains(class.name()), "{error}");
        }
    }

    #[test]
    fn tier_access_defaults_to_that_of_s3() {
        let mut classes = Classes::default();
        let cold = || Home::Tier(TierName::new("cold").unwrap());
        for (class, access, needs_restore) in [
            (StorageClass::Standard, None, false),
            (StorageClass::GlacierIr, None, false),
            (StorageClass::StandardIa, None, false),
            (StorageClass::OnezoneIa, None, false),
            (StorageClass::IntelligentTiering, None, false),
            (StorageClass::Glacier, None, true),
            (StorageClass::DeepArchive, None, true),
            (StorageClass::Glacier, Some(Access::AtOnce), false),
            (StorageClass::GlacierIr, Some(Access::AfterRestore), true),
        ] {
            classes.assign(class, cold(), access).unwrap();
            assert_eq!(
                classes.needs_restore(class, &cold()),
                needs_restore,
                "{class:?} {access:?}"
            );
            // Objects that went to glass before the table changed are still there.
            assert!(classes.needs_restore(class, &Home::Glass));
        }
    }

    /// Checks the steps of docs/design/adding-a-storage-class.md.
    #[test]
    fn every_class_has_a_name_a_code_and_an_access() {
        for (place, class) in (0..).zip(StorageClass::ALL) {
            assert_eq!(StorageClass::parse(class.name()).unwrap(), class);
            let written = postcard::to_extend(&class, Vec::new()).unwrap();
            assert_eq!(written, [place], "{class:?} must keep its code in existing rows");
            let mut classes = Classes::default();
            for home in [Home::Online, Home::Glass, Home::Tier(TierName::new("cold").unwrap())] {
                classes.assign(class, home.clone(), None).unwrap();
                assert_eq!(*classes.home(class).unwrap(), home);
            }
        }
    }

    #[test]
    fn invalid_and_reserved_tier_names_are_refused() {
        for name in ["", "Cold", "a b", "staged", "online", &"x".repeat(33)] {
            assert!(TierName::new(name).is_err(), "{name}");
        }
        assert_eq!(TierName::new("cold-2").unwrap().to_string(), "cold-2");
        assert!(TierName::try_from("online".to_owned()).is_err());
        assert_eq!(TierName::new("glass").unwrap(), TierName::glass());
    }
}
