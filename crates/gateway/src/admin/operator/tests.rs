//! A call is admitted once, within its time, and only as it was signed.

use super::{CallFault, CallGate, Claim, OperatorCall};
use crate::Credentials;
use crate::limits::{ADMIN_CLOCK_SKEW_MS, ADMIN_NONCES_MAX};

const NOW: u64 = 1_790_000_000_000;
const STATUS: OperatorCall<'_> =
    OperatorCall { method: "GET", target: "/-/admin/status", body: b"" };

fn keys() -> Credentials {
    Credentials::new("EXAMPLE", "secret-of-the-example").unwrap()
}

fn admit(gate: &CallGate, call: &OperatorCall<'_>, signed: &str) -> Result<(), CallFault> {
    gate.admit(&keys(), signed, call, NOW).map(|_| ())
}

/// Computed with `openssl dgst`, as docs/operating.md says.
#[test]
fn signature_matches_documented_example() {
    assert_eq!(
        STATUS.authorization(&keys(), NOW, &[0xab; 16]),
        "Fulgurite-HMAC-SHA256 Time=1790000000000, Nonce=abababababababababababababababab, \
         Signature=c301401eb0c1a88a2f04e327a08f27e8c3afa86f18b4f0ae7f52faa288af3c8a"
    );
}

#[test]
fn call_is_admitted_once() {
    let gate = CallGate::new(0, &[]);
    let signed = STATUS.authorization(&keys(), NOW, &[1; 16]);
    assert_eq!(admit(&gate, &STATUS, &signed), Ok(()));
    assert_eq!(admit(&gate, &STATUS, &signed), Err(CallFault::Replayed));
    let again = STATUS.authorization(&keys(), NOW + 1, &[1; 16]);
    assert_eq!(admit(&gate, &STATUS, &again), Err(CallFault::Replayed), "the nonce is spent");
    let other = STATUS.authorization(&keys(), NOW, &[2; 16]);
    assert_eq!(admit(&gate, &STATUS, &other), Ok(()));
    // By the time the nonce is forgotten, the call has long expired.
    let late = NOW + ADMIN_CLOCK_SKEW_MS + 1;
    assert_eq!(gate.admit(&keys(), &signed, &STATUS, late), Err(CallFault::Time));
}

#[test]
fn changed_call_is_rejected() {
    let gate = CallGate::new(0, &[]);
    let signed = STATUS.authorization(&keys(), NOW, &[1; 16]);
    for call in [
        OperatorCall { method: "POST", ..STATUS },
        OperatorCall { target: "/-/admin/status?a=b", ..STATUS },
        OperatorCall { body: b"more", ..STATUS },
    ] {
        assert_eq!(admit(&gate, &call, &signed), Err(CallFault::Signature), "{call:?}");
    }
    for (from, to) in [
        (format!("Time={NOW}"), format!("Time={}", NOW + 1)),
        ("Nonce=01".to_owned(), "Nonce=02".to_owned()),
        ("Signature=".to_owned(), "Signature=00".to_owned()),
    ] {
        let changed = signed.replacen(&from, &to, 1);
        assert_ne!(changed, signed);
        assert!(admit(&gate, &STATUS, &changed).is_err(), "{changed}");
    }
    let other = Credentials::new("EXAMPLE", "secret-of-somebody").unwrap();
    let stolen = STATUS.authorization(&other, NOW, &[1; 16]);
    assert_eq!(admit(&gate, &STATUS, &stolen), Err(CallFault::Signature));
    let other = Credentials::new("EXAMPLF", "secret-of-the-example").unwrap();
    let stolen = STATUS.authorization(&other, NOW, &[1; 16]);
    assert_eq!(admit(&gate, &STATUS, &stolen), Err(CallFault::Signature));
    assert_eq!(admit(&gate, &STATUS, &signed), Ok(()), "none of this spent the nonce");
}

#[test]
fn call_time_must_be_within_clock_skew() {
    let gate = CallGate::new(NOW - 1000, &[]);
    let mut nonce = 0;
    let mut admit_at = |time| {
        nonce += 1;
        admit(&gate, &STATUS, &STATUS.authorization(&keys(), time, &[nonce; 16]))
    };
    assert_eq!(admit_at(NOW + ADMIN_CLOCK_SKEW_MS), Ok(()));
    assert_eq!(admit_at(NOW + ADMIN_CLOCK_SKEW_MS + 1), Err(CallFault::Time));
    assert_eq!(admit_at(NOW - ADMIN_CLOCK_SKEW_MS - 1), Err(CallFault::Time));
    assert_eq!(admit_at(NOW - 1000), Ok(()));
    assert_eq!(admit_at(NOW - 1001), Err(CallFault::BeforeStart), "a restart forgets the nonces");
}

/// A call that the previous process admitted ahead of the clock is refused by the next one, which
/// started before that time.
#[test]
fn early_nonce_is_not_replayable_after_restart() {
    let before = CallGate::new(NOW - 9000, &[]);
    let ahead = STATUS.authorization(&keys(), NOW + 200_000, &[1; 16]);
    let early = before.admit(&keys(), &ahead, &STATUS, NOW).unwrap();
    assert_eq!(early, Some((NOW + 200_000, [1; 16])));
    let in_time = STATUS.authorization(&keys(), NOW, &[2; 16]);
    assert_eq!(before.admit(&keys(), &in_time, &STATUS, NOW), Ok(None), "no write is needed");
    let gate = CallGate::new(NOW + 1000, &[early.unwrap()]);
    for now in [NOW + 1000, NOW + 200_000, NOW + 200_000 + ADMIN_CLOCK_SKEW_MS] {
        let again = gate.admit(&keys(), &ahead, &STATUS, now);
        assert_eq!(again, Err(CallFault::Replayed), "{now}");
    }
    let other = STATUS.authorization(&keys(), NOW + 200_000, &[3; 16]);
    assert!(gate.admit(&keys(), &other, &STATUS, NOW + 1000).is_ok(), "other calls are admitted");
}

#[test]
fn nonces_are_bounded_and_never_evicted_early() {
    let gate = CallGate::new(0, &[]);
    let call = |n: usize, time: u64| {
        let nonce = (n as u128).to_le_bytes();
        let signed = STATUS.authorization(&keys(), time, &nonce);
        gate.admit(&keys(), &signed, &STATUS, time).map(|_| ())
    };
    for n in 0..ADMIN_NONCES_MAX {
        assert_eq!(call(n, NOW), Ok(()));
    }
    assert_eq!(call(ADMIN_NONCES_MAX, NOW), Err(CallFault::TooMany));
    assert_eq!(call(0, NOW + ADMIN_CLOCK_SKEW_MS), Err(CallFault::Replayed));
    assert_eq!(call(0, NOW + ADMIN_CLOCK_SKEW_MS + 1), Ok(()), "the nonce has expired");
}

#[test]
fn malformed_headers_are_rejected() {
    let (nonce, tag) = ("00".repeat(16), "00".repeat(32));
    let good = format!("Fulgurite-HMAC-SHA256 Time=1, Nonce={nonce}, Signature={tag}");
    assert!(Claim::parse(&good).is_some());
    for bad in [
        String::new(),
        format!("Bearer {tag}"),
        good.replace("Time=1", "Time=-1"),
        good.replace("Time=1", &format!("Time={}", u64::MAX)),
        good.replace("Nonce=00", "Nonce=0"),
        good.replace("Signature=00", "Signature=zz"),
        format!("{good}, More=1"),
        good.replace(", Nonce", ", Salt"),
    ] {
        assert!(Claim::parse(&bad).is_none(), "{bad}");
    }
}
