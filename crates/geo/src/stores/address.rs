//! Addresses of sites as URLs, parsed once into a checked type.
//!
//! ```text
//! dir:///path
//! mem://name
//! s3://bucket/prefix?endpoint=..&region=..
//! az://container/prefix?account=..
//! gs://bucket/prefix
//! postgres://user@host:port/database?table=..
//! etcd://host:port,host:port/prefix
//! node://host:port/name?ca=..&cert=..&key=..
//! ```
//!
//! An address contains no secret, only the name of the environment variable that has it. So it may
//! be shown, logged and stored.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::stores::Key;
use crate::stores::limits::PREFIX_BYTES_MAX;

/// Characters that are percent-encoded: all but alphanumerics and these.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'/').remove(b':').remove(b',');

/// Kind of store that an address names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Directory,
    Memory,
    S3,
    Google,
    Azure,
    Postgres,
    Etcd,
    Node,
}

/// The schemes: their names, what the host part is, and the options they take.
const SCHEMES: [(Scheme, &str, &str, &[&str]); 8] = [
    (Scheme::Directory, "dir", "nothing", &[]),
    (Scheme::Memory, "mem", "a name", &[]),
    (
        Scheme::S3,
        "s3",
        "a bucket",
        &[
            "endpoint",
            "region",
            "ca",
            "access_key_id_env",
            "secret_access_key_env",
            "session_token_env",
        ],
    ),
    (Scheme::Google, "gs", "a bucket", &["endpoint", "ca", "service_account_key_env"]),
    (Scheme::Azure, "az", "a container", &["account", "endpoint", "ca", "account_key_env"]),
    (
        Scheme::Postgres,
        "postgres",
        "a host",
        &["table", "password_env", "sslmode", "ca", "connections"],
    ),
    (Scheme::Etcd, "etcd", "a host", &["user", "password_env", "tls", "ca"]),
    (Scheme::Node, "node", "a host", &["ca", "cert", "key"]),
];

/// The address of a site.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) scheme: Scheme,
    pub(crate) user: Option<String>,
    /// Bucket, name or hosts.
    pub(crate) host: String,
    /// Without surrounding slashes, except for a directory, which begins with one.
    pub(crate) path: String,
    pub(crate) options: BTreeMap<String, String>,
}

/// An invalid address: what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid site address: {place}: {problem}; {remedy}")]
pub struct AddressError {
    /// The part of the address.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

/// Returns an error about a part of an address.
pub(crate) fn refuse(
    place: impl Into<String>,
    problem: impl Into<String>,
    remedy: impl Into<String>,
) -> AddressError {
    AddressError { place: place.into(), problem: problem.into(), remedy: remedy.into() }
}

impl Address {
    /// Returns the directory that it names, if it names one.
    #[must_use]
    pub fn directory(&self) -> Option<&std::path::Path> {
        (self.scheme == Scheme::Directory).then(|| std::path::Path::new(&self.path))
    }

    /// Returns the address of a directory.
    ///
    /// # Errors
    /// If its path is not UTF-8, or is not absolute.
    pub fn from_directory(directory: &std::path::Path) -> Result<Self, AddressError> {
        let text = directory.to_str().unwrap_or_default();
        let path = utf8_percent_encode(text, ENCODED);
        format!("dir://{path}").parse()
    }

    /// Whether it names a node, which may serve a table, blobs, or both.
    #[must_use]
    pub const fn is_node(&self) -> bool {
        matches!(self.scheme, Scheme::Node)
    }

    /// Returns the value of an option, if it is set.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let names: Vec<String> = SCHEMES.iter().map(|(_, name, ..)| format!("{name}://")).collect();
        let unknown = |problem: &str| {
            refuse("the beginning", problem, format!("begin with one of {}", names.join(" ")))
        };
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(unknown("it has no scheme"));
        };
        let known = SCHEMES.iter().find(|(_, name, ..)| *name == scheme);
        let Some(&(scheme, name, host_is, allowed)) = known else {
            return Err(unknown("its scheme is unknown"));
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match place.find('/') {
            Some(index) => place.split_at(index),
            None => (place, ""),
        };
        let (user, host) = user_and_host(scheme, authority)?;
        if (scheme == Scheme::Directory) != host.is_empty() {
            let is_directory = scheme == Scheme::Directory;
            let example = format!("write {name}:// and {host_is}");
            let absolute = "use an absolute path: dir:///path".to_owned();
            let remedy = if is_directory { absolute } else { example };
            return Err(refuse("the host", format!("expected {host_is}"), remedy));
        }
        check_host(scheme, &host)?;
        let path = parse_path(scheme, path)?;
        let options = parse_options(name, allowed, query)?;
        Ok(Self { scheme, user, host, path, options })
    }
}

/// Splits what precedes the path into user and host. A password is rejected and not shown.
fn user_and_host(scheme: Scheme, text: &str) -> Result<(Option<String>, String), AddressError> {
    let Some((user, host)) = text.rsplit_once('@') else {
        return Ok((None, decode("the host", text)?));
    };
    if user.contains(':') {
        let remedy = "remove it, set it in an environment variable, and name that with \
                      password_env=NAME";
        return Err(refuse("the user", "it contains a password", remedy));
    }
    if scheme != Scheme::Postgres {
        let remedy =
            "only postgres:// has a user; name secrets by options, as in password_env=NAME";
        return Err(refuse("the user", "this kind of store has no user", remedy));
    }
    Ok((Some(decode("the user", user)?), decode("the host", host)?))
}

fn check_host(scheme: Scheme, host: &str) -> Result<(), AddressError> {
    let is_host_char = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:,[]".contains(&byte);
    let is_simple = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_valid = match scheme {
        Scheme::Postgres | Scheme::Etcd | Scheme::Node => host.bytes().all(is_host_char),
        Scheme::Directory | Scheme::Memory | Scheme::S3 | Scheme::Google | Scheme::Azure => {
            host.bytes().all(is_simple)
        }
    };
    if is_valid {
        return Ok(());
    }
    Err(refuse("the host", "it has invalid characters", "use letters, digits, - . and _"))
}

fn parse_path(scheme: Scheme, text: &str) -> Result<String, AddressError> {
    let path = decode("the path", text)?;
    if scheme == Scheme::Directory {
        let remedy = "use an absolute path: dir:///path";
        let is_path = path.starts_with('/') && path.len() > 1 && !path.contains('\0');
        return if is_path {
            Ok(path)
        } else {
            Err(refuse("the path", "it is not an absolute path", remedy))
        };
    }
    let path = path.strip_prefix('/').unwrap_or(&path);
    let path = path.strip_suffix('/').unwrap_or(path).to_owned();
    if scheme == Scheme::Postgres {
        let is_name = !path.is_empty() && !path.contains('/');
        let remedy = "write postgres://user@host/database";
        let refused = || refuse("the path", "it is not the name of a database", remedy);
        return if is_name { Ok(path) } else { Err(refused()) };
    }
    if path.is_empty() {
        return Ok(path);
    }
    if scheme == Scheme::Memory {
        return Err(refuse("the path", "a table in memory has no path", "write mem://name"));
    }
    if scheme == Scheme::Node {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if path.bytes().all(is_letter) {
            return Ok(path);
        }
        let remedy = "write node://host:port/name, where name is in the node's certificate";
        return Err(refuse("the path", "it is not the name of a node", remedy));
    }
    match Key::new(path.as_str()) {
        Ok(_) if path.len() <= PREFIX_BYTES_MAX => Ok(path),
        Ok(_) => {
            let problem = format!("it has more than {PREFIX_BYTES_MAX} bytes");
            Err(refuse("the path", problem, "choose a shorter prefix"))
        }
        Err(error) => Err(refuse("the path", error.to_string(), "choose another prefix")),
    }
}

fn parse_options(
    scheme: &str,
    allowed: &[&str],
    query: &str,
) -> Result<BTreeMap<String, String>, AddressError> {
    let mut options = BTreeMap::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        if !allowed.contains(&name) {
            let problem = "an option that this kind of store does not have";
            let remedy = match allowed {
                [] => format!("{scheme}:// takes none"),
                some => format!("{scheme}:// takes {}", some.join(", ")),
            };
            // Do not show the name: it may be a misplaced secret.
            return Err(refuse("the options", problem, remedy));
        }
        let place = format!("the option {name}");
        let value = decode(&place, value)?;
        if value.is_empty() {
            return Err(refuse(place, "it is empty", "give it a value or leave it out"));
        }
        let is_url = value.starts_with("http://") || value.starts_with("https://");
        if name == "endpoint" && (!is_url || value.contains('@')) {
            let remedy = "write http://host:port or https://host, without a user";
            return Err(refuse(place, "it is not the URL of a server", remedy));
        }
        let is_variable = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.ends_with("_env") && !value.bytes().all(is_variable) {
            let remedy = "name the variable that has the secret, not the secret";
            return Err(refuse(place, "it is not the name of an environment variable", remedy));
        }
        if options.insert(name.to_owned(), value).is_some() {
            return Err(refuse(place, "it is set twice", "set it once"));
        }
    }
    Ok(options)
}

fn decode(place: &str, text: &str) -> Result<String, AddressError> {
    let text = percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| refuse(place, "it is not UTF-8", "write it as percent-encoded UTF-8"))?;
    if text.contains(|c: char| c.is_control()) {
        return Err(refuse(place, "it has control characters", "remove them"));
    }
    Ok(text.into_owned())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoded = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
        let name = SCHEMES.iter().find(|(scheme, ..)| *scheme == self.scheme);
        let name = name.map_or("", |(_, name, ..)| *name);
        write!(f, "{name}://")?;
        if let Some(user) = &self.user {
            write!(f, "{}@", encoded(user))?;
        }
        f.write_str(&encoded(&self.host))?;
        if !self.path.is_empty() && !self.path.starts_with('/') {
            f.write_str("/")?;
        }
        f.write_str(&encoded(&self.path))?;
        for (index, (name, value)) in self.options.iter().enumerate() {
            write!(f, "{}{name}={}", if index == 0 { '?' } else { '&' }, encoded(value))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests;
