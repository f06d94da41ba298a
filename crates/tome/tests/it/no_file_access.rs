//! While disks sleep none of their files is opened, according to the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use fulgurite_tome_core::TomeId;
use fulgurite_units::Duration;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use crate::shelf::{BLOCK, Shelf, noise, root, tomes};

/// Gets kernel notifications of every access to the folders of disks and their content.
struct Tracer {
    fd: OwnedFd,
    watched: BTreeMap<i32, TomeId>,
}

impl Tracer {
    fn new(shelf: &Shelf) -> Self {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let mut watched = BTreeMap::new();
        for tome in tomes() {
            let folder = root(&shelf.folder, tome);
            let all = WatchFlags::ALL_EVENTS;
            watched.insert(inotify::add_watch(&fd, &folder, all).unwrap(), tome);
        }
        Self { fd, watched }
    }

    /// Returns the tomes whose disks had something opened, read, listed or changed since the last
    /// call.
    fn touched(&self) -> BTreeSet<TomeId> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
        let mut touched = BTreeSet::new();
        loop {
            match reader.next() {
                Ok(event) => touched.extend(self.watched.get(&event.wd())),
                Err(rustix::io::Errno::AGAIN) => return touched,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[tokio::test]
async fn metadata_requests_open_no_file_of_sleeping_disks() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let tome = shelf.wait(set.put("first", noise("first", 2 * BLOCK))).await.unwrap();
    shelf.wait(set.protected("first")).await.unwrap();
    shelf.wait(set.put("second", noise("second", BLOCK))).await.unwrap();
    shelf.wait(set.protected("second")).await.unwrap();
    shelf.settle(&set).await;
    drop(set);
    let tracer = Tracer::new(&shelf);
    let set = shelf.open();
    for _ in 0..60 {
        assert_eq!(set.list(), ["first", "second"]);
        assert_eq!(set.tome_of("first").unwrap(), tome);
        set.protected("first").await.unwrap();
        assert!(set.get("none").await.is_err());
        assert!(set.status().await.tomes.iter().all(|tome| !tome.power.is_spinning()));
        shelf.clock.advance(Duration::from_secs(60));
    }
    shelf.wait(set.delete("second")).await.unwrap();
    assert_eq!(tracer.touched(), BTreeSet::new(), "a file of a disk that sleeps was opened");
    shelf.wait(set.get("first")).await.unwrap();
    assert_eq!(tracer.touched(), BTreeSet::from([tome]));
    // A put touches the disk that takes it, and later those of its parities.
    let took = shelf.wait(set.put("third", noise("third", BLOCK))).await.unwrap();
    shelf.wait(set.protected("third")).await.unwrap();
    let touched = tracer.touched();
    assert!(touched.contains(&took) && (3..=4).contains(&touched.len()), "{touched:?}");
}
