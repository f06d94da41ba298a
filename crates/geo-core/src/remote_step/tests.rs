//! Encoding of remote queries and their answers.

use expect_test::expect;
use fulgurite_units::UnixTime;

use crate::remote_step::{StepQuery, decode_answer, encode_answer, step_bytes};
use crate::{
    Ballot, Change, Command, Epoch, Error, KnownVersions, Request, Row, SiteState, Value, Verdict,
    Version, WriteId,
};

fn value(write: u128) -> Value {
    Value { id: WriteId(write), time: UnixTime::from_millis(7), change: Change::Delete.into() }
}

fn queries() -> Vec<StepQuery> {
    let (version, ballot) = (Version(3), Ballot::FAST);
    let commands = [
        Command::Read,
        Command::Learn,
        Command::PreAccept { version: Version(1), value: value(9) },
        Command::Prepare { version, ballot },
        Command::Accept { version, ballot, value: value(10) },
        Command::Restore { next: version, ballot },
    ];
    let epoch = Epoch(4);
    let site_state = SiteState { epoch, rebuilding: false };
    let query = |command| StepQuery {
        request: Request { epoch, known: KnownVersions::default(), command },
        standing: site_state,
        is_likely_new: true,
    };
    commands.into_iter().map(query).collect()
}

#[test]
fn queries_round_trip() {
    for query in queries() {
        let bytes = query.encode();
        assert_eq!(StepQuery::decode(&bytes), Ok(query));
        for end in 0..bytes.len() {
            assert_eq!(StepQuery::decode(&bytes[..end]), Err(Error::StepDamaged));
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(StepQuery::decode(&longer), Err(Error::StepDamaged));
        let newer = [&[2], &bytes[1..]].concat();
        assert_eq!(StepQuery::decode(&newer), Err(Error::StepVersion { version: 2, known: 1 }));
    }
}

#[test]
fn query_encoding_v1_is_stable() {
    let text: String = queries()[2].encode().iter().map(|byte| format!("{byte:02x}")).collect();
    expect!["01040000000201090701040001"].assert_eq(&text);
}

#[test]
fn answers_round_trip() {
    let row = Row { nonce: 77, ..Row::default() };
    for verdict in
        [Verdict::Ok, Verdict::Rejected, Verdict::Decided, Verdict::Forgotten, Verdict::OldMap]
    {
        let answer = Ok((verdict, row.clone()));
        assert_eq!(decode_answer(&encode_answer(&answer).unwrap()), Ok(answer));
    }
    for error in [Error::RowTooLarge { bytes: 70_000 }, Error::RowForeign, Error::RowDamaged] {
        let answer = Err(error);
        assert_eq!(decode_answer(&encode_answer(&answer).unwrap()), Ok(answer));
    }
    assert_eq!(decode_answer(&[]), Err(Error::StepDamaged));
}

/// A caller that misses the answer retries and gets the same answer, whatever the query.
#[test]
fn repeated_step_is_idempotent() {
    for StepQuery { request, standing, .. } in queries() {
        let first = step_bytes(None, &request, standing, || 1).unwrap();
        let row = first.bytes.clone();
        let second = step_bytes(row.as_deref(), &request, standing, || 2).unwrap();
        assert_eq!(second.bytes, None, "{request:?}");
        assert_eq!(second.stepped.verdict, first.stepped.verdict, "{request:?}");
    }
    assert_eq!(
        step_bytes(Some(b"something else"), &queries()[0].request, queries()[0].standing, || 1)
            .unwrap_err(),
        Error::RowForeign
    );
}

#[test]
fn decoder_survives_arbitrary_bytes() {
    let mut random = fulgurite_units::Seed::new(7).stream();
    let queries: Vec<Vec<u8>> = queries().iter().map(StepQuery::encode).collect();
    for round in 0..20_000_usize {
        let mut bytes = queries[round % queries.len()].clone();
        for _ in 0..=random.next_u64() % 3 {
            let index = usize::try_from(random.next_u64()).unwrap() % bytes.len();
            bytes[index] = random.next_u64().to_le_bytes()[0];
        }
        // Whatever decodes, encodes to something that decodes to the same.
        if let Ok(query) = StepQuery::decode(&bytes) {
            assert_eq!(StepQuery::decode(&query.encode()), Ok(query));
        }
        let _ = decode_answer(&bytes);
    }
}
