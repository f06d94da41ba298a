//! Why there is no connection to a node, with what an operator can do about it.

use std::io;

use fulgurite_rpc::Alert;
use rustls::{CertificateError, Error as RustlsError};

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DialError {
    /// A failure that may be transient.
    Unreachable(String),
    /// A permanent failure: an operator must fix it.
    Refused(String),
}

/// Interprets the end of a connection before anything was answered.
pub(crate) fn connection_error(authority: &str, alert: &Alert, why: &str) -> DialError {
    match alert.received() {
        Some(alert) => DialError::Refused(format!(
            "the node at {authority} rejects our certificate ({alert}): name one with cert=FILE \
             that its CA issued for client authentication and that has not expired"
        )),
        None => DialError::Unreachable(format!("the node at {authority} does not answer: {why}")),
    }
}

/// Interprets a failed handshake.
pub(crate) fn handshake_error(authority: &str, name: &str, error: &io::Error) -> DialError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<RustlsError>());
    match inner {
        Some(RustlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => DialError::Refused(format!("the node at {authority} is not {name:?}: {error}")),
        Some(RustlsError::InvalidCertificate(_)) => DialError::Refused(format!(
            "the certificate of the node at {authority} is not trusted: {error}; was it issued by \
             the CA that ca=FILE names?"
        )),
        Some(RustlsError::AlertReceived(_)) => {
            DialError::Refused(format!("the node at {authority} rejects our certificate: {error}"))
        }
        _ => DialError::Unreachable(format!("no connection to {authority}: {error}")),
    }
}
