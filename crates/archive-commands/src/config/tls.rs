//! The setting for encryption of connections.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// `off`, `auto` or `CERT,KEY`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TlsChoice {
    /// Plain HTTP.
    #[default]
    Off,
    /// A self-signed certificate, generated once and stored in the data directory.
    Auto,
    /// The operator's own PEM files.
    Files {
        /// Certificate chain.
        certificate: PathBuf,
        /// Private key.
        key: PathBuf,
    },
}

impl fmt::Display for TlsChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Auto => f.write_str("auto"),
            Self::Files { certificate, key } => {
                write!(f, "{},{}", certificate.display(), key.display())
            }
        }
    }
}

impl FromStr for TlsChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "auto" => Ok(Self::Auto),
            _ => match text.split_once(',') {
                Some((certificate, key)) if !certificate.is_empty() && !key.is_empty() => {
                    Ok(Self::Files { certificate: certificate.into(), key: key.into() })
                }
                Some(_) | None => {
                    Err(format!("\"{text}\" is not a TLS choice; write off, auto or CERT,KEY"))
                }
            },
        }
    }
}

impl TryFrom<String> for TlsChoice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TlsChoice> for String {
    fn from(choice: TlsChoice) -> Self {
        choice.to_string()
    }
}
