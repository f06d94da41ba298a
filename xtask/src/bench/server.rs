//! A running archive for one benchmark, stopped when it is dropped.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::client::{ACCESS_KEY, Connection, Request, SECRET_KEY};
use super::{Bench, peer};
use crate::shell;

/// Longest wait for a server to be ready.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a starting server is polled.
const READY_POLL: Duration = Duration::from_millis(5);
/// Credentials, for server and administrator.
const KEYS: [(&str, &str); 2] =
    [("FULGURITE_ACCESS_KEY", ACCESS_KEY), ("FULGURITE_SECRET_KEY", SECRET_KEY)];
/// The bucket of every benchmark.
pub(super) const BUCKET: &str = "/bench";

/// A server on a free loopback port.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    binary: PathBuf,
    data: PathBuf,
    /// The address that it listens on.
    pub(super) address: SocketAddr,
    /// From starting the process to the first `200` of `/readyz`.
    pub(super) ready_after: Duration,
}

impl Server {
    /// Starts an archive with the `demo` profile in `data`.
    pub(super) fn start(bench: &Bench, data: &Path) -> Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = Command::new(&bench.binary);
        command.arg("serve").arg("--data").arg(data);
        command.args(["--listen", &address.to_string(), "--profile", "demo"]).envs(KEYS);
        // Nothing is sealed before the benchmark asks for it, so that each row measures one thing.
        command.env("FULGURITE_GLASS_MOVES_BYTES", "64GiB");
        let log = std::fs::File::create(bench.folder.join("serve.log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let begin = Instant::now();
        let child = command.spawn().context("cannot start the archive")?;
        let (binary, data) = (bench.binary.clone(), data.to_path_buf());
        let mut server = Self { child, binary, data, address, ready_after: Duration::ZERO };
        while let Err(error) = server.ask_ready() {
            if let Some(status) = server.child.try_wait()? {
                bail!("the archive ended with {status}; see target/bench/serve.log");
            }
            if begin.elapsed() > READY_TIMEOUT {
                return Err(error.context("the archive is not ready; see target/bench/serve.log"));
            }
            std::thread::sleep(READY_POLL);
        }
        server.ready_after = begin.elapsed();
        Ok(server)
    }

    /// Starts an archive, and creates the benchmarks' bucket.
    pub(super) fn start_with_bucket(bench: &Bench, data: &Path) -> Result<Self> {
        let server = Self::start(bench, data)?;
        let make = Request::sign(server.address, "PUT", BUCKET, &[], 0)?;
        let answer = Connection::open(server.address)?.send(&make, b"")?;
        if answer.status != 200 {
            bail!("creating the bucket answered {}", answer.status);
        }
        Ok(server)
    }

    fn ask_ready(&self) -> Result<()> {
        let ask = Request::unsigned(self.address, "/readyz");
        let answer = Connection::open(self.address)?.send(&ask, b"")?;
        ensure!(answer.status == 200, "/readyz answered {}", answer.status);
        Ok(())
    }

    /// Returns a signed PUT of a `DEEP_ARCHIVE` object.
    pub(super) fn put(&self, key: &str, bytes: usize) -> Result<Request> {
        let class = [("x-amz-storage-class", "DEEP_ARCHIVE")];
        Request::sign(self.address, "PUT", &format!("{BUCKET}/{key}"), &class, bytes)
    }

    /// Returns a signed RestoreObject with this body length.
    pub(super) fn restore(&self, key: &str, bytes: usize) -> Result<Request> {
        let path = format!("{BUCKET}/{key}?restore=");
        Request::sign(self.address, "POST", &path, &[], bytes)
    }

    /// Returns a signed HEAD.
    pub(super) fn head(&self, key: &str) -> Result<Request> {
        Request::sign(self.address, "HEAD", &format!("{BUCKET}/{key}"), &[], 0)
    }

    /// Seals what is staged; returns when it is verified and released.
    pub(super) fn seal(&self) -> Result<Duration> {
        let mut command = Command::new(&self.binary);
        command.args(["archive", "seal", "--data"]).arg(&self.data).envs(KEYS);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        peer::timed(&mut command)
    }

    /// Returns the peak memory of the process so far, in MiB.
    pub(super) fn memory_mib_max(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let words = line.context("the kernel reports VmHWM")?.split_whitespace().next();
        let kib: f64 = words.context("VmHWM has a number")?.parse()?;
        Ok(kib / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

/// Asks a server to stop, and waits until it has.
pub(super) fn stop(child: &mut Child) {
    let pid = child.id().to_string();
    let asked = shell::run(shell::program("kill").args(["-TERM", &pid]));
    let begin = Instant::now();
    while asked.is_ok() && begin.elapsed() < READY_TIMEOUT {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(READY_POLL);
    }
    // It did not stop; nothing of this run is kept.
    drop(child.kill());
    drop(child.wait());
}
