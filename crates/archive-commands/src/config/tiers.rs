//! `[tiers.NAME]` and `[classes]`: the tiers by name, each of a kind, and the tier of each class.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use fulgurite_archive::StorageClass;
use fulgurite_archive::config::{Access, Classes, Home, TierName, TierOptions};
use fulgurite_tier::TierKind;
use fulgurite_units::settings;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{ConfigError, Geo, Glass, Rack, Tome, locations, refuse};

/// Prefix of variables with an option of a tier: the tier's name and the option's follow, in upper
/// case.
pub(super) const VARIABLE: &str = "FULGURITE_TIER_";

/// The kinds of tiers.
const KINDS: [&str; 5] = ["glass", "rack", "tome", "geo", "objects"];

/// `[tiers.NAME]` in the file, of any kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Entry {
    /// The glass tier.
    Glass(GlassEntry),
    /// Another tier.
    Other(Tier),
}

/// The glass tier, with its kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum GlassEntry {
    /// Its settings.
    Glass(Box<Glass>),
}

/// A tier other than the glass tier.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Tier {
    /// A rack of cold disks.
    Rack(Box<Rack>),
    /// A set of tomes.
    Tome(Box<Tome>),
    /// A namespace over several sites.
    Geo(Box<Geo>),
    /// A directory or a bucket.
    Objects(Objects),
}

/// A tier of kind `objects`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Objects {
    /// `file:///folder`, `s3://bucket/prefix`, `az://container/prefix` or `gs://bucket/prefix`.
    pub url: String,
    /// CA certificates (PEM) trusted in addition to those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Other options of the store; no secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for Entry {
    /// Reads the kind first, then its keys, so that errors name the key.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut table = toml::Table::deserialize(from)?;
        let kind = table.remove("kind");
        let read = match kind.as_ref().and_then(toml::Value::as_str) {
            Some("glass") => {
                settings::from_table(&table).map(|glass| Self::Glass(GlassEntry::Glass(glass)))
            }
            Some("rack") => settings::from_table(&table).map(|rack| Self::Other(Tier::Rack(rack))),
            Some("tome") => settings::from_table(&table).map(|tome| Self::Other(Tier::Tome(tome))),
            Some("geo") => settings::from_table(&table).map(|geo| Self::Other(Tier::Geo(geo))),
            Some("objects") => {
                settings::from_table(&table).map(|objects| Self::Other(Tier::Objects(objects)))
            }
            Some(_) | None => {
                let known = KINDS.join(", ");
                return Err(D::Error::custom(match kind {
                    Some(kind) => format!("kind {kind} is none of {known}"),
                    None => format!("a tier has a kind: write kind = and one of {known}"),
                }));
            }
        };
        read.map_err(|error| D::Error::custom(error.to_string().trim_end()))
    }
}

/// Separates the glass tier from the others.
pub(super) fn separate(
    entries: BTreeMap<TierName, Entry>,
) -> Result<(Glass, BTreeMap<TierName, Tier>), ConfigError> {
    let (mut glass, mut others) = (Glass::default(), BTreeMap::new());
    let name_of_glass = TierName::glass();
    for (name, entry) in entries {
        let reason = match entry {
            Entry::Glass(GlassEntry::Glass(settings)) if name == name_of_glass => {
                glass = *settings;
                continue;
            }
            Entry::Other(tier) if name != name_of_glass => {
                others.insert(name, tier);
                continue;
            }
            Entry::Glass(_) => "the tier of kind glass is called glass: write [tiers.glass]",
            Entry::Other(_) => "glass is the name of the tier of kind glass: take another",
        };
        return refuse("kind", reason).map_err(|error: ConfigError| error.in_tier(&name));
    }
    Ok((glass, others))
}

/// Puts the glass tier and the others together.
pub(super) fn join(glass: &Glass, others: &BTreeMap<TierName, Tier>) -> BTreeMap<TierName, Entry> {
    let others = others.iter().map(|(name, tier)| (name.clone(), Entry::Other(tier.clone())));
    let glass = Entry::Glass(GlassEntry::Glass(Box::new(glass.clone())));
    others.chain([(TierName::glass(), glass)]).collect()
}

impl Tier {
    /// Returns its kind.
    #[must_use]
    pub const fn kind(&self) -> TierKind {
        match self {
            Self::Rack(_) => TierKind::Rack,
            Self::Tome(_) => TierKind::Tome,
            Self::Geo(_) => TierKind::Geo,
            Self::Objects(_) => TierKind::Objects,
        }
    }

    pub(crate) fn tome(&self) -> Option<&Tome> {
        if let Self::Tome(tome) = self { Some(tome) } else { None }
    }

    fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Rack(rack) => rack.validate(),
            Self::Tome(tome) => tome.validate(),
            Self::Geo(geo) => geo.validate(),
            Self::Objects(objects) => objects.validate(),
        }
    }
}

impl Objects {
    /// Rejects addresses with keys in them: they are shown in logs and in the configuration.
    fn validate(&self) -> Result<(), ConfigError> {
        let reason = "an address may not have keys in it: set them as variables of the environment";
        if has_keys(&self.url) {
            return refuse("url", reason);
        }
        if self.options.values().any(|value| has_keys(value)) {
            return refuse("options", reason);
        }
        Ok(())
    }
}

/// Whether a value is an address with keys in it.
fn has_keys(value: &str) -> bool {
    let after = value.split_once("://").map_or("", |(_, after)| after);
    let host = after.split('/').next().unwrap_or("");
    host.contains('@') || after.contains('?')
}

/// Returns the directory of a tier, by default DATA/tiers/NAME.
pub(super) fn folder(directory: Option<&Path>, name: &TierName, data: &Path) -> PathBuf {
    directory.map_or_else(|| tiers_folder(data).join(name.as_str()), Path::to_owned)
}

/// Returns the directory that has those of tiers.
pub(crate) fn tiers_folder(data: &Path) -> PathBuf {
    data.join("tiers")
}

/// A tier with its settings.
#[derive(Clone, Debug)]
pub struct TierConfig<T> {
    /// Its name.
    pub name: TierName,
    /// Its settings.
    pub settings: T,
    /// The directory of its index.
    pub folder: PathBuf,
}

impl TierConfig<Rack> {
    /// Returns the rack `name` of an archive in `data`.
    #[must_use]
    pub fn rack(name: &TierName, rack: &Rack, data: &Path) -> Self {
        let folder = folder(rack.directory.as_deref(), name, data);
        Self { name: name.clone(), settings: rack.clone(), folder }
    }
}

impl TierConfig<Tome> {
    /// Returns the set of tomes `name` of an archive in `data`.
    #[must_use]
    pub fn tome(name: &TierName, tome: &Tome, data: &Path) -> Self {
        let folder = folder(tome.directory.as_deref(), name, data);
        Self { name: name.clone(), settings: tome.clone(), folder }
    }
}

/// `--tier NAME=KIND:VALUE`
#[derive(Clone, Debug, PartialEq)]
pub struct TierFlag {
    /// Its name.
    pub name: TierName,
    /// Its settings: the kind's defaults but for the value.
    pub tier: Tier,
}

impl FromStr for TierFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "write NAME=rack:SHAPE, NAME=tome:COUNT, NAME=geo:MAP or NAME=objects:URL".to_owned()
        };
        let (name, tier) = text.split_once('=').ok_or_else(wrong)?;
        let (kind, value) = tier.split_once(':').ok_or_else(wrong)?;
        let tier = match kind {
            "rack" => Tier::Rack(Box::new(Rack::simulated(value.to_owned()))),
            "tome" => Tier::Tome(Box::new(Tome::simulated(value.parse().map_err(|_| wrong())?))),
            "geo" => Tier::Geo(Box::new(Geo { map: value.into(), ..Geo::default() })),
            "objects" => Tier::Objects(Objects { url: value.to_owned(), ..Objects::default() }),
            _ => return Err(wrong()),
        };
        let name = TierName::new(name).map_err(|error| error.to_string())?;
        if name == TierName::glass() {
            return Err("glass is the name of the tier of kind glass: take another".to_owned());
        }
        Ok(Self { name, tier })
    }
}

/// A row of `[classes]`: the name of a tier, or also the access.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Class {
    /// With S3's access for the class.
    Tier(String),
    /// With explicit access.
    Row {
        /// `online`, `glass`, or one of `[tiers]`.
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

/// Rejects tables like `[rack]` or `[medium]`, and says how a tier is written.
pub(super) fn refuse_tables_of_kinds(text: &str) -> Result<(), ConfigError> {
    let table: toml::Table = text.parse().unwrap_or_default();
    for (name, kind) in [("rack", "rack"), ("tome", "tome"), ("tomes", "tome"), ("geo", "geo")] {
        if table.contains_key(name) {
            let reason = format!(
                "a tier has a name: write [tiers.NAME] with kind = \"{kind}\" in place of [{name}]"
            );
            return refuse(name, reason);
        }
    }
    for (name, setting) in [
        ("profile", "profile = ... below [tiers.glass]"),
        ("geometry", "[tiers.glass.geometry]"),
        ("seal", "[tiers.glass.moves], and shard_size and far_libraries in [tiers.glass]"),
        ("medium", "[tiers.glass.medium]"),
        ("library", "[tiers.glass.library]"),
    ] {
        if table.contains_key(name) {
            let reason =
                format!("it is of the tier with kind = \"glass\": write {setting} in its place");
            return refuse(name, reason);
        }
    }
    Ok(())
}

/// Rejects invalid settings of tiers, before anything is opened.
pub(super) fn validate(tiers: &BTreeMap<TierName, Tier>) -> Result<(), ConfigError> {
    if let Err(reason) = objects(tiers, std::iter::empty()) {
        return refuse("tiers", reason);
    }
    for (name, tier) in tiers {
        tier.validate().map_err(|error| error.in_tier(name))?;
    }
    locations::check(tiers, None)?;
    let mut sharing: Option<&TierName> = None;
    for (name, tier) in tiers {
        if let Tier::Geo(geo) = tier
            && !geo.shared.is_empty()
            && let Some(other) = sharing.replace(name)
        {
            let reason = format!("buckets are shared at tier \"{other}\"; name all of them there");
            return refuse("shared", reason).map_err(|error| error.in_tier(name));
        }
    }
    Ok(())
}

/// Builds the table of classes. Without a row, `GLACIER` goes to the only rack and `GLACIER_IR` to
/// the only set of tomes.
pub(super) fn classes(
    rows: &BTreeMap<String, Class>,
    tiers: &BTreeMap<TierName, Tier>,
) -> Result<Classes, String> {
    let mut classes = Classes::default();
    for (class, kind) in
        [(StorageClass::GlacierIr, TierKind::Tome), (StorageClass::Glacier, TierKind::Rack)]
    {
        let mut names = tiers.iter().filter(|(_, tier)| tier.kind() == kind).map(|(name, _)| name);
        let Some(name) = names.next().filter(|_| !rows.contains_key(class.name())) else {
            continue;
        };
        if let Some(other) = names.next() {
            let class = class.name();
            return Err(format!(
                "{class} could go to \"{name}\" or to \"{other}\": write {class} = \"{name}\""
            ));
        }
        let home = Home::Tier(name.clone());
        classes.assign(class, home, None).map_err(|error| error.to_string())?;
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
            name => match tiers.keys().find(|known| known.as_str() == name) {
                Some(name) => Home::Tier(name.clone()),
                None => {
                    let class = class.name();
                    return Err(format!("{class} goes to \"{name}\", which is none of [tiers]"));
                }
            },
        };
        let access = access.map(|access| match access {
            ClassAccess::AtOnce => Access::AtOnce,
            ClassAccess::AfterRestore => Access::AfterRestore,
        });
        classes.assign(class, home, access).map_err(|error| error.to_string())?;
    }
    refuse_direct_reads_of_racks(&classes, tiers)?;
    Ok(classes)
}

fn refuse_direct_reads_of_racks(
    classes: &Classes,
    tiers: &BTreeMap<TierName, Tier>,
) -> Result<(), String> {
    for (class, home, access) in classes.iter() {
        if let Home::Tier(name) = home
            && matches!(tiers.get(name), Some(Tier::Rack(_)))
            && access == Access::AtOnce
        {
            return Err(format!(
                "class {} cannot have this access: the disks of \"{name}\" are spun down: it can \
                 only be read after a restore",
                class.name()
            ));
        }
    }
    Ok(())
}

/// Returns the tiers of kind `objects`, each with its options from `environment`.
pub(crate) fn objects(
    tiers: &BTreeMap<TierName, Tier>,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<BTreeMap<TierName, TierOptions>, String> {
    let mut options = BTreeMap::new();
    for (name, tier) in tiers {
        let Tier::Objects(tier) = tier else { continue };
        if let Some(secret) = tier.options.keys().find(|option| is_secret(option)) {
            let variable = format!("{}{}", prefix(name), secret.to_ascii_uppercase());
            return Err(format!(
                "{secret} is a secret and may not be in a configuration: set {variable}, or the \
                 variable that the store's own tools read"
            ));
        }
        let Objects { url, ca, options: known } = tier.clone();
        let tier = TierOptions { url, ca, options: known, ..TierOptions::default() };
        options.insert(name.clone(), tier);
    }
    for (variable, value) in environment.filter(|(name, _)| name.starts_with(VARIABLE)) {
        // If one name is a prefix of another, the longer one matches.
        let mut names: Vec<&TierName> = options.keys().collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.as_str().len()));
        let found = names.into_iter().find(|name| variable.starts_with(&prefix(name))).cloned();
        let Some(tier) = found else {
            return Err(format!("{variable} names no tier of kind objects"));
        };
        let option = variable[prefix(&tier).len()..].to_ascii_lowercase();
        if !is_secret(&option) && has_keys(&value) {
            return Err(format!(
                "{variable} is an address and may not have keys in it: set each as a variable of \
                 its own"
            ));
        }
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

    fn tier(options: BTreeMap<String, String>) -> BTreeMap<TierName, Tier> {
        let url = "s3://vault/cold".to_owned();
        let cold = Tier::Objects(Objects { url, options, ca: None });
        BTreeMap::from([(TierName::new("cold").unwrap(), cold)])
    }

    fn variables(all: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        all.iter().map(owned).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn environment_options_reach_their_tier() {
        let variable = ("FULGURITE_TIER_COLD_AWS_SECRET_ACCESS_KEY", "hidden");
        let found = objects(&tier(BTreeMap::new()), variables(&[variable, ("HOME", "/")])).unwrap();
        let cold = &found[&TierName::new("cold").unwrap()];
        assert_eq!(cold.options["aws_secret_access_key"], "hidden");
        assert!(!format!("{cold:?}").contains("hidden"), "{cold:?}");
        let address = ("FULGURITE_TIER_COLD_AWS_ENDPOINT", "https://key:hidden@host");
        let refused = objects(&tier(BTreeMap::new()), variables(&[address])).unwrap_err();
        assert!(refused.contains(address.0) && !refused.contains("hidden"), "{refused}");
        let wrong =
            objects(&tier(BTreeMap::new()), variables(&[("FULGURITE_TIER_WARM_AWS_REGION", "x")]));
        assert!(wrong.unwrap_err().contains("FULGURITE_TIER_WARM_AWS_REGION"));
    }

    #[test]
    fn secrets_in_the_file_are_refused() {
        let with = |option: &str| tier([(option.to_owned(), "hidden".to_owned())].into());
        for secret in ["aws_secret_access_key", "aws_session_token", "azure_storage_account_key"] {
            let error = objects(&with(secret), variables(&[])).unwrap_err();
            assert!(error.contains("set FULGURITE_TIER_COLD_") && !error.contains("hidden"));
        }
        assert!(objects(&with("aws_access_key_id"), variables(&[])).is_ok());
    }
}
