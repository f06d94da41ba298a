//! Several sites against values computed by hand, and against themselves.

use fulgurite_geo_core::QuorumRule;
use fulgurite_units::{ByteCount, Duration, Seed};

use super::scenario::{Design, Layout, ReadStrategy, Scenario};
use super::{Cache, CacheFill, Geo, RunResult, losses_a_year, overhead};
use crate::engine::run;

/// Returns three sites where every time is its median.
fn exact() -> Scenario {
    let mut scenario = Scenario::default();
    scenario.network.spread = 0.0;
    scenario.rows.spread = 0.0;
    scenario.blob.spread = 0.0;
    scenario.disk.spread = 0.0;
    scenario.workload.objects = 5;
    scenario
}

fn ran(scenario: &Scenario) -> RunResult {
    run::<Geo>(scenario, 1).unwrap()
}

/// Asserts a counted number.
fn is(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
}

/// Asserts milliseconds, with the accuracy of the histogram.
fn near(found_s: f64, ms: f64) {
    assert!((found_s * 1e3 / ms - 1.0).abs() < 0.002, "{:.3} ms for {ms:.3}", found_s * 1e3);
}

#[test]
fn put_takes_the_slower_of_bytes_and_version() {
    let mut scenario = exact();
    let result = ran(&scenario);
    // A read of the local row, a round trip to the farthest site and an update there.
    near(result.metadata.p50, 1.0 + 14.0 + 140.0 + 42.0);
    near(result.query.p50, 15.0);
    near(result.transfer.p50, 140.0);
    near(result.table.p50, 42.0);
    // 2 MiB encoded, sent on a connection with a window of 2 MiB, and written.
    let mb = 2.097_152;
    let written = 2.0 * mb * 7.15 + 140.0 + 140.0 + 40.0 + mb * 10.5;
    near(result.put.p50, written);
    // Bytes from EU: the row read, then the fragment, for which the node has half of its network,
    // and decoding.
    let read = 15.0 + 102.0 + mb / (119.0 / 2.0) * 1e3 + 36.0 + mb * 9.5 + 2.0 * mb * 4.5;
    near(result.get.p50, read);
    scenario.design = Design::SerialClassic;
    near(ran(&scenario).put.p50, written + 15.0 + 2.0 * (102.0 + 42.0));
    scenario.design = Design::SerialFast;
    near(ran(&scenario).put.p50, written + 15.0 + 140.0 + 42.0);
    scenario.design = Design::Baseline;
    near(ran(&scenario).put.p50, written - 2.0 * mb * 7.15);
    scenario.design = Design::Local;
    near(ran(&scenario).put.p50, 1.0 + 2.0 * mb / 119.0 * 1e3 + 40.0 + 2.0 * mb * 10.5);
    scenario.design = Design::ParallelClassic;
    near(ran(&scenario).metadata.p50, 15.0 + 2.0 * (102.0 + 42.0));
}

#[test]
fn serial_read_waits_for_its_rows() {
    let mut scenario = exact();
    let whole = ran(&scenario).get.p50 * 1e3;
    scenario.reading = ReadStrategy::Serial;
    // It waits for the row of EU instead of the local one.
    near(ran(&scenario).get.p50, whole - 15.0 + 102.0 + 14.0);
    scenario.reading = ReadStrategy::SerialAll;
    near(ran(&scenario).get.p50, whole - 15.0 + 140.0 + 14.0);
}

#[test]
fn round_without_proxy_takes_two_round_trips() {
    let mut scenario = exact();
    scenario.layout = Layout::Inline;
    scenario.size = ByteCount::kib(1);
    scenario.rows.proxies = false;
    near(ran(&scenario).metadata.p50, 15.0 + 2.0 * 140.0 + 14.0 + 42.0);
}

#[test]
fn uncontended_put_and_get_take_one_round() {
    for sizes in [QuorumRule::Majority, QuorumRule::Balanced, QuorumRule::Flexible] {
        let scenario = Scenario { sizes, ..Scenario::default() };
        let result = ran(&scenario);
        assert_eq!((result.put_rounds, result.put_rounds_max, result.get_rounds), (1.0, 1, 1.0));
        assert_eq!((result.puts, result.gets, result.failed), (200, 200, 0));
        is(result.fast, 1.0);
        // Each site's row changes when it accepts and when it learns the decision.
        is(result.row_updates, 6.0);
        is(result.fragment_writes, 3.0);
        is(result.fragment_reads, 2.0);
    }
}

#[test]
fn same_seed_repeats_the_run() {
    let mut scenario = Scenario::default();
    scenario.workload.concurrent = 0.3;
    scenario.workload.from = vec![0, 1, 2];
    let of = |seed| run::<Geo>(&scenario, seed).unwrap();
    assert_eq!(of(1), of(1));
    assert_ne!(of(1).hash, of(2).hash);
}

#[test]
fn byte_counts_match_the_code() {
    let mut scenario = Scenario { rebuilt: Some(1), ..Scenario::default() };
    scenario.workload.objects = 20;
    let result = ran(&scenario);
    is(result.stored, overhead(2, 1, 1.3));
    is(result.put_crossed, 1.0);
    is(result.get_crossed, 0.5);
    is(result.rebuild_crossed, 2.0);
    assert_eq!((result.rebuilt, result.failed), (20, 0));
    assert!(result.row_bytes > 0.0 && result.row_bytes < 1024.0, "{}", result.row_bytes);
}

#[test]
fn back_to_back_writers_get_distinct_versions() {
    let mut scenario = Scenario::default();
    scenario.workload.back_to_back = 3;
    scenario.workload.objects = 90;
    let result = ran(&scenario);
    assert_eq!((result.puts, result.failed), (90, 0));
    assert!(result.fast < 1.0, "some writers conflict: {}", result.fast);
    assert!(result.put_rounds > 1.0);
}

#[test]
fn unavailable_site_costs_at_most_one_round() {
    let mut scenario = Scenario { down: vec![2], ..Scenario::default() };
    let majority = ran(&scenario);
    assert_eq!((majority.put_rounds, majority.failed), (2.0, 0));
    scenario.sizes = QuorumRule::Flexible;
    let flexible = ran(&scenario);
    assert_eq!((flexible.put_rounds, flexible.failed), (1.0, 0));
    // Nodes do not know it: the fast round times out, and a classic one follows.
    scenario.sizes = QuorumRule::Majority;
    scenario.down_is_known = false;
    let unknown = ran(&scenario);
    assert_eq!((unknown.put_rounds, unknown.failed), (3.0, 0));
    assert!(unknown.put.p50 > scenario.round.as_secs_f64());
    // With all sites needed for a promise, a writer that meets another cannot proceed.
    scenario.down_is_known = true;
    scenario.sizes = QuorumRule::Flexible;
    scenario.workload.concurrent = 0.5;
    scenario.patience = Duration::from_secs(10);
    assert!(ran(&scenario).failed > 0);
}

#[test]
fn stripe_shares_fragment_writes_but_not_rows() {
    let mut scenario = Scenario { size: ByteCount::kib(16), ..Scenario::default() };
    scenario.workload.objects = 128;
    scenario.workload.every = Duration::from_millis(1);
    scenario.layout = Layout::Shared;
    let shared = ran(&scenario);
    assert_eq!((shared.puts, shared.gets, shared.failed), (128, 128, 0));
    is(shared.fragment_writes, 6.0 / 128.0);
    is(shared.row_updates, 6.0);
    assert!((shared.stored - overhead(2, 1, 1.3)).abs() < 0.01, "{}", shared.stored);
    assert!(shared.fragment_reads < 1.1, "an object lies in one fragment, or in two");
}

#[test]
fn hedged_reads_send_more_requests_and_wait_less() {
    let mut scenario = Scenario::default();
    scenario.blob.stalls = 0.2;
    let never = ran(&scenario);
    scenario.fetching.hedged = true;
    let at_once = ran(&scenario);
    scenario.fetching.after = Duration::from_millis(400);
    let late = ran(&scenario);
    assert!(at_once.get_fetched > late.get_fetched && late.get_fetched > never.get_fetched);
    assert!(late.get.mean < never.get.mean, "{} {}", late.get.mean, never.get.mean);
}

#[test]
fn closed_form_losses_match_simulated_failures() {
    // Three sites that fail about twice a year and take 5 days to repair; two at a time are one too
    // many.
    let (rates, days) = ([2.0, 1.0, 3.0], 5.0);
    let mut random = Seed::new(7).stream();
    let (mut lost, years) = (0_u32, 40_000_u32);
    let mut until = [0.0_f64; 3];
    let total: f64 = rates.iter().sum();
    let mut now = 0.0;
    while now < f64::from(years) {
        now += -(1.0 - random.unit()).ln() / total;
        let mut at = random.unit() * total;
        let site = rates.iter().position(|rate| {
            at -= rate;
            at < 0.0
        });
        let site = site.unwrap_or(2);
        if until[site] > now {
            continue;
        }
        lost += u32::from(until.iter().any(|until| *until > now));
        // Exponential repair times, as in a Markov chain.
        until[site] = now - (1.0 - random.unit()).ln() * days / 365.25;
    }
    let found = f64::from(lost) / f64::from(years);
    let reckoned = losses_a_year(&rates, days, 1).unwrap();
    assert!((found / reckoned - 1.0).abs() < 0.1, "{found} for {reckoned}");
    assert!(losses_a_year(&rates, 60.0, 1).is_err(), "repairs that take too long are rejected");
    assert!(losses_a_year(&[f64::NAN], 1.0, 1).is_err());
}

#[test]
fn write_cache_hit_rate_matches_read_ages() {
    let of = |days, filled| Cache { days, filled, data: 2 }.simulate(1).unwrap();
    for (days, share) in [(0.0, 0.0), (1.0, 0.47), (7.0, 0.87), (30.0, 0.98), (90.0, 1.0)] {
        let found = of(days, CacheFill::Written);
        assert!((found.hits - share).abs() < 0.01, "{days} days: {}", found.hits);
        assert!((found.crossed - 1.15 * (1.0 - share)).abs() < 0.02, "{}", found.crossed);
        assert!((found.kept_days - days).abs() < 1e-9);
    }
    // The first read always crosses sites: nine of ten objects are read at all.
    let read = of(90.0, CacheFill::Read);
    let most = (2.3 - (1.0 - (-2.3_f64).exp())) / 2.3;
    assert!(read.hits <= most + 0.01 && read.hits > most - 0.02, "{} {most}", read.hits);
    let bad = Cache { days: -1.0, filled: CacheFill::Read, data: 2 }.simulate(1);
    assert!(bad.unwrap_err().contains("days"));
}

#[test]
fn invalid_scenario_is_rejected_by_field() {
    let refused = |change: fn(&mut Scenario), word: &str| {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        let error = scenario.validate().unwrap_err().to_string();
        assert!(error.contains(word), "{error} has no {word}");
    };
    refused(|of| of.parity = 2, "data + parity");
    refused(|of| of.data = 0, "data + parity");
    refused(|of| of.sites[1].name = "US".to_owned(), "US twice");
    refused(|of| of.rtt_ms[0][1] = 5.0, "rtt_ms");
    refused(|of| of.rtt_ms[1][1] = 5.0, "rtt_ms");
    refused(|of| of.rtt_ms[2].clear(), "rtt_ms");
    refused(|of| of.rtt_ms[0][1] = f64::NAN, "rtt_ms");
    refused(|of| of.sites[2].votes = false, "3 to 9");
    refused(|of| of.down = vec![0], "workload.from");
    refused(|of| of.down = vec![9], "indices of sites");
    refused(
        |of| {
            of.sites.push(super::Place { name: "AU".to_owned(), votes: true, data: false });
            of.rtt_ms.iter_mut().for_each(|row| row.push(9.0));
            of.rtt_ms.push(vec![9.0, 9.0, 9.0, 0.0]);
            of.rebuilt = Some(3);
        },
        "rebuilt",
    );
    refused(|of| of.workload.from.clear(), "workload.objects");
    refused(|of| of.workload.concurrent = 1.5, "workload.concurrent");
    refused(|of| of.workload.batch = 0, "workload.batch");
    refused(|of| of.size = ByteCount::ZERO, "size");
    refused(|of| of.layout = Layout::Inline, "4 KiB");
    refused(|of| of.round = Duration::ZERO, "round");
    refused(|of| of.patience = Duration::from_nanos(u64::MAX), "patience");
    refused(|of| of.workload.every = Duration::from_nanos(u64::MAX), "workload.every");
    refused(|of| of.rows.update_ms = -1.0, "rows.update_ms");
    refused(|of| of.blob.stalls = 2.0, "blob.stalls");
    refused(|of| of.network.put_window = 0.0, "network.put_window");
    refused(|of| of.stored_for_each = 0.5, "stored_for_each");
    refused(
        |of| {
            of.layout = Layout::Shared;
            of.design = Design::SerialFast;
        },
        "layout",
    );
}
