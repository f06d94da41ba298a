//! Measures the speed of objects over three sites on one machine: one measurement per run, printed
//! as one line of JSON.
//!
//! ```text
//! geo_speed coding ROUNDS                       4 MiB encoded, and decoded with one fragment lost
//! geo_speed small COUNT AT_ONCE URL URL URL     objects of 1 KiB put through one program, against
//!                                               bare conditional writes of as many rows
//! geo_speed large MIB ROUNDS URL URL URL        one object put and got, and bytes stored for it
//! ```
//!
//! URLs are those of sites (`dir:///path`, `postgres://...`); blobs of databases are kept in
//! memory. `cargo xtask bench geo` runs them all.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement tool: it prints, reads clocks, and panics on invalid arguments"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use fulgurite_geo::objects::{GeoOptions, GeoStore, SiteEntry, SiteMap};
use fulgurite_geo::stores::fragment::ChunkCode;
use fulgurite_geo::stores::{Entropy, Expect, Key, Opener, Table};
use fulgurite_units::{Clock, Seed, UnixTime};
use futures::stream::{self, StreamExt as _};
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutPayload};

fn entropy() -> Entropy {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let seed = Seed::new(u64::try_from(since & u128::from(u64::MAX)).unwrap());
    Entropy::new(move || {
        let mut bytes = [0; 16];
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        seed.child(&count.to_le_bytes()).stream().fill(&mut bytes);
        bytes
    })
}

fn clock() -> Clock {
    let wall = || {
        let passed = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
        UnixTime::from_millis(u64::try_from(passed).unwrap())
    };
    Clock::new(wall, || fulgurite_units::Instant::from_nanos(0))
}

fn opener() -> Opener {
    Opener::new(entropy(), std::env::vars())
}

fn map(urls: &[&str]) -> SiteMap {
    let site = |(number, url): (usize, &&str)| {
        let bucket = url.starts_with("dir:") || url.starts_with("mem:") || url.starts_with("s3:");
        let blobs = if bucket { (*url).to_owned() } else { format!("mem://blobs-{number}") };
        let (name, table) = (format!("site-{number}"), Some((*url).to_owned()));
        SiteEntry { name, table, blobs: Some(blobs), rebuilding: false }
    };
    let text = "name = 'speed'\ndata = 2\nparity = 1\nsites = [\
                {name = 'a', table = 'mem://a', blobs = 'mem://a'}, \
                {name = 'b', table = 'mem://b', blobs = 'mem://b'}, \
                {name = 'c', table = 'mem://c', blobs = 'mem://c'}]";
    SiteMap { sites: urls.iter().enumerate().map(site).collect(), ..SiteMap::parse(text).unwrap() }
}

async fn store(urls: &[&str]) -> GeoStore {
    let (file, near, cache, opener) = (None, None, None, Arc::new(opener()));
    let options = GeoOptions {
        map: map(urls),
        file,
        near,
        clock: clock(),
        entropy: entropy(),
        opener,
        cache,
        orphan_age: fulgurite_units::Duration::from_secs(86_400),
    };
    GeoStore::init(options).await.unwrap()
}

fn coding(rounds: usize) {
    const CHUNK: usize = 4 << 20;
    let mut chunk = vec![0; CHUNK];
    Seed::new(1).stream().fill(&mut chunk);
    let length = u32::try_from(CHUNK).unwrap();
    for (data, parity) in [(2, 1), (4, 1), (6, 1), (4, 2)] {
        let code = ChunkCode::new(data, parity).unwrap();
        let (mut encode, mut decode) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let began = Instant::now();
            let payloads = code.encode(&chunk);
            encode.push(began.elapsed().as_secs_f64() * 1e3);
            let available: Vec<(usize, &[u8])> = payloads
                .iter()
                .enumerate()
                .skip(1)
                .map(|(index, payload)| (index, &**payload))
                .collect();
            let began = Instant::now();
            let whole = code.decode(length, &available[..code.data()]).unwrap();
            decode.push(began.elapsed().as_secs_f64() * 1e3);
            assert_eq!(whole, chunk);
        }
        println!(
            r#"{{"code":"{data}+{parity}","encode_ms":{:.4},"decode_ms":{:.4}}}"#,
            median(&mut encode),
            median(&mut decode)
        );
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn small(count: u64, at_once: usize, urls: &[&str]) {
    let store = store(urls).await;
    let bytes = PutPayload::from(vec![7_u8; 1 << 10]);
    let puts = |from: u64| {
        let (store, bytes) = (store.clone(), bytes.clone());
        stream::iter(from..from + count)
            .map(move |number| {
                let (store, bytes) = (store.clone(), bytes.clone());
                async move {
                    store.put(&Path::from(format!("small/{number}")), bytes).await.unwrap();
                }
            })
            .buffer_unordered(at_once)
            .collect::<Vec<()>>()
    };
    let opener = opener();
    let mut tables: Vec<Arc<dyn Table>> = Vec::new();
    for url in urls.iter().filter(|url| !url.starts_with("mem:")) {
        tables.push(opener.table(&url.parse().unwrap(), true).await.unwrap());
    }
    let bare = |from: u64| {
        let tables = tables.clone();
        stream::iter(from..from + count)
            .map(move |number| {
                let tables = tables.clone();
                async move {
                    let key = Key::new(format!("bare/{number}")).unwrap();
                    let row = Bytes::from(vec![7_u8; 1200]);
                    // The same as a put: read the nearest row, write the row of each site, and
                    // write it again once all know that the version is decided.
                    if let Some(first) = tables.first() {
                        first.read(&key).await.unwrap();
                    }
                    let cas = tables.iter().map(|table| {
                        let (key, row) = (&key, row.clone());
                        async move {
                            let tag = table.cas(key, Expect::Absent, row.clone()).await.unwrap();
                            table.cas(key, Expect::Is(tag), row).await.unwrap();
                        }
                    });
                    futures::future::join_all(cas).await;
                }
            })
            .buffer_unordered(at_once)
            .collect::<Vec<()>>()
    };
    for round in 0..3 {
        let began = Instant::now();
        puts(round * count).await;
        let ours = count as f64 / began.elapsed().as_secs_f64();
        let began = Instant::now();
        bare(round * count).await;
        let rows = count as f64 / began.elapsed().as_secs_f64();
        println!(r#"{{"puts_per_s":{ours:.1},"bare_per_s":{rows:.1}}}"#);
    }
    let snapshot = store.snapshot();
    let calls: u64 = snapshot.sites.iter().map(|site| site.row_calls).sum();
    println!(
        r#"{{"fast":{},"slow":{},"rounds":{},"row_calls":{calls}}}"#,
        snapshot.writes_fast, snapshot.writes_slow, snapshot.write_rounds
    );
}

async fn large(mib: usize, rounds: u64, urls: &[&str]) {
    let store = store(urls).await;
    let mut bytes = vec![0; mib << 20];
    Seed::new(1).stream().fill(&mut bytes);
    let bytes = Bytes::from(bytes);
    for round in 0..rounds {
        let key = Path::from(format!("large/{round}"));
        let before: u64 = store.snapshot().sites.iter().map(|site| site.bytes_written).sum();
        let began = Instant::now();
        store.put(&key, PutPayload::from(bytes.clone())).await.unwrap();
        let put = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let got = store.get(&key).await.unwrap().bytes().await.unwrap();
        let get = began.elapsed().as_secs_f64();
        assert_eq!(got, bytes);
        let after: u64 = store.snapshot().sites.iter().map(|site| site.bytes_written).sum();
        println!(
            r#"{{"put_mib_s":{:.1},"get_mib_s":{:.1},"stored":{}}}"#,
            mib as f64 / put,
            mib as f64 / get,
            after - before
        );
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match words[..] {
        ["coding", rounds] => coding(rounds.parse().unwrap()),
        ["small", count, at_once, ref urls @ ..] if urls.len() == 3 => {
            runtime.block_on(small(count.parse().unwrap(), at_once.parse().unwrap(), urls));
        }
        ["large", mib, rounds, ref urls @ ..] if urls.len() == 3 => {
            runtime.block_on(large(mib.parse().unwrap(), rounds.parse().unwrap(), urls));
        }
        _ => panic!("unknown measurement: {words:?}"),
    }
}
