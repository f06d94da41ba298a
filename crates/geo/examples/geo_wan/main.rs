//! Measures the latency of objects over distant sites: real packets, TCP, TLS, nodes and disks over
//! distances that our own switch emulates. Prints one line of JSON per measurement.
//!
//! ```text
//! geo_wan may                                         whether the machine allows it
//! geo_wan puts FULGURITE FOLDER BYTES ROUNDS A B C    equally often from each site; A, B, C: round
//!                                                     trips in ms between 0-1, 0-2 and 1-2
//! geo_wan rough FULGURITE FOLDER BYTES ROUNDS A B C JITTER LOSS
//!                                                     puts and gets over lines that delay a packet
//!                                                     by up to JITTER of its delay, and lose LOSS
//!                                                     of all packets
//! geo_wan down FULGURITE FOLDER BYTES ROUNDS A B C    with the farthest site cut off
//! geo_wan met  FULGURITE FOLDER BYTES ROUNDS A B C    with a concurrent put for 0.5 % of puts
//! ```
//!
//! It needs root, `ip` and `/dev/net/tun`. FULGURITE is the binary, whose `geo node` runs at each
//! site. Not here: line rates, reordering.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement tool: it prints, reads clocks, and panics on invalid arguments"
)]

mod calls;
mod switch;
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use fulgurite_units::{Ratio, Seed};
use serde_json::json;

use calls::{BareFragments, get, get_in_series, put, put_in_series};
use switch::{DelayMatrix, Lines, Switch};
use world::{Program, SITES, World, sleep_ms, timed};

/// Initial rounds that are not counted: they warm up the connections.
const WARM: u64 = 4;

/// Plan of a measurement.
#[derive(Clone, Debug)]
struct Plan {
    bytes: usize,
    rounds: u64,
    /// Round trips in ms, between the first and the second site, the first and the third, and the
    /// others.
    trips: [f64; 3],
    lines: Lines,
}

impl Plan {
    fn parse(words: &[&str]) -> Self {
        let trip = |index: usize| words[index].parse().unwrap();
        let (bytes, rounds) = (words[0].parse().unwrap(), words[1].parse().unwrap());
        let share = |index: usize| {
            let share = words.get(index).map(|share| Ratio::new(share.parse().unwrap()).unwrap());
            share.unwrap_or_default()
        };
        let lines = Lines { jitter: share(5), loss: share(6) };
        Self { bytes, rounds, trips: [trip(2), trip(3), trip(4)], lines }
    }

    fn delays(&self) -> DelayMatrix {
        let [near, far, others] = self.trips;
        let delay = |ms: f64| Some(Duration::from_secs_f64(ms / 2e3));
        let own = Some(Duration::ZERO);
        vec![
            vec![own, delay(near), delay(far)],
            vec![delay(near), own, delay(others)],
            vec![delay(far), delay(others), own],
        ]
    }

    /// The same, with a site that is unreachable.
    fn delays_without(&self, site: usize) -> DelayMatrix {
        let mut delays = self.delays();
        for (from, row) in delays.iter_mut().enumerate() {
            for (to, delay) in row.iter_mut().enumerate() {
                if (from == site) != (to == site) {
                    *delay = None;
                }
            }
        }
        delays
    }

    fn object(&self) -> Bytes {
        let mut bytes = vec![0; self.bytes];
        Seed::new(7).stream().fill(&mut bytes);
        Bytes::from(bytes)
    }
}

/// Times by kind, in milliseconds.
type Times = BTreeMap<&'static str, Vec<f64>>;

/// Returns the median and the 90th percentile.
fn quantiles(times: &[f64]) -> [f64; 2] {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    [times[times.len() / 2], times[(times.len() * 9).div_ceil(10) - 1]]
}

fn medians(times: &Times) -> serde_json::Value {
    times.iter().map(|(name, times)| ((*name).to_owned(), json!(quantiles(times)[0]))).collect()
}

/// Kinds that a round measures: all of them or, on rough lines, only puts and gets.
const ALL: &[&str] =
    &["alone", "put", "fast", "classic", "get alone", "get", "get series", "get again"];
const ROUGH: &[&str] = &["alone", "put", "get alone", "get"];

/// Bytes of fragments that a program wrote at other sites, and rounds of its writes.
fn moved(program: &Program) -> (u64, u64) {
    let snapshot = program.store.snapshot();
    let sites = snapshot.sites.iter().enumerate();
    let elsewhere = sites.filter(|(site, _)| *site != program.site);
    (elsewhere.map(|(_, site)| site.bytes_written).sum(), snapshot.write_rounds)
}

/// Runs one round of some kinds, in an order that rotates with the rounds.
async fn round(
    [fast, classic, cached]: [&Program; 3],
    (number, kinds): (u64, &[&'static str]),
    object: &Bytes,
    times: &mut Times,
) {
    let bare = BareFragments::new(number);
    let before = BareFragments::new(number.saturating_sub(1));
    let key = |kind: &str, number: u64| format!("{kind}/{}/{number}", fast.site);
    let last = key("put", number.saturating_sub(1));
    let turn = usize::try_from(number).unwrap() % kinds.len();
    for step in 0..kinds.len() {
        let kind = kinds[(step + turn) % kinds.len()];
        if number == 0 && kind.starts_with("get") {
            continue;
        }
        let took = match kind {
            "alone" => timed(bare.put(fast, object)).await.0,
            "put" => {
                let (bytes, rounds) = moved(fast);
                let took = timed(put(fast, &key(kind, number), object)).await.0;
                let (bytes, rounds) = (moved(fast).0 - bytes, moved(fast).1 - rounds);
                times.entry("put bytes").or_default().push(bytes as f64);
                times.entry("put rounds").or_default().push(rounds as f64);
                took
            }
            "fast" => timed(put_in_series(fast, &key(kind, number), object)).await.0,
            "classic" => timed(put_in_series(classic, &key(kind, number), object)).await.0,
            "get alone" => timed(before.get(fast, object)).await.0,
            "get" => timed(get(fast, &last, object)).await.0,
            "get again" => {
                get(cached, &last, object).await;
                // The fragments are cached in the background.
                sleep_ms(50).await;
                timed(get(cached, &last, object)).await.0
            }
            _ => timed(get_in_series(fast, &last, (&before, object))).await.0,
        };
        times.entry(kind).or_default().push(took);
        // Notifications arrive before the next operation.
        sleep_ms(20).await;
    }
}

/// Measures puts and gets of some kinds, from each site.
fn puts(world: &World, plan: &Plan, kinds: &'static [&'static str]) {
    for site in 0..SITES {
        let here = |programs: &[Program]| programs[site].clone();
        let programs = [here(&world.fast), here(&world.classic), here(&world.cached)];
        let (plan, object) = (plan.clone(), plan.object());
        let before = world.switch.counts(site);
        let times = world.run_at(site, async move {
            let mut times = Times::new();
            for number in 0..WARM + plan.rounds {
                if number == WARM {
                    times.clear();
                }
                round(programs.each_ref(), (number, kinds), &object, &mut times).await;
            }
            times
        });
        let now = world.switch.counts(site);
        let mut line = medians(&times);
        for (kind, name) in [("put", "put of ten"), ("get", "get of ten")] {
            line[name] = json!(quantiles(&times[kind])[1]);
        }
        line["site"] = json!(site);
        line["sent"] = json!(now.sent - before.sent);
        line["dropped"] = json!(now.dropped);
        line["lost"] = json!(now.lost - before.lost);
        println!("{line}");
    }
}

/// Measures puts and gets while the farthest site is cut off, once that is detected.
fn down(world: &World, plan: &Plan) {
    let program = world.fast[0].clone();
    let (rounds, object) = (plan.rounds, plan.object());
    let lost = if plan.trips[0] > plan.trips[1] { 1 } else { 2 };
    let warm = program.clone();
    let bytes = object.clone();
    world.run_at(0, async move {
        for number in 0..WARM {
            put(&warm, &format!("warm/{number}"), &bytes).await;
            get(&warm, &format!("warm/{number}"), &bytes).await;
        }
    });
    world.switch.set(plan.delays_without(lost));
    let line = world.run_at(0, async move {
        let (known, ()) = timed(async {
            let mut number = 0;
            while program.store.snapshot().sites[lost].up {
                put(&program, &format!("unknown/{number}"), &object).await;
                number += 1;
            }
        })
        .await;
        let mut times = Times::new();
        let mut most = 0;
        for number in 0..rounds {
            let key = format!("down/{number}");
            let before = moved(&program).1;
            let took = timed(put(&program, &key, &object)).await.0;
            let rounds = moved(&program).1 - before;
            most = most.max(rounds);
            times.entry("put").or_default().push(took);
            times.entry("put rounds").or_default().push(rounds as f64);
            let took = timed(get(&program, &key, &object)).await.0;
            times.entry("get").or_default().push(took);
        }
        let mut line = medians(&times);
        line["known ms"] = json!(known);
        line["rounds at most"] = json!(most);
        line
    });
    println!("{line}");
    world.switch.set(plan.delays());
}

/// Measures puts of one program, of which every two hundredth contends with another program's put
/// of the same object, alternating with puts without contention.
fn met(world: &World, plan: &Plan) {
    let (first, second) = (world.fast[0].clone(), world.fast[1].clone());
    let object = plan.object();
    let (send, mut requests) = tokio::sync::mpsc::channel::<String>(16);
    let theirs = object.clone();
    world.spawn_at(1, async move {
        while let Some(key) = requests.recv().await {
            // It may come first or second, or be refused because another was faster.
            put(&second, &key, &theirs).await;
        }
    });
    let rounds = plan.rounds;
    let line = world.run_at(0, async move {
        let mut times = Times::new();
        for number in 0..WARM + rounds {
            if number == WARM {
                times.clear();
            }
            // Each comes first equally often.
            let order = if number % 2 == 0 { ["calm", "met"] } else { ["met", "calm"] };
            for kind in order {
                let key = format!("{kind}/{}", number % 16);
                if kind == "met" && number % 200 == WARM + 100 {
                    send.send(key.clone()).await.unwrap();
                }
                times.entry(kind).or_default().push(timed(put(&first, &key, &object)).await.0);
            }
        }
        medians(&times)
    });
    println!("{line}");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["may"] => match Switch::new(vec![vec![None; 2]; 2], Lines::default()) {
            Ok(_) => println!("{}", json!({ "may": true })),
            Err(why) => println!("{}", json!({ "may": false, "why": why })),
        },
        [what @ ("puts" | "rough" | "down" | "met"), binary, folder, ref plan @ ..]
            if plan.len() == if what == "rough" { 7 } else { 5 } =>
        {
            let plan = Plan::parse(plan);
            let network = (plan.delays(), plan.lines);
            let world = World::new(Path::new(binary), Path::new(folder), network).unwrap();
            match what {
                "puts" => puts(&world, &plan, ALL),
                "rough" => puts(&world, &plan, ROUGH),
                "down" => down(&world, &plan),
                _ => met(&world, &plan),
            }
        }
        _ => panic!("unknown measurement: {words:?}"),
    }
}
