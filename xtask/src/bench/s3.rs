//! Compares the archive with other S3 servers: the same requests over the same connections, on the
//! same disk, alternating. MinIO syncs before it acknowledges, as we do; versitygw leaves that to
//! the kernel.
//!
//! Both are built from their Go modules, the first time; without Go the rows have no peer.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::client::{self, ACCESS_KEY, Connection, Request, SECRET_KEY};
use super::server::{BUCKET, Server, stop};
use super::{Bench, Measurement, megabytes_per_second};
use crate::shell;

/// How often each server is measured.
const ROUNDS: usize = 5;
/// Longest wait for a peer to be ready.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
const READY_POLL: Duration = Duration::from_millis(20);

/// A workload: size and number of objects, connections, and the names of its two rows.
struct Load {
    bytes: usize,
    count: usize,
    connections: usize,
    rows: [(&'static str, &'static str); 2],
    unit: &'static str,
}

const LOADS: [Load; 3] = [
    Load {
        bytes: 4 << 10,
        count: 5_000,
        connections: 32,
        rows: [("PUT 4 KiB", "4 x"), ("GET 4 KiB", "3 x")],
        unit: "objects/s",
    },
    Load {
        bytes: 64 << 20,
        count: 8,
        connections: 1,
        rows: [("PUT 64 MiB", "1.1 x"), ("GET 64 MiB", "1.3 x")],
        unit: "MB/s",
    },
    Load {
        bytes: 64 << 20,
        count: 16,
        connections: 4,
        rows: [("PUT 64 MiB, 4 at once", "1.1 x"), ("GET 64 MiB, 4 at once", "1.3 x")],
        unit: "MB/s",
    },
];

/// A server for comparison.
struct Peer {
    name: &'static str,
    /// The program, and its module with a version that is known to build.
    program: &'static str,
    module: &'static str,
    /// Returns its command line, for a folder and an address.
    arguments: fn(&Path, SocketAddr) -> Vec<String>,
}

const PEERS: [Peer; 2] = [
    Peer {
        name: "MinIO",
        program: "minio",
        module: "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",
        arguments: |folder, address| {
            let folder = folder.display().to_string();
            vec!["server".into(), "--quiet".into(), "--address".into(), address.to_string(), folder]
        },
    },
    Peer {
        name: "versitygw, which does not sync",
        program: "versitygw",
        module: "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
        arguments: |folder, address| {
            let (folder, address) = (folder.display().to_string(), address.to_string());
            let words = ["--quiet", "--keep-alive", "--port", &address, "posix", &folder];
            words.map(str::to_owned).to_vec()
        },
    },
];

/// Environment variables with the benchmark's keys for each server.
const KEYS: [(&str, &str); 4] = [
    ("MINIO_ROOT_USER", ACCESS_KEY),
    ("MINIO_ROOT_PASSWORD", SECRET_KEY),
    ("ROOT_ACCESS_KEY", ACCESS_KEY),
    ("ROOT_SECRET_KEY", SECRET_KEY),
];

/// Measures PUT and GET of small and large objects.
pub(super) fn s3(bench: &Bench) -> Result<Vec<Measurement>> {
    let peers: Vec<(&Peer, PathBuf)> = PEERS
        .iter()
        .filter_map(|peer| match peer.build() {
            Ok(path) => Some((peer, path)),
            Err(error) => {
                eprintln!("skipped: {}: {error:#}", peer.name);
                None
            }
        })
        .collect();
    // The runs of each row, by server.
    let mut runs = vec![vec![Vec::new(); 2 * LOADS.len()]; 1 + peers.len()];
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        let data = bench.folder.join("data");
        let server = Server::start_with_bucket(bench, &data)?;
        add(&mut runs[0], measure(server.address)?);
        drop(server);
        super::empty(&data)?;
        for ((peer, path), runs) in peers.iter().zip(&mut runs[1..]) {
            let running = peer.start(path, &data, &bench.folder)?;
            add(runs, measure(running.address).with_context(|| peer.name)?);
            drop(running);
            super::empty(&data)?;
        }
    }
    let (ours, peer_runs) = runs.split_first().context("we are measured")?;
    let mut all = Vec::new();
    let rows = LOADS.iter().flat_map(|load| load.rows.map(|row| (load, row)));
    for (at, (load, (row, target))) in rows.enumerate() {
        let Load { bytes, count, connections, unit, .. } = load;
        let input = format!(
            "{count} objects of {bytes} bytes, connections: {connections}, STANDARD, unsigned \
             payload, {ROUNDS} rounds in turn"
        );
        let measured = |peer, target| {
            let (ours, input) = (ours[at].clone(), input.clone());
            Measurement { row, ours, peer, unit, target, input }
        };
        if peers.is_empty() {
            all.push(measured(None, target));
        }
        for (number, ((peer, _), runs)) in peers.iter().zip(peer_runs).enumerate() {
            let target = if number == 0 { target } else { "none" };
            all.push(measured(Some((peer.name, runs[at].clone())), target));
        }
    }
    Ok(all)
}

fn add(runs: &mut [Vec<f64>], measured: Vec<f64>) {
    for (runs, run) in runs.iter_mut().zip(measured) {
        runs.push(run);
    }
}

/// Puts and gets every load on one server.
fn measure(server: SocketAddr) -> Result<Vec<f64>> {
    let mut found = Vec::new();
    for load in &LOADS {
        let noise = client::noise(load.bytes);
        for method in ["PUT", "GET"] {
            let body = if method == "PUT" { noise.as_slice() } else { &[] };
            let path = |at| format!("{BUCKET}/{}-{}-{at}", load.bytes, load.connections);
            let requests = (0..load.count)
                .map(|at| Ok((Request::sign(server, method, &path(at), &[], body.len())?, body)));
            let requests = requests.collect::<Result<Vec<_>>>()?;
            let took = client::send_all(server, load.connections, &requests, 200)
                .with_context(|| format!("{method} of {} bytes", load.bytes))?;
            found.push(if load.unit == "MB/s" {
                megabytes_per_second((load.bytes * load.count) as u64, took)
            } else {
                #[expect(clippy::cast_precision_loss, reason = "some thousands are exact")]
                let count = load.count as f64;
                count / took.as_secs_f64()
            });
        }
    }
    Ok(found)
}

/// A running peer, stopped when it is dropped.
struct Running {
    child: Child,
    address: SocketAddr,
}

impl Peer {
    /// Builds the program, unless it exists.
    fn build(&self) -> Result<PathBuf> {
        let folder = shell::target().join("peers");
        let path = folder.join(self.program);
        if !path.is_file() {
            eprintln!("building {} from its Go module: some minutes", self.name);
            let mut command = shell::program("go");
            command.env("GOBIN", &folder).args(["install", self.module]);
            shell::read(&mut command).context("needs Go, and its modules")?;
        }
        Ok(path)
    }

    /// Starts it in an empty folder, with the benchmark's bucket.
    fn start(&self, program: &Path, data: &Path, logs: &Path) -> Result<Running> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let log = std::fs::File::create(logs.join("peer.log"))?;
        let mut command = Command::new(program);
        command.args((self.arguments)(data, address)).envs(KEYS);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("cannot start {}", self.name))?;
        let running = Running { child, address };
        let begin = Instant::now();
        loop {
            match make_bucket(address) {
                Ok(()) => return Ok(running),
                Err(error) if begin.elapsed() > READY_TIMEOUT => {
                    return Err(error.context(format!("{}: see target/bench/peer.log", self.name)));
                }
                Err(_) => std::thread::sleep(READY_POLL),
            }
        }
    }
}

fn make_bucket(address: SocketAddr) -> Result<()> {
    let make = Request::sign(address, "PUT", BUCKET, &[], 0)?;
    let answer = Connection::open(address)?.send(&make, b"")?;
    if answer.status != 200 {
        bail!("creating the bucket answered {}", answer.status);
    }
    Ok(())
}

impl Drop for Running {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}
