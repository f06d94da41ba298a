//! How an operator's call is signed, and how it is judged: one request, once, and soon.
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
//! `TARGET` is path and query as sent. Whoever reads a call on its way can neither change it nor
//! send it again: what it says is under the signature, its nonce is remembered while its time is
//! good, and a call older than the server itself is refused, because a start forgets the nonces,
//! but for those of calls that were signed ahead of the clock ([`super::nonces`]).
//! What the scheme is not: a cipher. The answer can be read, and changed, by whoever sits between;
//! TLS is for that.

use std::collections::BTreeSet;
use std::sync::Mutex;

use ring::{digest, hmac};

use crate::Credentials;
use crate::limits::{ADMIN_NONCES_MAX, ADMIN_WINDOW_MS};

const SCHEME: &str = "Fulgurite-HMAC-SHA256";
const CONTEXT: &str = "fulgurite-admin v2";

/// Sixteen bytes that no call had before.
pub type Nonce = [u8; 16];

/// Time and nonce of a call that was signed ahead of the clock.
pub(crate) type Early = (u64, Nonce);

/// What is signed of a call, beside its time and nonce.
#[derive(Clone, Copy, Debug)]
pub struct OperatorCall<'a> {
    /// In capitals.
    pub method: &'a str,
    /// Path and query, as sent.
    pub target: &'a str,
    /// The whole body.
    pub body: &'a [u8],
}

impl OperatorCall<'_> {
    /// The value of `Authorization` for this call.
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

/// Why a call is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallFault {
    #[error(
        "a call is signed: Authorization: Fulgurite-HMAC-SHA256 Time=.., Nonce=.., Signature=.."
    )]
    Unsigned,
    #[error("the signature is not that of this call under the secret key")]
    Signature,
    #[error("the call's time is more than 5 minutes from the server's: set the clocks")]
    Time,
    #[error("the call is older than the server's start: sign it anew")]
    BeforeStart,
    #[error("the call was made before: sign it anew, with another nonce")]
    Replayed,
    #[error("too many calls within the last minutes")]
    TooMany,
    #[error(
        "the call's time is ahead of the server's, and its nonce cannot be kept against being sent \
         again: set the clocks"
    )]
    NotKept,
}

/// The door to the operator's calls.
#[derive(Debug)]
pub(crate) struct CallGate {
    started_ms: u64,
    seen: Mutex<Seen>,
}

/// The nonces of calls whose time is still good.
#[derive(Debug, Default)]
struct Seen {
    nonces: BTreeSet<Nonce>,
    /// The same, by when they may be forgotten.
    by_expiry: BTreeSet<(u64, Nonce)>,
}

impl CallGate {
    /// The gate of a server that was started then; one before it let in `early` calls, whose time
    /// is ahead of that.
    pub(crate) fn new(started_ms: u64, early: &[Early]) -> Self {
        let mut seen = Seen::default();
        for &(time_ms, nonce) in early {
            if seen.nonces.insert(nonce) {
                seen.by_expiry.insert((time_ms + ADMIN_WINDOW_MS, nonce));
            }
        }
        Self { started_ms, seen: Mutex::new(seen) }
    }

    /// Lets a call in, once. Says what has to be kept before it is carried out: the next start may
    /// be earlier than the call.
    pub(crate) fn admit(
        &self,
        keys: &Credentials,
        authorization: &str,
        call: &OperatorCall<'_>,
        now_ms: u64,
    ) -> Result<Option<Early>, CallFault> {
        let claim = Claim::parse(authorization).ok_or(CallFault::Unsigned)?;
        let text = call.text(claim.time_ms, &claim.nonce);
        hmac::verify(&key(keys), text.as_bytes(), &claim.signature)
            .map_err(|_| CallFault::Signature)?;
        if claim.time_ms.abs_diff(now_ms) > ADMIN_WINDOW_MS {
            return Err(CallFault::Time);
        }
        if claim.time_ms < self.started_ms {
            return Err(CallFault::BeforeStart);
        }
        // A poisoned lock is a bug of ours; nobody gets in through it.
        let mut seen = self.seen.lock().map_err(|_| CallFault::TooMany)?;
        seen.remember(claim.nonce, claim.time_ms + ADMIN_WINDOW_MS, now_ms)?;
        Ok((claim.time_ms > now_ms).then_some((claim.time_ms, claim.nonce)))
    }
}

impl Seen {
    /// Remembers a nonce until `expiry`. One that may not be forgotten yet never makes room.
    fn remember(&mut self, nonce: Nonce, expiry: u64, now_ms: u64) -> Result<(), CallFault> {
        while let Some(&(old, forgotten)) = self.by_expiry.first() {
            if old >= now_ms {
                break;
            }
            self.by_expiry.pop_first();
            self.nonces.remove(&forgotten);
        }
        assert_eq!(self.nonces.len(), self.by_expiry.len(), "the two sets are one");
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

/// What a header says.
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

/// Whether a header has the form of the scheme, whatever it is worth.
pub(crate) fn reads_authorization(text: &str) -> bool {
    Claim::parse(text).is_some()
}

#[cfg(test)]
mod tests;
