//! `[tiers.NAME]` and `[classes]`: tiers of objects, and the tier of each class.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fulgurite_archive::StorageClass;
use fulgurite_archive::config::{Access, Classes, Home, TierName, TierOptions};
use serde::{Deserialize, Serialize};

use super::rack::TIER;
use super::{geo, tomes};

/// Prefix of variables with an option of a tier: the tier's name and the option's follow, in upper
/// case.
pub(super) const VARIABLE: &str = "FULGURITE_TIER_";

/// `[tiers.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tier {
    /// `file:///folder`, `s3://bucket/prefix`, `az://container/prefix` or `gs://bucket/prefix`.
    pub url: String,
    /// CA certificates (PEM) trusted in addition to those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Other options of the store; no secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

/// A row of `[classes]`: the name of a tier, or also the access.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Class {
    /// With S3's access for the class.
    Tier(String),
    /// With explicit access.
    Row {
        /// `online`, `glass`, `rack`, `tomes`, `geo`, or one of `[tiers]`.
        tier: String,
        /// Whether objects can be read at once or after a restore.
        access: ClassAccess,
    },
}

/// How objects of a class are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClassAccess {
    /// At any time.
    AtOnce,
    /// After a restore.
    AfterRestore,
}

/// Returns whether an option's name indicates a secret.
fn is_secret(option: &str) -> bool {
    let option = option.to_ascii_lowercase();
    let contains_word = |word| option.contains(word);
    ["secret", "token", "password", "sas", "credential"].into_iter().any(contains_word)
        || (contains_word("key") && !option.ends_with("key_id"))
}

/// Builds the table of classes.
pub(super) fn classes(
    rows: &BTreeMap<String, Class>,
    (has_rack, has_tomes, has_geo): (bool, bool, bool),
) -> Result<Classes, String> {
    let mut classes = Classes::default();
    if has_tomes {
        let home = Home::Tier(TierName::tomes());
        classes.assign(StorageClass::GlacierIr, home, None).map_err(|error| error.to_string())?;
    }
    if has_rack {
        let home = Home::Tier(TierName::rack());
        classes.assign(StorageClass::Glacier, home, None).map_err(|error| error.to_string())?;
    }
    for (class, row) in rows {
        let class = StorageClass::parse(class).map_err(|error| error.to_string())?;
        let (tier, access) = match row {
            Class::Tier(tier) => (tier, None),
            Class::Row { tier, access } => (tier, Some(*access)),
        };
        let home = match tier.as_str() {
            "online" => Home::Online,
            "glass" => Home::Glass,
            TIER if has_rack => Home::Tier(TierName::rack()),
            tomes::TIER if has_tomes => Home::Tier(TierName::tomes()),
            geo::TIER if has_geo => Home::Tier(TierName::geo()),
            geo::TIER => {
                return Err(format!(
                    "{} goes to several sites, and there are none; name their map in [geo], or \
                     write another tier",
                    class.name()
                ));
            }
            tomes::TIER => {
                return Err(format!(
                    "{} goes to tomes, and there are none; describe them in [tomes], or write \
                     another tier",
                    class.name()
                ));
            }
            TIER => {
                return Err(format!(
                    "{} goes to the rack, and there is none; describe it in [rack], or write \
                     another tier",
                    class.name()
                ));
            }
            name => Home::Tier(TierName::new(name).map_err(|error| error.to_string())?),
        };
        let access = access.map(|access| match access {
            ClassAccess::AtOnce => Access::AtOnce,
            ClassAccess::AfterRestore => Access::AfterRestore,
        });
        classes.assign(class, home, access).map_err(|error| error.to_string())?;
    }
    Ok(classes)
}

/// Returns the tiers, each with its options from `environment`.
pub(crate) fn tiers(
    tiers: &BTreeMap<String, Tier>,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<BTreeMap<TierName, TierOptions>, String> {
    let mut options = BTreeMap::new();
    for (name, tier) in tiers {
        let name = TierName::new(name).map_err(|error| error.to_string())?;
        if let Some(secret) = tier.options.keys().find(|option| is_secret(option)) {
            let variable = format!("{}{}", prefix(&name), secret.to_ascii_uppercase());
            return Err(format!(
                "{secret} is a secret and may not be in a configuration: set {variable}, or the \
                 variable that the store's own tools read"
            ));
        }
        let Tier { url, ca, options: known } = tier.clone();
        options.insert(name, TierOptions { url, ca, options: known, ..TierOptions::default() });
    }
    for (variable, value) in environment.filter(|(name, _)| name.starts_with(VARIABLE)) {
        // If one name is a prefix of another, the longer one matches.
        let mut names: Vec<&TierName> = options.keys().collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.as_str().len()));
        let found = names.into_iter().find(|name| variable.starts_with(&prefix(name))).cloned();
        let Some(tier) = found else {
            return Err(format!("{variable} names no tier of the configuration"));
        };
        let option = variable[prefix(&tier).len()..].to_ascii_lowercase();
        if let Some(options) = options.get_mut(&tier) {
            options.options.insert(option, value);
        }
    }
    Ok(options)
}

fn prefix(tier: &TierName) -> String {
    format!("{VARIABLE}{}_", tier.as_str().replace('-', "_").to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier() -> BTreeMap<String, Tier> {
        let url = "s3://vault/cold".to_owned();
        BTreeMap::from([("cold".to_owned(), Tier { url, ..Tier::default() })])
    }

    fn variables(all: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        all.iter().map(owned).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn environment_options_reach_their_tier() {
        let variable = ("FULGURITE_TIER_COLD_AWS_SECRET_ACCESS_KEY", "hidden");
        let found = tiers(&tier(), variables(&[variable, ("HOME", "/")])).unwrap();
        let cold = &found[&TierName::new("cold").unwrap()];
        assert_eq!(cold.options["aws_secret_access_key"], "hidden");
        assert!(!format!("{cold:?}").contains("hidden"), "{cold:?}");
        let wrong = tiers(&tier(), variables(&[("FULGURITE_TIER_WARM_AWS_REGION", "x")]));
        assert!(wrong.unwrap_err().contains("FULGURITE_TIER_WARM_AWS_REGION"));
    }

    #[test]
    fn secrets_in_the_file_are_refused() {
        for secret in ["aws_secret_access_key", "aws_session_token", "azure_storage_account_key"] {
            let mut tiers_ = tier();
            let cold = tiers_.get_mut("cold").unwrap();
            cold.options.insert(secret.to_owned(), "hidden".to_owned());
            let error = tiers(&tiers_, variables(&[])).unwrap_err();
            assert!(error.contains("set FULGURITE_TIER_COLD_") && !error.contains("hidden"));
        }
        let mut tiers_ = tier();
        let cold = tiers_.get_mut("cold").unwrap();
        cold.options.insert("aws_access_key_id".to_owned(), "me".to_owned());
        assert!(tiers(&tiers_, variables(&[])).is_ok());
    }
}
