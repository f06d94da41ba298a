//! Identities: each process has a certificate from one authority, which names its role in its set.
//!
//! ```text
//! tome-7.<set id>    tome 7          keeper.<set id>    the process of the set
//! ```
//!
//! The names are DNS names among the certificate's subject alternative names; a certificate with
//! several names of a set is rejected as ambiguous. TLS 1.3 only. Keys are never printed. Not here:
//! permissions.

use fulgurite_rpc::{DialError, Identity, TlsFiles, dial, dns_names};
use fulgurite_tome_core::TomeId;
use fulgurite_units::TomeSetId;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tonic::transport::Channel;

use crate::remote::limits::CONNECTION;
use crate::remote::{NetError, Result};

/// Role of a process in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerName {
    /// The process of the set, with the token manager.
    TokenManager,
    /// The process of one tome.
    Tome(TomeId),
}

impl PeerName {
    /// Returns its name in certificates.
    #[must_use]
    pub fn in_set(self, set: TomeSetId) -> String {
        match self {
            Self::TokenManager => format!("keeper.{set}"),
            Self::Tome(tome) => format!("tome-{tome}.{set}"),
        }
    }

    fn read(set: TomeSetId, dns: &str) -> Option<Self> {
        let first = dns.strip_suffix(&format!(".{set}"))?;
        let number = || first.strip_prefix("tome-")?.parse().ok().map(TomeId::new);
        let name = if first == "keeper" { Self::TokenManager } else { Self::Tome(number()?) };
        // Only the canonical form: no leading zeros.
        (name.in_set(set) == dns).then_some(name)
    }
}

/// The certificates and the key of one process.
#[derive(Clone, Debug)]
pub struct Tls {
    set: TomeSetId,
    identity: Identity,
}

impl Tls {
    /// Reads certificates and key.
    ///
    /// # Errors
    /// When a file cannot be read or lacks its content, the certificate is not for `name`, or it
    /// and the key do not match.
    pub fn read(files: &TlsFiles, set: TomeSetId, name: PeerName) -> Result<Self> {
        let identity = Identity::read(files)?;
        let own = name_of(set, identity.names())?;
        if own != name {
            let what = format!("{}, and not {}", own.in_set(set), name.in_set(set));
            return Err(NetError::PeerName { what });
        }
        Ok(Self { set, identity })
    }

    /// Reads them without checking the name, as a dishonest peer would.
    #[cfg(test)]
    pub(crate) fn unchecked(files: &TlsFiles, set: TomeSetId) -> Result<Self> {
        Ok(Self { set, identity: Identity::read(files)? })
    }

    /// The set of these certificates.
    #[must_use]
    pub const fn set(&self) -> TomeSetId {
        self.set
    }

    /// The certificates and the key.
    pub(crate) fn identity(&self) -> Identity {
        self.identity.clone()
    }

    /// Returns the role of a client that was authenticated.
    pub(crate) fn peer_name(&self, stream: &TlsStream<TcpStream>) -> Result<PeerName> {
        let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let none = || NetError::PeerName { what: "no peer".to_owned() };
        name_of(self.set, &dns_names(certificate.ok_or_else(none)?)?)
    }

    /// Connects only to the server with this name.
    pub(crate) async fn dial(&self, address: &str, to: PeerName) -> Result<Channel, DialError> {
        let name = ServerName::try_from(to.in_set(self.set));
        let name = name.map_err(|error| DialError::Tls(std::io::Error::other(error)))?;
        Ok(dial(address, name, &self.identity, CONNECTION).await?.0)
    }
}

/// Returns the role that a certificate with these names grants in a set.
fn name_of(set: TomeSetId, names: &[String]) -> Result<PeerName> {
    let mut names = names.iter().filter_map(|dns| PeerName::read(set, dns));
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(name),
        (None, _) => Err(NetError::PeerName { what: format!("no member of set {set}") }),
        (Some(_), Some(_)) => Err(NetError::PeerName { what: format!("two members of set {set}") }),
    }
}
