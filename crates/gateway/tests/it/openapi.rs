//! Checks the server's responses against the description of the admin API.

use std::collections::BTreeSet;
use std::fmt::Debug;

use boon::{Compiler, Schemas};
use fulgurite_archive::config::TierName;
use fulgurite_archive::status::{
    DamagedBody, DamagedCopy, DamagedInTier, FailedRestore, FarStatus, JobState, JobStatus,
    MoveReport, SealFailure, SealReport, SetStatus, ShardLocation, SkippedObject, Status,
    UnconfirmedBody, VerifiedPlatter, VerifiedTier, VerifyReport, WaitingTier,
};
use fulgurite_archive::{
    DecodeStatus, LibraryStep, StorageClass, Verification, VerifiedSector, VerifiedTrack,
};
use fulgurite_gateway::{FullStatus, ServerStatus};
use fulgurite_tier::TierKind;
use fulgurite_tome::{Alarm, TomeEvent};
use fulgurite_units::{PlatterId, SetId, UnixTime};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::harness::{TestResponse, TestServer};

const DOCUMENT: &str = include_str!("../../../../docs/admin-openapi.json");
const LINES: &str = "application/x-ndjson";
const EVENTS: &str = "text/event-stream";

/// Asserts that `value` matches the document's schema at `pointer`.
pub(crate) fn assert_conforms(pointer: &str, value: &Value) {
    if let Err(fault) = validate(pointer, value) {
        panic!("not as described at {pointer}: {fault}\n{value}");
    }
}

fn validate(pointer: &str, value: &Value) -> Result<(), String> {
    validator(pointer)(value)
}

/// Returns a function that validates values against the document's schema at `pointer`.
fn validator(pointer: &str) -> impl Fn(&Value) -> Result<(), String> {
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    compiler.add_resource("http://fulgurite/openapi.json", document).unwrap();
    let place = format!("http://fulgurite/openapi.json#{pointer}");
    let schema = compiler.compile(&place, &mut schemas).unwrap();
    move |value| schemas.validate(value, schema).map_err(|error| format!("{error:#}"))
}

/// Returns the path as the document has it: with a placeholder for the name of a tier.
fn template(path: &str) -> String {
    let Some(below) = path.strip_prefix("/-/admin/tiers/") else { return path.to_owned() };
    let call = below.split_once('/').map_or_else(String::new, |(_, call)| format!("/{call}"));
    format!("/-/admin/tiers/{{name}}{call}")
}

/// Asserts that a response to a call matches its description: its status, its type and every value
/// in it.
pub(crate) fn check(method: &str, target: &str, response: &TestResponse) {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let path = &template(target.split('?').next().unwrap());
    let Some(operations) = document["paths"].get(path) else {
        assert_eq!(response.status, 404, "{path} is not described: {}", response.text());
        return;
    };
    let Some(operation) = operations.get(method.to_lowercase()) else {
        assert_eq!(response.status, 404, "{method} {path} is not described: {}", response.text());
        return;
    };
    let status = response.status.to_string();
    let description = &operation["responses"][&status];
    assert!(
        description.is_object(),
        "{method} {path} answers {status}, which the document does not list"
    );
    let (pointer, description) = match description["$ref"].as_str() {
        Some(place) => {
            let pointer = place.trim_start_matches('#').to_owned();
            let shared = document.pointer(&pointer).unwrap();
            (pointer, shared)
        }
        None => {
            let (path, method) = (path.replace('/', "~1"), method.to_lowercase());
            (format!("/paths/{path}/{method}/responses/{status}"), description)
        }
    };
    let kind = response.header("content-type").unwrap();
    assert!(description["content"][kind].is_object(), "{kind} is not described at {pointer}");
    let pointer = format!("{pointer}/content/{}/schema", kind.replace('/', "~1"));
    let text = response.text();
    let pieces: Vec<&str> = match kind {
        LINES => text.lines().collect(),
        EVENTS => text.lines().filter_map(|line| line.strip_prefix("data: ")).collect(),
        _ => vec![&text],
    };
    assert!(!pieces.is_empty(), "{method} {path} answered nothing");
    let validate = validator(&pointer);
    for piece in pieces {
        let result = validate(&serde_json::from_str(piece).unwrap());
        assert_eq!(result, Ok(()), "not as described at {pointer}: {piece}");
    }
}

#[tokio::test]
async fn openapi_document_is_public() {
    let server = TestServer::start().await;
    let response = server.request("GET", "/-/openapi.json").send_plain().await;
    assert_eq!((response.status, response.text().as_str()), (200, DOCUMENT));
    check("GET", "/-/openapi.json", &response);
    let tag = response.header("etag").unwrap();
    let again = server.request("GET", "/-/openapi.json").header("if-none-match", tag);
    let again = again.send_plain().await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let other = server.request("GET", "/-/openapi.json").header("if-none-match", "\"other\"");
    assert_eq!(other.send_plain().await.status, 200);
    assert_eq!(server.request("POST", "/-/openapi.json").send_plain().await.status, 403);
}

/// Returns a job with a value in every field.
fn job(state: JobState) -> JobStatus {
    JobStatus {
        name: "sealing".to_owned(),
        state,
        doing: Some("sealing".to_owned()),
        failure: Some("broken".to_owned()),
        retry_seconds: Some(1),
        runs: 2,
        failures: 1,
        last_run: Some(UnixTime::from_millis(1)),
    }
}

/// Returns a status with an entry in every list, also those that are empty in a healthy archive.
fn failing_status() -> FullStatus {
    let (bucket, key, error) = ("vault".to_owned(), "deep".to_owned(), "broken".to_owned());
    let set = SetStatus {
        set: "ea8ed68b-789f-4014-b3a2-38d0f13ab2a3".parse::<SetId>().unwrap(),
        state: "released".to_owned(),
        information_platters: 16,
        redundancy_platters: 3,
        bytes: 1,
    };
    let seal_failure = |set| SealFailure {
        set,
        tries: 1,
        error: error.clone(),
        since: UnixTime::from_millis(1),
        retry_seconds: 1,
        bytes: 1,
    };
    let archive = Status {
        archive: "ea8ed68b-789f-4014-b3a2-38d0f13ab2a3".to_owned(),
        fidelity: "analog".to_owned(),
        staged_damaged: vec![DamagedBody { bucket: bucket.clone(), key: key.clone(), bytes: 1 }],
        staged_oldest: Some(UnixTime::from_millis(1)),
        tiers_waiting: vec![WaitingTier {
            tier: "rack".to_owned(),
            since: UnixTime::from_millis(1),
        }],
        objects_unconfirmed: vec![UnconfirmedBody {
            bucket: bucket.clone(),
            key: key.clone(),
            bytes: 1,
        }],
        catalog_cut: Some("cut".to_owned()),
        catalog_refusal: Some("full".to_owned()),
        catalog_damage: Some("a block".to_owned()),
        far_libraries: vec![FarStatus { library: "oslo".to_owned(), ..FarStatus::default() }],
        unverified_failure: Some("late".to_owned()),
        jobs: JobState::ALL.map(job).to_vec(),
        seal_failures: vec![seal_failure(Some(set.set)), seal_failure(None)],
        sets: vec![set],
        failed_restores: vec![FailedRestore {
            bucket,
            key,
            failures: 1,
            error: error.clone(),
            is_given_up: true,
        }],
        decode: Some(DecodeStatus {
            workers_max: Some(1),
            sectors: vec![("classical".to_owned(), 1)],
            price: Some(0.5),
            ..DecodeStatus::default()
        }),
        debug_day_seconds: Some(1.0),
        ..Status::default()
    };
    let server = ServerStatus { connections: 1, connections_max: 2, connections_ended_idle: 0 };
    let kinds = [TierKind::Glass, TierKind::Rack, TierKind::Tome, TierKind::Geo, TierKind::Objects];
    let tiers = kinds.map(|kind| (TierName::new(kind.name()).unwrap(), kind)).into();
    FullStatus { archive, server, tiers }
}

#[test]
fn failure_fields_match_the_schema() {
    let schema = |name: &str| format!("/components/schemas/{name}");
    let whole = json!(failing_status());
    assert_conforms(&schema("Status"), &whole);
    let platter: PlatterId = "486ebbc6-ddce-4703-b3bb-03a2ae53f2d7".parse().unwrap();
    let set = failing_status().archive.sets[0].set;
    let margins = json!({ "sectors": 2, "least": 1, "tenth": 1, "median": 100 });
    let margins: Option<_> = serde_json::from_value(margins).unwrap();
    let sectors = vec![VerifiedSector::Lost, VerifiedSector::Read, VerifiedSector::Margin(100)];
    let verification = Verification {
        platter,
        at: UnixTime::from_millis(1),
        sectors: 3,
        sectors_failed: 1,
        sector_margins: margins,
        tracks: vec![VerifiedTrack { track: 1, sectors }],
    };
    assert_conforms(&schema("Verification"), &json!(verification));
    let (bucket, key, error) = ("vault".to_owned(), "deep".to_owned(), "broken".to_owned());
    let report = VerifyReport {
        platters: vec![VerifiedPlatter {
            platter,
            set,
            sectors: 1,
            sectors_failed: 1,
            margin_min: 0,
            tracks_by_group: 0,
            tracks_unreadable: 0,
            sector_margins: margins,
            error: Some(error.clone()),
        }],
        copies: 1,
        copies_damaged: 1,
        damaged_copies: vec![DamagedCopy {
            bucket: bucket.clone(),
            key: key.clone(),
            is_dropped: true,
            error: error.clone(),
        }],
        tiers: vec![VerifiedTier {
            tier: "cold".to_owned(),
            bodies: 2,
            bytes: 3,
            bodies_damaged: 1,
            damaged: vec![DamagedInTier { bucket, key, error: error.clone() }],
            error: Some(error),
        }],
    };
    assert_conforms(&schema("VerifyLine"), &json!({ "report": report }));
    let left = vec![SkippedObject {
        bucket: "vault".to_owned(),
        key: "deep".to_owned(),
        error: "archived".to_owned(),
    }];
    let report = MoveReport { objects: 1, bytes: 2, objects_there: 3, objects_left: 4, left };
    assert_conforms(&schema("MoveLine"), &json!({ "report": report }));
    let report = SealReport { sets: failing_status().archive.sets, ..SealReport::default() };
    assert_conforms(&schema("SealLine"), &json!({ "report": report }));
    for place in places(platter, set) {
        assert_conforms(&schema("Place"), &json!(place));
    }
}

/// Returns a place on a platter, and one in a tier.
fn places(platter: PlatterId, set: SetId) -> [ShardLocation; 2] {
    let residence = "glass".to_owned();
    let (track_first, track_last, bytes, slot) = (0, 1, 1, Some(1));
    let (platter, set, tier) = (Some(platter), Some(set), None);
    let place = ShardLocation {
        body: 0,
        platter,
        set,
        track_first,
        track_last,
        bytes,
        residence,
        tier,
        slot,
    };
    let (residence, tier) = ("tier".to_owned(), Some("cold".to_owned()));
    let in_tier =
        ShardLocation { platter: None, set: None, slot: None, residence, tier, ..place.clone() };
    [place, in_tier]
}

/// Returns the variants of `T`, which its deserializer lists when it meets an unknown one.
fn kinds<T: DeserializeOwned + Debug>(_: fn(&LibraryStep) -> &T, other: Value) -> BTreeSet<String> {
    variants::<T>(other)
}

fn variants<T: DeserializeOwned + Debug>(other: Value) -> BTreeSet<String> {
    let refused = serde_json::from_value::<T>(other).unwrap_err().to_string();
    let (_, listed) = refused.split_once("expected one of ").unwrap();
    listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn library_events_match_the_schema() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let described = |pointer: &str| -> BTreeSet<String> {
        document.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    let mut inputs = described("/components/schemas/LibraryInput/oneOf/1/properties");
    inputs.insert("timer".to_owned());
    assert_eq!(kinds(|step| &step.event, json!({ "?": 1 })), inputs);
    let decided = described("/components/schemas/Decided/properties");
    assert_eq!(kinds(|step| &step.outputs, json!([{ "?": 1 }])), decided);
}

#[test]
fn tome_events_match_the_schema() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let described = |schema: &str| -> BTreeSet<String> {
        let place = format!("/components/schemas/{schema}/properties");
        document.pointer(&place).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(variants::<TomeEvent>(json!({ "?": 1 })), described("TomeEvent"));
    assert_eq!(variants::<Alarm>(json!({ "?": 1 })), described("TomesAlarm"));
}

#[test]
fn storage_classes_match_the_schema() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let parameters = &document["paths"]["/-/admin/move"]["post"]["parameters"];
    let class = parameters.as_array().unwrap().iter().find(|known| known["name"] == "class");
    let described = class.unwrap()["schema"]["enum"].as_array().unwrap();
    let described: BTreeSet<&str> = described.iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(described, StorageClass::ALL.map(StorageClass::name).into());
}

/// The checks above can fail.
#[test]
fn schema_violations_are_detected() {
    let status = "/components/schemas/Status";
    let mut more = json!(failing_status());
    more["surprise"] = json!(1);
    assert!(validate(status, &more).unwrap_err().contains("surprise"));
    let mut less = json!(failing_status());
    less.as_object_mut().unwrap().remove("platters");
    assert!(validate(status, &less).unwrap_err().contains("platters"));
    let mut wrong = json!(failing_status());
    wrong["seal_failures"][0]["tries"] = json!("three");
    assert!(validate(status, &wrong).is_err());
}
