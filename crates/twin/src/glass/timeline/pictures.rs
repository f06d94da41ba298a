//! The pictures of a run of a glass library: the queue, the age of its requests, and the work of
//! each machine.

use super::{DriveTimeline, ShuttleTimeline, Timeline};
use crate::columns::Curve;
use crate::glass::scenario::Scenario;
use crate::metrics::Dimension;
use crate::presentation::{self, CurvePicture, Picture, StripPicture};
use crate::report::format_duration;

impl presentation::Timeline for Timeline {
    fn seed(&self) -> u64 {
        self.seed
    }

    fn column_s(&self) -> f64 {
        self.column_s
    }

    fn end_s(&self) -> f64 {
        self.end_s
    }
}

impl Timeline {
    /// Returns the pictures of some runs.
    pub(crate) fn pictures<'a>(scenario: &Scenario, timelines: &'a [Self]) -> Vec<Picture<'a>> {
        let mut all: Vec<Picture<'a>> = waiting(timelines).map(Picture::Curve).into();
        let most = |timeline: &Self| timeline.unverified.max.iter().copied().fold(0.0, f64::max);
        if timelines.iter().map(most).fold(0.0, f64::max) > 0.0 {
            all.extend(new_platters(scenario, timelines).map(Picture::Curve));
        } else {
            all.push(Picture::Nothing("No new platters are written in this scenario."));
        }
        all.extend(timelines.first().into_iter().flat_map(machines).map(Picture::Strip));
        all
    }
}

fn waiting(timelines: &[Timeline]) -> [CurvePicture; 3] {
    let note = "(waiting or being read; a file has one request per platter)";
    let each = |of: fn(&Timeline) -> Curve| timelines.iter().map(of).collect();
    let picture = |title, note: &str, dimension, curves| {
        let note = note.to_owned();
        CurvePicture { title, note, dimension, bound: None, curves }
    };
    [
        picture(
            "Requests in the queue",
            note,
            Dimension::Number,
            each(|timeline| timeline.requests.clone()),
        ),
        picture(
            "Backlog of reads",
            "(user bytes of those requests, in whole tracks)",
            Dimension::Bytes,
            each(|timeline| timeline.backlog_bytes.clone()),
        ),
        picture(
            "Age of the oldest request",
            "(at most, in each column)",
            Dimension::Time,
            each(|timeline| line(&timeline.oldest_request_s)),
        ),
    ]
}

fn new_platters(scenario: &Scenario, timelines: &[Timeline]) -> [CurvePicture; 2] {
    let within = scenario.policy.verify_within.as_secs_f64();
    [
        CurvePicture {
            title: "Platters not verified yet",
            note: "(in eject bays, in drives and in transit)".to_owned(),
            dimension: Dimension::Number,
            bound: None,
            curves: timelines.iter().map(|timeline| timeline.unverified.clone()).collect(),
        },
        CurvePicture {
            title: "Age of the oldest platter not verified yet",
            note: format!(
                "(at most, in each column; the policy delays verification by at most {})",
                format_duration(within)
            ),
            dimension: Dimension::Time,
            bound: Some((within, "bound of the policy")),
            curves: timelines.iter().map(|timeline| line(&timeline.oldest_unverified_s)).collect(),
        },
    ]
}

/// Returns a curve with one value per column.
fn line(values: &[f64]) -> Curve {
    Curve { mean: values.to_vec(), min: values.to_vec(), max: values.to_vec() }
}

fn machines(timeline: &Timeline) -> Vec<StripPicture<'_>> {
    let drives = |of: fn(&DriveTimeline) -> &Vec<f64>| -> Vec<&[f64]> {
        timeline.drives.iter().map(|drive| of(drive).as_slice()).collect()
    };
    let shuttles = |of: fn(&ShuttleTimeline) -> &Vec<f64>| -> Vec<&[f64]> {
        timeline.shuttles.iter().map(|shuttle| of(shuttle).as_slice()).collect()
    };
    let read = "(with the seeks, mounts and unmounts; share of each column)";
    let verify = "(with the mounts and unmounts of new platters; share of each column)";
    let work = "(moving, crabbing, picking and placing; share of each column)";
    let strip = |title, note, machine, rows| StripPicture { title, note, machine, rows };
    let mut all = vec![
        strip("Drives reading for customers", read, "drive", drives(|drive| &drive.read)),
        strip("Drives verifying", verify, "drive", drives(|drive| &drive.verify)),
        strip("Shuttles at work", work, "shuttle", shuttles(|shuttle| &shuttle.work)),
    ];
    let charge = shuttles(|shuttle| &shuttle.charge);
    if charge.iter().any(|shares| shares.iter().any(|share| *share > 0.0)) {
        all.push(strip("Shuttles charging", "(share of each column)", "shuttle", charge));
    }
    all
}
