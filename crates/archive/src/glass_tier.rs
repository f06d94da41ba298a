//! The glass tier as its operator sees it: state, operations, events, metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use fulgurite_glass::{FarStatus, Seen, SetStatus};
use fulgurite_tier::{
    Operation, OperationArgs, Progress, Target, Tier, TierError, TierEvent, TierKind, TierMetrics,
    TierOperation,
};
use fulgurite_units::PlatterId;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::{Value, json};

use crate::status::Status;
use crate::{Archive, ArchiveError, LibraryWatch};

/// What an operator can have glass do.
const OPERATIONS: [TierOperation; 1] = [TierOperation::new(Operation::Verify, Target::Optional)];

/// The glass tier of an archive.
#[derive(Clone, Debug)]
pub struct GlassTier(Archive);

impl GlassTier {
    /// Returns the glass tier of `archive`.
    #[must_use]
    pub const fn new(archive: Archive) -> Self {
        Self(archive)
    }
}

impl From<ArchiveError> for TierError {
    fn from(error: ArchiveError) -> Self {
        let is_busy = matches!(error, ArchiveError::Busy { .. });
        Self { is_busy, ..Self::new(error.kind(), &error) }
    }
}

#[async_trait]
impl Tier for GlassTier {
    fn kind(&self) -> TierKind {
        TierKind::Glass
    }

    fn operations(&self) -> &'static [TierOperation] {
        &OPERATIONS
    }

    async fn snapshot(&self) -> Result<Value, TierError> {
        let Status {
            profile,
            fidelity,
            sets,
            platters,
            unverified_platters,
            unverified_seconds,
            seal_failures,
            sets_given_up,
            far_libraries,
            decode,
            ..
        } = self.0.status().await?;
        let library = match self.0.watch_library().await?.next().await {
            Some(Seen::Snapshot(library)) => Some(library),
            Some(Seen::Step(_) | Seen::End(_)) | None => None,
        };
        Ok(json!({
            "profile": profile,
            "fidelity": fidelity,
            "sets": sets,
            "platters": platters,
            "unverified_platters": unverified_platters,
            "unverified_seconds": unverified_seconds,
            "seal_failures": seal_failures,
            "sets_given_up": sets_given_up,
            "far_libraries": far_libraries,
            "decode": decode,
            "library": library,
        }))
    }

    async fn run(
        &self,
        operation: Operation,
        args: &OperationArgs,
        progress: &Arc<Progress>,
    ) -> Result<Value, TierError> {
        self.check(operation, args)?;
        let platter = args.target.as_deref().map(|text| {
            let wrong = |error| TierError::invalid(format!("{text} is no platter's id: {error}"));
            text.parse::<PlatterId>().map_err(wrong)
        });
        let platters = self.0.verify_platters(platter.transpose()?, progress).await?;
        Ok(json!({ "platters": platters }))
    }

    async fn watch(&self) -> Result<BoxStream<'static, TierEvent>, TierError> {
        let watch = self.0.watch_library().await?;
        let events = futures::stream::unfold(watch, |mut watch: LibraryWatch| async move {
            let event = match watch.next().await? {
                Seen::Snapshot(library) => {
                    TierEvent::new("snapshot", library.step, json!({ "library": library }))
                }
                Seen::Step(step) => TierEvent::new("step", step.step, json!(step)),
                Seen::End(fulgurite_glass::WatchEnd::Late) => TierEvent::Late,
                Seen::End(fulgurite_glass::WatchEnd::Stopped) => return None,
            };
            Some((event, watch))
        });
        Ok(events.boxed())
    }

    async fn degraded_kinds(&self) -> Result<Vec<String>, TierError> {
        Ok(self.0.glass_degraded_kinds())
    }

    async fn reasons(&self) -> Result<Vec<String>, TierError> {
        Ok(self.0.glass_degraded())
    }

    async fn write_metrics(&self, metrics: &mut TierMetrics<'_>) -> Result<(), TierError> {
        let healthy = u8::from(self.0.glass_degraded().is_empty());
        metrics.gauge("healthy", "1 when nothing is wrong with the tier.", &[], healthy);
        write(metrics, &self.0.status().await?);
        Ok(())
    }
}

fn write(metrics: &mut TierMetrics<'_>, status: &Status) {
    let mut states = BTreeMap::<&str, u64>::new();
    for SetStatus { state, .. } in &status.sets {
        *states.entry(state).or_default() += 1;
    }
    for (state, count) in states {
        metrics.gauge("sets", "Platter-sets, by state.", &[("state", &state)], count);
    }
    for (layer, count) in [
        ("track", status.repaired_by_track),
        ("group", status.repaired_by_group),
        ("set", status.repaired_by_set),
    ] {
        let help = "Tracks that needed redundancy to be read, by layer of code.";
        metrics.counter("tracks_repaired_total", help, &[("layer", &layer)], count);
    }
    let given_up = "Sets planned again after they could not be written.";
    metrics.counter("sets_given_up_total", given_up, &[], status.sets_given_up);
    if let Some(decode) = &status.decode {
        let help = "Responses of the decode queue without a valid code, dropped.";
        metrics.counter("decode_forged_total", help, &[], decode.forged);
    }
    for (name, help, value) in [
        ("platters", "Platters stored.", status.platters),
        ("unverified_platters", "New platters not verified.", status.unverified_platters),
        (
            "unverified_age_seconds",
            "Age of the oldest new platter that is not verified.",
            status.unverified_seconds,
        ),
        (
            "seal_failures",
            "Sets, or bodies of them, that wait for a retry after an error.",
            status.seal_failures.len() as u64,
        ),
    ] {
        metrics.gauge(name, help, &[], value);
    }
    for FarStatus { library, platters, bytes, waiting } in &status.far_libraries {
        for (name, help, value) in [
            ("far_platters", "Platters in a far library.", platters),
            ("far_bytes", "Bytes of platters in a far library.", bytes),
            ("far_waiting", "Platters waiting to go to a far library.", waiting),
        ] {
            metrics.gauge(name, help, &[("library", library)], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use fulgurite_tier::MetricFamilies;

    use super::*;
    use crate::DecodeStatus;

    #[test]
    fn metrics_have_what_the_status_has() {
        let status = Status {
            sets_given_up: 5,
            unverified_platters: 10,
            unverified_seconds: 11,
            repaired_by_group: 12,
            decode: Some(DecodeStatus { forged: 7, ..DecodeStatus::default() }),
            far_libraries: vec![FarStatus {
                library: "oslo".to_owned(),
                platters: 15,
                bytes: 16,
                waiting: 17,
            }],
            ..Status::default()
        };
        let page = |status: &Status| {
            let mut families = MetricFamilies::default();
            write(&mut families.of_tier("glass", "glass"), status);
            families.text()
        };
        let text = page(&status);
        for (name, labels, value) in [
            ("sets_given_up_total", "", 5),
            ("decode_forged_total", "", 7),
            ("unverified_platters", "", 10),
            ("unverified_age_seconds", "", 11),
            ("tracks_repaired_total", ",layer=\"group\"", 12),
            ("far_platters", ",library=\"oslo\"", 15),
            ("far_bytes", ",library=\"oslo\"", 16),
            ("far_waiting", ",library=\"oslo\"", 17),
            ("seal_failures", "", 0),
        ] {
            let line =
                format!("fulgurite_tier_{name}{{tier=\"glass\",kind=\"glass\"{labels}}} {value}");
            assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
        }
        let text = page(&Status { decode: None, ..status });
        assert!(!text.contains("forged"), "nothing decodes: {text}");
    }
}
