//! The one pair of keys for the archive, used by S3 clients and by the operator.
//!
//! The secret is never printed: not by `Debug`, not in an error, not in a log line.

use s3s::auth::SecretKey;

use crate::{GatewayError, Result};

const ACCESS_KEY_BYTES: std::ops::RangeInclusive<usize> = 3..=128;
const SECRET_KEY_BYTES: std::ops::RangeInclusive<usize> = 8..=128;

/// An access key and its secret.
#[derive(Clone, Debug)]
pub struct Credentials {
    access_key: String,
    secret_key: SecretKey,
}

impl Credentials {
    /// Validates and returns a pair of keys.
    ///
    /// # Errors
    /// `Credentials` when a part is too short, too long or not of printable ASCII. The slash is
    /// refused in access keys, because it separates the fields of a credential scope.
    pub fn new(access_key: &str, secret_key: &str) -> Result<Self> {
        let fail = |part, rule| Err(GatewayError::Credentials { part, rule });
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        if !ACCESS_KEY_BYTES.contains(&access_key.len()) || !access_key.bytes().all(plain) {
            return fail(
                "access key",
                "it must have 3 to 128 letters, digits, dots, hyphens, underscores",
            );
        }
        if !SECRET_KEY_BYTES.contains(&secret_key.len())
            || !secret_key.bytes().all(|b| b.is_ascii_graphic())
        {
            return fail(
                "secret key",
                "it must have 8 to 128 printable ASCII characters, no spaces",
            );
        }
        Ok(Self { access_key: access_key.to_owned(), secret_key: secret_key.into() })
    }

    /// The access key, which is not secret.
    #[must_use]
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// The secret, for deriving keys from it.
    pub(crate) fn secret(&self) -> &str {
        self.secret_key.expose()
    }

    /// Returns the secret of `access_key`, if it is ours. The comparison takes constant time, so it
    /// does not reveal how close a guess was.
    pub(crate) fn secret_of(&self, access_key: &str) -> Option<SecretKey> {
        let ours = SecretKey::from(self.access_key.as_str());
        let theirs = SecretKey::from(access_key);
        constant_time_equal(&ours, &theirs).then(|| self.secret_key.clone())
    }
}

fn constant_time_equal(a: &SecretKey, b: &SecretKey) -> bool {
    let (a, b) = (a.expose().as_bytes(), b.expose().as_bytes());
    a.len() == b.len() && a.iter().zip(b).fold(0, |diff, (x, y)| diff | (x ^ y)) == 0
}

#[cfg(test)]
mod tests;
