//! Checks that must hold for messages of the decode queue, whatever the bytes; see
//! [`crate::fuzz_api`].

use serde::ser::SerializeTuple as _;
use serde::{Serialize, Serializer};

use super::job::{Answer, Job};
use super::mac::{MessageError, QueueKey};

const SUBJECT: &str = "subject";

/// Checks arbitrary bytes: without a MAC they are no message, and under a MAC they are a message or
/// an error.
pub(crate) fn check_message(input: &[u8]) {
    let key = QueueKey::new("key");
    assert!(key.open::<Job>(SUBJECT, input).is_err(), "bytes without a MAC are rejected");
    let sealed = key.seal(SUBJECT, &Plain(input));
    assert!(matches!(key.open::<Answer>("other", &sealed), Err(MessageError::Forged)));
    if let Ok(job) = key.open::<Job>(SUBJECT, &sealed) {
        let resealed = key.seal(SUBJECT, &job);
        assert_eq!(key.open::<Job>(SUBJECT, &resealed), Ok(job));
    }
    if let Ok(answer) = key.open::<Answer>(SUBJECT, &sealed) {
        let resealed = key.seal(SUBJECT, &answer);
        assert_eq!(key.open::<Answer>(SUBJECT, &resealed), Ok(answer));
    }
}

/// Serializes bytes as they are, without the length that postcard writes before a vector.
struct Plain<'a>(&'a [u8]);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(self.0.len())?;
        self.0.iter().try_for_each(|byte| tuple.serialize_element(byte))?;
        tuple.end()
    }
}

/// Returns a job and answers, without version and MAC.
#[cfg(test)]
pub(crate) fn sample_messages() -> [Vec<u8>; 3] {
    use super::job::{JobOutcome, MediumSettings};
    use crate::injected::InjectedDamage;
    use fulgurite_units::{LayerIndex, PlatterId, TrackIndex};
    let job = Job {
        answer_to: "fulgurite.decode.answer.1".to_owned(),
        number: 17,
        medium: MediumSettings {
            preset: "nominal".to_owned(),
            seed: 1,
            reads_max: 3,
            model: Some("0123".to_owned()),
            damage: InjectedDamage::default(),
        },
        platter: PlatterId::from_bytes([1; 16]),
        track: TrackIndex::new(3),
        first: LayerIndex::new(4),
        sector_bytes: 100,
        wanted: 1..3,
        drive: 2,
        read: 9,
        bytes: vec![8; 400],
    };
    let answer = |outcome| Answer { number: 17, worker: "worker".to_owned(), busy_us: 5, outcome };
    [
        postcard::to_allocvec(&job),
        postcard::to_allocvec(&answer(JobOutcome::Died)),
        postcard::to_allocvec(&answer(JobOutcome::Refused("why".to_owned()))),
    ]
    .map(Result::unwrap)
}
