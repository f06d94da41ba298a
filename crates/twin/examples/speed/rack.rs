//! Speed of the twin of Pelican's rack: days and years of one rack, and every statement of its
//! paper.

use std::sync::Mutex;

use fulgurite_twin::engine;
use fulgurite_twin::experiment::{Job, JobResult, JobRunner, SourceFile, Suite};
use fulgurite_twin::rack::{Rack, Scenario, Workload};
use fulgurite_twin::{Runner as _, rack};
use fulgurite_units::Duration;

use super::Threads;
use super::measure::{Clock, peak_bytes};

/// Simulates Poisson reads at `rate` per second for this many hours, after two hours of warm-up.
pub(super) fn hours(rate: f64, hours: u64) {
    let mut scenario = Scenario::new(Workload::poisson(rate));
    scenario.window = Duration::from_secs(hours * 3600);
    let clock = Clock::start();
    let result = engine::run::<Rack>(&scenario, 1).unwrap();
    let (processor, wall) = clock.seconds();
    println!(
        "{{\"events\":{},\"reads\":{},\"rejected\":{},\"processor_s\":{processor:.4},\
         \"wall_s\":{wall:.4},\"peak_bytes\":{},\"hash\":\"{:016x}\"}}",
        result.events,
        result.offered,
        result.rejected,
        peak_bytes(),
        result.hash
    );
}

/// Checks every statement of the paper in a folder, with all of its seeds, on all cores.
pub(super) fn paper(folder: &str) {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let file = |path: &std::path::PathBuf| SourceFile {
        name: path.display().to_string(),
        text: std::fs::read_to_string(path).unwrap(),
    };
    let files: Vec<SourceFile> = files.iter().map(file).collect();
    let threads = Threads(std::thread::available_parallelism().map_or(1, usize::from));
    let clock = Clock::start();
    let suite = Suite::<Rack>::read(&files).unwrap();
    let report = suite.run(&threads, &mut |_| {});
    let (processor, wall) = clock.seconds();
    let rows: usize = report.statements.iter().map(|statement| statement.rows.len()).sum();
    println!(
        "{{\"jobs\":{},\"checks\":{rows},\"processor_s\":{processor:.2},\"wall_s\":{wall:.2},\
         \"peak_bytes\":{},\"threads\":{}}}",
        report.jobs,
        peak_bytes(),
        threads.0
    );
}

impl JobRunner<Rack> for Threads {
    fn run(&self, jobs: &[Job<Scenario>], done: &mut dyn FnMut(usize, JobResult<rack::RunResult>)) {
        let results = Mutex::new(Vec::new());
        self.for_each(jobs.len(), &|index| {
            let job = &jobs[index];
            let result = engine::run::<Rack>(&job.scenario, job.seed);
            let result = result.map_err(|error| error.to_string());
            results.lock().unwrap().push((index, result));
        });
        for (index, result) in results.into_inner().unwrap() {
            done(index, result);
        }
    }
}
