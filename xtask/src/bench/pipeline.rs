//! From staging to glass and back, and the memory it takes.
//!
//! Sets are full or nearly so. A short set pays for redundancy platters that it does not fill: that
//! is the cost of a small archive, not the speed of sealing.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::client::{Connection, noise, send_all};
use super::server::Server;
use super::{Bench, Measurement, REPEATS, megabytes_per_second, peer};

const OBJECT_BYTES: usize = 64 << 20;
/// Fills three sets of 16 demo platters of 16 MiB and most of a fourth.
const OBJECT_COUNT: usize = 15;
const TOTAL_BYTES: u64 = OBJECT_BYTES as u64 * OBJECT_COUNT as u64;
const CONNECTIONS: usize = 4;
const SMALL_BYTES: usize = 4 << 10;
const SMALL_COUNT: usize = 5_000;
const SMALL_CONNECTIONS: usize = 32;
const RESTORE_BODY: &[u8] =
    b"<RestoreRequest><Days>1</Days><GlacierJobParameters><Tier>Standard</Tier>\
      </GlacierJobParameters></RestoreRequest>";
const RESTORE_TIMEOUT: Duration = Duration::from_secs(300);
const RESTORE_POLL: Duration = Duration::from_millis(10);

/// Measures a seal: plan, encode, write the sets with their redundancy, read back, release.
pub(super) fn seal(bench: &Bench) -> Result<Vec<Measurement>> {
    let (from, to) = peer_file(bench)?;
    let server = Server::start_with_bucket(bench, &bench.folder.join("data"))?;
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    for repeat in 0..REPEATS {
        put(&server, repeat)?;
        ours.push(megabytes_per_second(TOTAL_BYTES, server.seal()?));
        let took = peer::copy_and_check(&from, &to)?;
        peers.push(megabytes_per_second(TOTAL_BYTES, took));
    }
    Ok(vec![Measurement {
        row: "user data",
        ours,
        peer: Some((peer::COPY_AND_CHECK, peers)),
        unit: "MB/s",
        target: ">= 150",
        input: input(),
    }])
}

/// Measures the time from the first restore request until every copy can be read; mechanical delays
/// are off.
pub(super) fn restore(bench: &Bench) -> Result<Vec<Measurement>> {
    let (from, to) = peer_file(bench)?;
    let server = Server::start_with_bucket(bench, &bench.folder.join("data"))?;
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    for repeat in 0..REPEATS {
        put(&server, repeat)?;
        server.seal()?;
        ours.push(megabytes_per_second(TOTAL_BYTES, restore_all(&server, repeat)?));
        peers.push(megabytes_per_second(TOTAL_BYTES, peer::copy(&from, &to)?));
    }
    Ok(vec![Measurement {
        row: "user data",
        ours,
        peer: Some((peer::COPY, peers)),
        unit: "MB/s",
        target: ">= 300",
        input: input(),
    }])
}

/// Measures the server's peak memory while it ingests, seals and restores everything.
pub(super) fn memory(bench: &Bench) -> Result<Vec<Measurement>> {
    let server = Server::start_with_bucket(bench, &bench.folder.join("data"))?;
    put(&server, 0)?;
    let body = noise(SMALL_BYTES);
    let mut requests = Vec::with_capacity(SMALL_COUNT);
    for at in 0..SMALL_COUNT {
        requests.push((server.put(&format!("small/{at}"), SMALL_BYTES)?, body.as_slice()));
    }
    send_all(server.address, SMALL_CONNECTIONS, &requests, 200)?;
    server.seal()?;
    restore_all(&server, 0)?;
    Ok(vec![Measurement {
        row: "peak resident",
        ours: vec![server.memory_mib_max()?],
        peer: None,
        unit: "MiB",
        target: "<= 512",
        input: format!("{} and {SMALL_COUNT} of 4 KiB; put, seal, restore", input()),
    }])
}

fn input() -> String {
    format!("{OBJECT_COUNT} DEEP_ARCHIVE objects of 64 MiB, demo profile")
}

fn key(repeat: usize, at: usize) -> String {
    format!("{repeat}/{at:04}")
}

fn put(server: &Server, repeat: usize) -> Result<()> {
    let body = noise(OBJECT_BYTES);
    let mut requests = Vec::with_capacity(OBJECT_COUNT);
    for at in 0..OBJECT_COUNT {
        requests.push((server.put(&key(repeat, at), OBJECT_BYTES)?, body.as_slice()));
    }
    send_all(server.address, CONNECTIONS, &requests, 200)?;
    Ok(())
}

fn restore_all(server: &Server, repeat: usize) -> Result<Duration> {
    let (mut requests, mut heads) = (Vec::new(), Vec::new());
    for at in 0..OBJECT_COUNT {
        requests.push((server.restore(&key(repeat, at), RESTORE_BODY.len())?, RESTORE_BODY));
        heads.push(server.head(&key(repeat, at))?);
    }
    let begin = Instant::now();
    send_all(server.address, CONNECTIONS, &requests, 202)?;
    let mut connection = Connection::open(server.address)?;
    for head in &heads {
        loop {
            let answer = connection.send(head, b"")?;
            if answer.header("x-amz-restore").is_some_and(|v| v.contains("\"false\"")) {
                break;
            }
            if begin.elapsed() > RESTORE_TIMEOUT {
                bail!("not restored after {RESTORE_TIMEOUT:?}");
            }
            std::thread::sleep(RESTORE_POLL);
        }
    }
    Ok(begin.elapsed())
}

/// Creates a file with as many bytes as one round puts; returns it and the path of its copy.
fn peer_file(bench: &Bench) -> Result<(PathBuf, PathBuf)> {
    let from = bench.folder.join("peer-from");
    let body = noise(OBJECT_BYTES);
    let mut file = File::create(&from)?;
    for _ in 0..OBJECT_COUNT {
        file.write_all(&body)?;
    }
    file.sync_data()?;
    Ok((from, bench.folder.join("peer-to")))
}
