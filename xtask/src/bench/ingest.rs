//! Ingest speed, with each object durable before its `200`.

use anyhow::Result;

use super::server::Server;
use super::{Bench, Measurement, REPEATS, client, megabytes_per_second, peer};

const LARGE_BYTES: usize = 64 << 20;
const LARGE_COUNT: usize = 16;
const LARGE_CONNECTIONS: usize = 4;
const SMALL_BYTES: usize = 4 << 10;
const SMALL_COUNT: usize = 10_000;
const SMALL_CONNECTIONS: usize = 32;

/// Measures objects of 64 MiB.
pub(super) fn large(bench: &Bench) -> Result<Vec<Measurement>> {
    let rate = |took| megabytes_per_second((LARGE_BYTES * LARGE_COUNT) as u64, took);
    Ok(vec![Measurement {
        row: "64 MiB objects",
        unit: "MB/s",
        target: ">= 250",
        input: format!("{LARGE_COUNT} DEEP_ARCHIVE objects, {LARGE_CONNECTIONS} connections"),
        ..measure(bench, LARGE_BYTES, LARGE_COUNT, LARGE_CONNECTIONS, &rate)?
    }])
}

/// Measures objects of 4 KiB.
pub(super) fn small(bench: &Bench) -> Result<Vec<Measurement>> {
    #[expect(clippy::cast_precision_loss, reason = "ten thousand is exact")]
    let rate = |took: std::time::Duration| SMALL_COUNT as f64 / took.as_secs_f64();
    Ok(vec![Measurement {
        row: "4 KiB objects",
        unit: "objects/s",
        target: ">= 2,000",
        input: format!("{SMALL_COUNT} DEEP_ARCHIVE objects, {SMALL_CONNECTIONS} connections"),
        ..measure(bench, SMALL_BYTES, SMALL_COUNT, SMALL_CONNECTIONS, &rate)?
    }])
}

fn measure(
    bench: &Bench,
    bytes: usize,
    count: usize,
    connections: usize,
    rate: &dyn Fn(std::time::Duration) -> f64,
) -> Result<Measurement> {
    let noise = client::noise(bytes);
    let bodies = vec![noise.as_slice(); count];
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    for repeat in 0..REPEATS {
        let data = bench.folder.join(format!("data-{repeat}"));
        let server = Server::start_with_bucket(bench, &data)?;
        let mut requests = Vec::with_capacity(count);
        for at in 0..count {
            requests.push((server.put(&format!("{at:06}"), bytes)?, noise.as_slice()));
        }
        ours.push(rate(client::send_all(server.address, connections, &requests, 200)?));
        drop(server);
        std::fs::remove_dir_all(&data)?;
        let folder = bench.folder.join("peer");
        peers.push(rate(peer::write_files(&folder, connections, &bodies)?));
    }
    Ok(Measurement {
        row: "",
        ours,
        peer: Some((peer::WRITE_FILES, peers)),
        unit: "",
        target: "",
        input: String::new(),
    })
}
