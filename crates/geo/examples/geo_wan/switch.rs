//! Distant networks on one machine: a namespace for each site with a TUN device, and between the
//! devices a switch that forwards each packet after its delay.
//!
//! ```text
//! namespace of a site -- wan0 -- reader --> packets by due time --> writer -- wan0 -- another
//! ```
//!
//! Distances are emulated, and optionally jitter and loss; packets, TCP and the layers above are
//! real. Not here: line rates and reordering. A late packet holds up those behind it, as in a
//! queue. A pair of sites without a delay is partitioned: packets vanish without an error.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fulgurite_units::{Ratio, Seed};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Maximum size of a packet in bytes, as at most providers.
const MTU: usize = 1500;
/// Maximum bytes of packets in flight; more are dropped, as by a full router.
const IN_FLIGHT_MAX: usize = 64 << 20;

/// Delay in one direction for each pair of sites; none if nothing passes.
pub(crate) type DelayMatrix = Vec<Vec<Option<Duration>>>;

/// What the lines between sites do to each packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lines {
    /// Maximum extra delay, as a share of the delay.
    pub(crate) jitter: Ratio,
    /// The chance that it is lost.
    pub(crate) loss: Ratio,
}

/// Packet counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// Bytes that left a site.
    pub(crate) sent: u64,
    /// Packets of all sites that were dropped by a full queue, and those that lines lost.
    pub(crate) dropped: u64,
    pub(crate) lost: u64,
}

/// Returns the address of a site.
pub(crate) fn address(site: usize) -> String {
    format!("10.77.{}.1", site + 1)
}

/// A packet in flight; the one that is due first is the greatest.
type Packet = Reverse<(Instant, u64, usize, Vec<u8>)>;

#[derive(Default)]
struct InFlight {
    packets: BinaryHeap<Packet>,
    /// When the last packet from a site to another is due.
    last: BTreeMap<(usize, usize), Instant>,
    bytes: usize,
    count: u64,
}

struct Shared {
    delays: Mutex<DelayMatrix>,
    lines: Lines,
    in_flight: Mutex<InFlight>,
    changed: Condvar,
    is_over: AtomicBool,
    dropped: AtomicU64,
    lost: AtomicU64,
    /// Bytes that left each site.
    sent: Vec<AtomicU64>,
}

/// The networks and the switch between them. They end when this is dropped.
pub(crate) struct Switch {
    names: Vec<String>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Switch {
    /// Creates a network for each site.
    pub(crate) fn new(delays: DelayMatrix, lines: Lines) -> Result<Self, String> {
        let sites = delays.len();
        let shared = Arc::new(Shared {
            delays: Mutex::new(delays),
            lines,
            in_flight: Mutex::default(),
            changed: Condvar::new(),
            is_over: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            sent: (0..sites).map(|_| AtomicU64::new(0)).collect(),
        });
        let (names, threads) = (Vec::new(), Vec::new());
        let mut switch = Self { names, shared, threads };
        let mut devices = Vec::new();
        for site in 0..sites {
            let name = format!("fgw{}-{site}", std::process::id());
            ip(&["netns", "add", &name])?;
            switch.names.push(name.clone());
            devices.push(in_namespace(&name, || device().map_err(|error| error.to_string()))??);
            for words in [
                &["address", "add", &format!("{}/16", address(site)), "dev", "wan0"][..],
                &["link", "set", "dev", "wan0", "mtu", &MTU.to_string(), "txqueuelen", "20000"],
                &["link", "set", "dev", "wan0", "up"],
                &["link", "set", "dev", "lo", "up"],
                // The default of Linux; a namespace has no other way to set it.
                &["route", "replace", "10.77.0.0/16", "dev", "wan0", "congctl", "cubic"],
            ] {
                ip(&[&["-netns", &name], words].concat())?;
            }
        }
        for (site, device) in devices.iter().enumerate() {
            let (device, shared) = (device.try_clone().map_err(text)?, Arc::clone(&switch.shared));
            // It ends with the process: a read from a device cannot be interrupted.
            std::thread::spawn(move || take(site, device, &shared));
        }
        let shared = Arc::clone(&switch.shared);
        switch.threads.push(std::thread::spawn(move || forward(&devices, &shared)));
        Ok(switch)
    }

    /// Returns the namespace of a site.
    pub(crate) fn name(&self, site: usize) -> &str {
        &self.names[site]
    }

    /// Sets the delays from now on.
    pub(crate) fn set(&self, delays: DelayMatrix) {
        *self.shared.delays.lock().unwrap() = delays;
    }

    /// Returns the packet counters.
    pub(crate) fn counts(&self, site: usize) -> Counts {
        let (shared, load) = (&self.shared, |count: &AtomicU64| count.load(Ordering::Relaxed));
        let (dropped, lost) = (load(&shared.dropped), load(&shared.lost));
        Counts { sent: load(&shared.sent[site]), dropped, lost }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        for name in &self.names {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

/// Runs `work` in a namespace, on its own thread: whatever it starts is in the namespace as well.
pub(crate) fn in_namespace<T: Send>(
    name: &str,
    work: impl FnOnce() -> T + Send,
) -> Result<T, String> {
    let enter = || -> std::io::Result<()> {
        let namespace = File::open(format!("/run/netns/{name}"))?;
        let network = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(namespace.as_fd(), network)?;
        // Keep connections warm: an idle connection keeps its congestion window.
        std::fs::write("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0")?;
        std::fs::write("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 33554432")?;
        std::fs::write("/proc/sys/net/ipv4/tcp_wmem", "4096 131072 33554432")
    };
    std::thread::scope(|scope| {
        let done = scope.spawn(|| enter().map(|()| work())).join();
        done.map_err(|_| "a thread in a network namespace has failed".to_owned())?.map_err(text)
    })
}

/// Creates a device in this thread's network.
fn device() -> std::io::Result<File> {
    /// Linux's `TUNSETIFF`, on an `ifreq`: a name of 16 bytes and the kind.
    const SET: rustix::ioctl::Opcode = rustix::ioctl::opcode::write::<i32>(b'T', 202);
    /// IP packets without a device header (`IFF_TUN`, `IFF_NO_PI`).
    const KIND: u16 = 0x1001;
    let device = File::options().read(true).write(true).open("/dev/net/tun")?;
    let mut request = [0_u8; 40];
    request[..4].copy_from_slice(b"wan0");
    #[expect(clippy::host_endian_bytes, reason = "it is for the kernel of this machine")]
    request[16..18].copy_from_slice(&KIND.to_ne_bytes());
    // SAFETY: the call reads and writes an `ifreq`, 40 bytes, which outlives it.
    #[expect(unsafe_code, reason = "the call takes a pointer; rustix has no safe form of it")]
    unsafe {
        let set = rustix::ioctl::Updater::<SET, [u8; 40]>::new(&mut request);
        rustix::ioctl::ioctl(&device, set)?;
    }
    Ok(device)
}

/// Reads the packets of a site and queues them.
fn take(from: usize, mut device: File, shared: &Shared) {
    let mut random = Seed::new(7).child(&from.to_le_bytes()).stream();
    let Lines { jitter, loss } = shared.lines;
    let mut buffer = [0; 2 * MTU];
    while let Ok(length) = device.read(&mut buffer) {
        if shared.is_over.load(Ordering::Relaxed) {
            return;
        }
        let packet = &buffer[..length];
        // IPv4 to 10.77.SITE.1.
        let Some([4, .., site]) = packet.get(..19).map(|it| [it[0] >> 4, it[16], it[18]]) else {
            continue;
        };
        let to = usize::from(site).wrapping_sub(1);
        let delay = shared.delays.lock().unwrap()[from].get(to).copied().flatten();
        let Some(delay) = delay else { continue };
        shared.sent[from].fetch_add(length as u64, Ordering::Relaxed);
        if random.unit() < loss.get() {
            shared.lost.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let due = Instant::now() + delay.mul_f64(1.0 + random.unit() * jitter.get());
        let mut in_flight = shared.in_flight.lock().unwrap();
        if in_flight.bytes + length > IN_FLIGHT_MAX {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        in_flight.bytes += length;
        in_flight.count += 1;
        // No packet overtakes another on its delay.
        let last = in_flight.last.get(&(from, to));
        let due = last.map_or(due, |last| due.max(*last));
        in_flight.last.insert((from, to), due);
        let is_first = in_flight.packets.peek().is_none_or(|Reverse(first)| due < first.0);
        let number = in_flight.count;
        in_flight.packets.push(Reverse((due, number, to, packet.to_vec())));
        drop(in_flight);
        if is_first {
            shared.changed.notify_one();
        }
    }
}

/// Forwards packets when they are due.
fn forward(devices: &[File], shared: &Shared) {
    let mut in_flight = shared.in_flight.lock().unwrap();
    while !shared.is_over.load(Ordering::Relaxed) {
        let now = Instant::now();
        let left = in_flight.packets.peek().map(|Reverse(first)| first.0.duration_since(now));
        if left.is_none_or(|left| left > Duration::ZERO) {
            let left = left.unwrap_or(Duration::from_millis(200));
            in_flight = shared.changed.wait_timeout(in_flight, left).unwrap().0;
            continue;
        }
        let Some(Reverse((_, _, to, packet))) = in_flight.packets.pop() else { continue };
        in_flight.bytes -= packet.len();
        drop(in_flight);
        // A full queue drops the packet, as any would.
        let _ = (&devices[to]).write(&packet);
        in_flight = shared.in_flight.lock().unwrap();
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Runs `ip`. The error is what it printed when it failed.
fn ip(words: &[&str]) -> Result<(), String> {
    let done = Command::new("ip").args(words).stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("ip: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&done.stderr).trim()))
}
