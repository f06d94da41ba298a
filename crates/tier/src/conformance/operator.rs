//! What an operator sees and does of a tier.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fulgurite_units::ErrorKind;
use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _};

use super::fixture::{TierFixture, health, put, read, stop_tier, within};
use crate::{MetricFamilies, Operation, OperationArgs, Target, Tier, TierError};

/// Most rounds until a tier is at rest, and the time between two.
const ROUNDS_MAX: u32 = 50;
const BETWEEN_ROUNDS: Duration = Duration::from_millis(200);

/// What no unit of hardware is called.
const NO_TARGET: &str = "4000000000";

pub(super) async fn suite<F: TierFixture>(fixture: &F) {
    let tier = fixture.open_tier().await;
    put::<F>(&tier, "a").await.unwrap();
    operator_suite(&tier).await;
    assert!(read::<F>(&tier, "a").await.unwrap(), "refused operations change nothing");
    operations_run_or_are_refused::<F>(&tier).await;
    assert!(read::<F>(&tier, "a").await.unwrap(), "no operation loses an object");
    tier.delete(&Path::from("a")).await.unwrap();
    assert!(tier.list(None).try_next().await.unwrap().is_none());
    stop_tier(tier).await;
}

/// Checks the state, the metrics and the refusals of a tier that is healthy.
///
/// # Panics
/// When a check fails.
pub async fn operator_suite(tier: &dyn Tier) {
    // What was put before may still be written to more disks, but not without end.
    for _ in 0..ROUNDS_MAX {
        let spin_ups = spin_ups(tier).await;
        look_at(tier).await;
        if self::spin_ups(tier).await == spin_ups {
            return;
        }
        tokio::time::sleep(BETWEEN_ROUNDS).await;
    }
    panic!("a disk spins up whenever the tier is looked at");
}

async fn look_at(tier: &dyn Tier) {
    assert!(tier.snapshot().await.unwrap().is_object(), "the state is an object");
    assert_eq!(health(tier).await, [] as [&str; 0]);
    let mut metrics = MetricFamilies::default();
    tier.write_metrics(&mut metrics.of_tier("cold", tier.kind().name())).await.unwrap();
    let text = metrics.text();
    check_metrics(&text);
    let is_healthy = text.lines().find(|line| line.starts_with("fulgurite_tier_healthy{"));
    assert!(is_healthy.is_none_or(|line| line.ends_with(" 1")), "{is_healthy:?}");
    for operation in Operation::ALL {
        operation_is_refused(tier, operation).await;
    }
    assert_eq!(health(tier).await, [] as [&str; 0], "refused operations change nothing");
}

/// Returns the number of spin-ups, of disks of its own.
async fn spin_ups(tier: &dyn Tier) -> Option<usize> {
    match tier.ledger().await {
        Ok(ledger) => Some(ledger.as_array().unwrap().len()),
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
            None
        }
    }
}

/// What an operation of an unknown target is.
const UNKNOWN: [ErrorKind; 2] = [ErrorKind::NotFound, ErrorKind::Invalid];

/// Checks that an operation that a tier does not have is refused, and one that it has for a target
/// that it does not take, or does not have.
async fn operation_is_refused(tier: &dyn Tier, operation: Operation) {
    let known = tier.operations().iter().find(|known| known.operation == operation);
    let refused: &[(Option<&str>, &[ErrorKind])] = match known.map(|known| known.target) {
        None => &[(None, &[ErrorKind::NotFound]), (Some("0"), &[ErrorKind::NotFound])],
        Some(Target::None) => &[(Some("0"), &[ErrorKind::Invalid])],
        Some(Target::Optional) => &[(Some(NO_TARGET), &UNKNOWN)],
        Some(Target::Required) => &[(None, &[ErrorKind::Invalid]), (Some(NO_TARGET), &UNKNOWN)],
    };
    for &(target, kinds) in refused {
        let error = run(tier, operation, target).await.unwrap_err();
        let TierError { kind, message, .. } = error;
        assert!(kinds.contains(&kind), "{operation} of {target:?}: {kind:?}: {message}");
        let named =
            target.filter(|target| *target == NO_TARGET).unwrap_or_else(|| operation.name());
        assert!(message.contains(named), "{operation} of {target:?}: {message}");
    }
}

/// Runs each operation of a tier in turn: it ends with a report, or is refused with a reason.
async fn operations_run_or_are_refused<F: TierFixture>(tier: &F::Tier) {
    for known in tier.operations() {
        let target = if known.target == Target::Required { F::TARGET } else { None };
        match run(tier, known.operation, target).await {
            Ok(report) => assert!(report.is_object(), "{}: {report}", known.operation),
            Err(error) => assert!(!error.message.is_empty(), "{}", known.operation),
        }
        health(tier).await;
    }
}

async fn run(
    tier: &dyn Tier,
    operation: Operation,
    target: Option<&str>,
) -> Result<serde_json::Value, TierError> {
    let args = OperationArgs { target: target.map(str::to_owned), ..OperationArgs::default() };
    within(operation.name(), tier.run(operation, &args, &Arc::default())).await
}

/// Checks metrics in Prometheus' text format.
fn check_metrics(text: &str) {
    let (mut names, mut series, mut current) = (BTreeSet::new(), BTreeSet::new(), "");
    for line in text.lines() {
        let (first, rest) = line.split_once(' ').unwrap();
        let mut words = rest.splitn(2, ' ');
        if first != "#" {
            let (sample, value) = line.rsplit_once("} ").unwrap();
            let (name, labels) = sample.split_once('{').unwrap();
            assert_eq!(name, current, "{line}: below its name");
            assert!(labels.starts_with("tier=\"cold\",kind=\""), "{line}");
            assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
            assert!(series.insert(sample), "{line}: it is there twice");
        } else if let Some(help) = rest.strip_prefix("HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(help.len() > 1 && help.ends_with('.'), "{line}: a sentence");
            assert!(names.insert(name), "{line}: it is there twice");
            current = name;
        } else {
            words.next().filter(|word| *word == "TYPE").unwrap();
            let (name, kind) = words.next().unwrap().split_once(' ').unwrap();
            let expected = if name.ends_with("_total") { "counter" } else { "gauge" };
            assert_eq!((name, kind), (current, expected), "{line}");
            let own = name.strip_prefix("fulgurite_tier_").unwrap();
            assert!(own.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
        }
    }
}
