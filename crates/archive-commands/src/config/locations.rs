//! Locations that only one tier may use: directories, disks, devices, URLs. Two spellings of one
//! location are one: relative paths, `..`, symbolic links and `file://` are resolved.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use fulgurite_archive::config::TierName;
use fulgurite_geo::objects::SiteMap;

use super::rack::Backend;
use super::tiers::{folder, tiers_folder};
use super::{ConfigError, Geo, Rack, Tier, Tome, refuse};

/// A location, and the setting that names it.
struct Location {
    setting: &'static str,
    /// An absolute path; or a relative one, which begins with what it is of: `s3:`, `geo:`, ...
    path: PathBuf,
}

impl Location {
    fn file(setting: &'static str, path: &Path) -> Self {
        Self { setting, path: resolve(path) }
    }

    fn other(setting: &'static str, kind: &str, name: &Path) -> Self {
        Self { setting, path: PathBuf::from(format!("{kind}:{}", name.display())) }
    }
}

/// Rejects two tiers in one location, and one in that of another. With the data directory of the
/// archive, also a tier that would be mixed with the archive's own files.
pub(super) fn check(
    tiers: &BTreeMap<TierName, Tier>,
    data: Option<&Path>,
) -> Result<(), ConfigError> {
    // Without a data directory, all default directories are below a path that does not exist.
    let base = resolve(data.unwrap_or_else(|| Path::new("DATA")));
    let mut owners: BTreeMap<PathBuf, (&TierName, &'static str)> = BTreeMap::new();
    for (name, tier) in tiers {
        let in_tier = |error: ConfigError| error.in_tier(name);
        for Location { setting, path } in locations(name, tier, &base).map_err(in_tier)? {
            if data.is_some() && is_of_archive(&path, &base) {
                let reason = format!(
                    "\"{}\" has the archive's own files in it; leave it out, or name a directory \
                     elsewhere",
                    path.display()
                );
                return refuse(setting, reason).map_err(in_tier);
            }
            let other = owners.insert(path.clone(), (name, setting));
            if let Some((other, _)) = other.filter(|(other, _)| *other != name) {
                let reason = format!(
                    "\"{}\" is in use by tier \"{other}\"; each tier has its own",
                    path.display()
                );
                return refuse(setting, reason).map_err(in_tier);
            }
        }
    }
    for (path, (name, setting)) in &owners {
        let outer = path.ancestors().skip(1).find_map(|outer| {
            let (other, _) = owners.get(outer).filter(|(other, _)| other != name)?;
            Some((outer, other))
        });
        if let Some((outer, other)) = outer {
            let reason = format!(
                "\"{}\" lies in \"{}\", which tier \"{other}\" has; each tier has its own",
                path.display(),
                outer.display()
            );
            return refuse(setting, reason).map_err(|error| error.in_tier(name));
        }
    }
    Ok(())
}

/// Whether a path is the data directory, one that it lies in, or one in it that is not for tiers.
fn is_of_archive(path: &Path, data: &Path) -> bool {
    let tiers = tiers_folder(data);
    data.starts_with(path)
        || (path.starts_with(data) && (path == tiers || !path.starts_with(tiers)))
}

fn locations(name: &TierName, tier: &Tier, data: &Path) -> Result<Vec<Location>, ConfigError> {
    match tier {
        Tier::Rack(rack) => of_rack(name, rack, data),
        Tier::Tome(tome) => of_tome(name, tome, data),
        Tier::Geo(geo) => Ok(of_geo(geo)),
        Tier::Objects(objects) => Ok(vec![of_url(&objects.url)]),
    }
}

fn of_rack(name: &TierName, rack: &Rack, data: &Path) -> Result<Vec<Location>, ConfigError> {
    let directory = folder(rack.directory.as_deref(), name, data);
    let shape = rack.effective_shape()?;
    let roots = rack.roots(&shape, &directory)?;
    let mut found = vec![Location::file("directory", &directory)];
    found.extend(roots.values().map(|root| Location::file("disks", root)));
    if rack.backend == Backend::Linux {
        let disks = rack.devices(&shape, &roots)?;
        found.extend(disks.values().map(|disk| Location::file("device", &disk.device)));
    }
    Ok(found)
}

fn of_tome(name: &TierName, tome: &Tome, data: &Path) -> Result<Vec<Location>, ConfigError> {
    let directory = folder(tome.directory.as_deref(), name, data);
    let mut found = vec![Location::file("directory", &directory)];
    // With a file of tomes in other processes, that has the directories.
    if let Some(network) = &tome.network {
        found.push(Location::other("network", "network", &resolve(network)));
        return Ok(found);
    }
    let roots = tome.roots(&directory)?;
    found.extend(roots.values().map(|root| Location::file("disks", root)));
    if tome.backend == Backend::Linux {
        let disks = tome.devices(&roots)?;
        found.extend(disks.values().map(|disk| Location::file("device", &disk.device)));
    }
    Ok(found)
}

/// Returns the folder in the namespace, which has the table of each site. Maps of one namespace may
/// be several files, and differ in sites that were added.
fn of_geo(geo: &Geo) -> Vec<Location> {
    let map = std::fs::read_to_string(&geo.map).ok().and_then(|text| SiteMap::parse(&text).ok());
    let tables = |map: SiteMap| {
        let tables = map.sites.into_iter().filter_map(|site| site.table);
        tables.map(|table| format!("{}/{}", map.name, table.replace('/', ":")).into()).collect()
    };
    // A map that cannot be read is refused when it is opened.
    let namespaces: Vec<PathBuf> = map.map_or_else(|| vec![resolve(&geo.map)], tables);
    let folder =
        |namespace: &PathBuf| Location::other("folder", "geo", &namespace.join(&geo.folder));
    let cache = geo.cache.iter().map(|cache| Location::file("cache", cache));
    namespaces.iter().map(folder).chain(cache).collect()
}

fn of_url(url: &str) -> Location {
    match url.split_once("://") {
        Some((scheme, path)) if scheme.eq_ignore_ascii_case("file") => {
            Location::file("url", Path::new(path))
        }
        Some((scheme, path)) => {
            Location::other("url", &scheme.to_ascii_lowercase(), &Path::new("/").join(path))
        }
        None => Location::file("url", Path::new(url)),
    }
}

/// Returns the absolute path without `..`, and without symbolic links as far as it exists.
fn resolve(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut resolved = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => drop(resolved.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                resolved.push(component);
                if let Ok(real) = resolved.canonicalize() {
                    resolved = real;
                }
            }
        }
    }
    resolved
}
