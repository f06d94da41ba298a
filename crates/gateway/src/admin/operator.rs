//! Signs and verifies operator's calls. A signature is valid for one request, once, and for a short
//! time.
//!
//! ```text
//!   Authorization: Fulgurite-HMAC-SHA256 Time=T, Nonce=N, Signature=S
//!
//!   key = HMAC-SHA256(secret key, "fulgurite-admin v2 " + access key)
//!   S   = hex(HMAC-SHA256(key, "fulgurite-admin v2\n" METHOD "\n" TARGET "\n"
//!                              hex(SHA-256(body)) "\n" T "\n" N))
//! ```
//!
//! `T` is in milliseconds since 1970, `N` is 32 hexadecimal digits that no call had before,
//! `TARGET` is path and query as sent. An eavesdropper can neither change a call nor replay it: the
//! signature covers all of it, its nonce is remembered while its time is valid, and a call older
//! than the server's start is refused, because a restart forgets the nonces, except those of calls
//! that were signed ahead of the clock ([`super::nonces`]). The scheme encrypts nothing. A man in
//! the middle can read the response and change it; TLS is for that.

use std::collections::BTreeSet;
use std::sync::Mutex;

use ring::{digest, hmac};

use crate::Credentials;
use crate::limits::{ADMIN_CLOCK_SKEW_MS, ADMIN_NONCES_MAX};

const SCHEME: &str = "Fulgurite-HMAC-SHA256";
const CONTEXT: &str = "fulgurite-admin v2";

/// Sixteen bytes that no call had before.
pub type Nonce = [u8; 16];

/// Time (milliseconds since 1970) and nonce of a call that was signed ahead of the clock.
pub(crate) type EarlyNonce = (u64, Nonce);

/// The signed part of a call, besides its time and nonce.
#[derive(Clone, Copy, Debug)]
pub struct OperatorCall<'a> {
    /// In upper case.
    pub method: &'a str,
    /// Path and query, as sent.
    pub target: &'a str,
    /// The whole body.
    pub body: &'a [u8],
}

impl OperatorCall<'_> {
    /// Returns the value of `Authorization` for this call.
    #[must_use]
    pub fn authorization(&self, keys: &Credentials, time_ms: u64, nonce: &Nonce) -> String {
        let tag = hmac::sign(&key(keys), self.text(time_ms, nonce).as_bytes());
        format!(
            "{SCHEME} Time={time_ms}, Nonce={}, Signature={}",
            hex::encode(nonce),
            hex::encode(tag)
        )
    }

    fn text(&self, time_ms: u64, nonce: &Nonce) -> String {
        let digest = hex::encode(digest::digest(&digest::SHA256, self.body));
        let (method, target) = (self.method, self.target);
        format!("{CONTEXT}\n{method}\n{target}\n{digest}\n{time_ms}\n{}", hex::encode(nonce))
    }
}

fn key(keys: &Credentials) -> hmac::Key {
    let secret = hmac::Key::new(hmac::HMAC_SHA256, keys.secret().as_bytes());
    let message = format!("{CONTEXT} {}", keys.access_key());
    hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&secret, message.as_bytes()).as_ref())
}

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallFault {
    #[error(
        "the call has no valid Authorization header; expected: Fulgurite-HMAC-SHA256 Time=.., \
         Nonce=.., Signature=.."
    )]
    Unsigned,
    #[error("the signature does not match the call and the secret key")]
    Signature,
    #[error("the call's time is more than 5 minutes from the server's: synchronize the clocks")]
    Time,
    #[error("the call was signed before the server started: sign it again")]
    BeforeStart,
    #[error("the nonce was already used: sign the call again with a new nonce")]
    Replayed,
    #[error("too many calls within the last minutes")]
    TooMany,
    #[error(
        "the call's time is ahead of the server's, and its nonce cannot be stored to prevent a \
         replay: synchronize the clocks"
    )]
    NotPersisted,
}

/// Admits operator's calls.
#[derive(Debug)]
pub(crate) struct CallGate {
    started_ms: u64,
    seen: Mutex<SeenNonces>,
}

/// The nonces of calls whose time is still valid.
#[derive(Debug, Default)]
struct SeenNonces {
    nonces: BTreeSet<Nonce>,
    /// The same nonces, ordered by the time when they may be forgotten.
    by_expiry: BTreeSet<(u64, Nonce)>,
}

impl CallGate {
    /// Creates the gate of a server that started at `started_ms`. An earlier process admitted the
    /// calls of `early`, whose time is ahead of that.
    pub(crate) fn new(started_ms: u64, early: &[EarlyNonce]) -> Self {
        let mut seen = SeenNonces::default();
        for &(time_ms, nonce) in early {
            if seen.nonces.insert(nonce) {
                seen.by_expiry.insert((time_ms + ADMIN_CLOCK_SKEW_MS, nonce));
            }
        }
        Self { started_ms, seen: Mutex::new(seen) }
    }

    /// Admits a call, once. Returns what must be stored before the call is carried out, as the next
    /// start may be dated earlier than the call.
    pub(crate) fn admit(
        &self,
        keys: &Credentials,
        authorization: &str,
        call: &OperatorCall<'_>,
        now_ms: u64,
    ) -> Result<Option<EarlyNonce>, CallFault> {
        let claim = Claim::parse(authorization).ok_or(CallFault::Unsigned)?;
        let text = call.text(claim.time_ms, &claim.nonce);
        hmac::verify(&key(keys), text.as_bytes(), &claim.signature)
            .map_err(|_| CallFault::Signature)?;
        if claim.time_ms.abs_diff(now_ms) > ADMIN_CLOCK_SKEW_MS {
            return Err(CallFault::Time);
        }
        if claim.time_ms < self.started_ms {
            return Err(CallFault::BeforeStart);
        }
        // A poisoned lock is a bug of ours: fail closed.
        let mut seen = self.seen.lock().map_err(|_| CallFault::TooMany)?;
        seen.remember(claim.nonce, claim.time_ms + ADMIN_CLOCK_SKEW_MS, now_ms)?;
        Ok((claim.time_ms > now_ms).then_some((claim.time_ms, claim.nonce)))
    }
}

impl SeenNonces {
    /// Remembers a nonce until `expiry`. Unexpired nonces are never evicted.
    fn remember(&mut self, nonce: Nonce, expiry: u64, now_ms: u64) -> Result<(), CallFault> {
        while let Some(&(old, expired)) = self.by_expiry.first() {
            if old >= now_ms {
                break;
            }
            self.by_expiry.pop_first();
            self.nonces.remove(&expired);
        }
        assert_eq!(self.nonces.len(), self.by_expiry.len(), "both sets hold the same nonces");
        if self.nonces.contains(&nonce) {
            return Err(CallFault::Replayed);
        }
        if self.nonces.len() >= ADMIN_NONCES_MAX {
            return Err(CallFault::TooMany);
        }
        self.nonces.insert(nonce);
        self.by_expiry.insert((expiry, nonce));
        Ok(())
    }
}

/// The parsed header.
struct Claim {
    time_ms: u64,
    nonce: Nonce,
    signature: [u8; 32],
}

impl Claim {
    fn parse(text: &str) -> Option<Self> {
        let fields = text.strip_prefix(SCHEME)?.strip_prefix(' ')?;
        let mut fields = fields.split(',').map(str::trim);
        let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
        let time_ms = field("Time")?.parse().ok().filter(|time| *time < u64::MAX / 2)?;
        let (mut nonce, mut signature) = ([0; 16], [0; 32]);
        hex::decode_to_slice(field("Nonce")?, &mut nonce).ok()?;
        hex::decode_to_slice(field("Signature")?, &mut signature).ok()?;
        fields.next().is_none().then_some(Self { time_ms, nonce, signature })
    }
}

/// Returns whether a header is well-formed; does not verify it.
pub(crate) fn reads_authorization(text: &str) -> bool {
    Claim::parse(text).is_some()
}

#[cfg(test)]
mod tests;
