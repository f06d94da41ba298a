//! Metadata operations need only the index: while disks sleep none of their files is opened,
//! according to inotify.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use fulgurite_disks::PlaceId;
use fulgurite_units::Duration;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use crate::shelf::{Shelf, noise, shape};

/// An inotify watch on the folders of all disks.
struct Tracer {
    fd: OwnedFd,
    watched: BTreeMap<i32, PlaceId>,
}

impl Tracer {
    fn new(shelf: &Shelf) -> Self {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let mut watched = BTreeMap::new();
        for place in shape().places() {
            for folder in [shelf.root(place), shelf.root(place).join("stacks")] {
                let all = WatchFlags::ALL_EVENTS;
                watched.insert(inotify::add_watch(&fd, &folder, all).unwrap(), place);
            }
        }
        Self { fd, watched }
    }

    /// Returns the disks with a file opened, read, listed or changed since the last call.
    fn touched(&self) -> Vec<PlaceId> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
        let mut touched = Vec::new();
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
async fn metadata_operations_open_no_file_of_a_disk() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let big = Path::from("bodies/1");
    let small = |number: u64| Path::from(format!("small/{number}"));
    rack.put(&big, noise(1, 1_000_000).into()).await.unwrap();
    rack.put(&small(0), "few bytes".into()).await.unwrap();
    rack.stop();
    drop(rack);
    let rack = shelf.open();
    let tracer = Tracer::new(&shelf);
    for minute in 0..60_u64 {
        assert_eq!(rack.head(&big).await.unwrap().size, 1_000_000);
        let listed = rack.list_with_delimiter(None).await.unwrap();
        assert_eq!(listed.common_prefixes.len(), 2);
        let small_one = rack.get(&small(0)).await.unwrap().bytes().await.unwrap();
        assert_eq!(small_one, "few bytes");
        rack.put(&small(minute + 1), "other bytes".into()).await.unwrap();
        rack.copy(&small(0), &small(minute + 1)).await.unwrap();
        rack.delete(&small(minute)).await.unwrap();
        rack.put(&small(0), "few bytes".into()).await.unwrap();
        assert!(rack.head(&Path::from("nothing")).await.is_err());
        let status = rack.status().await.unwrap();
        let disks = status.groups.iter().flat_map(|group| &group.disks);
        assert!(disks.clone().all(|disk| !disk.power.is_spinning()));
        rack.ledger().await.unwrap();
        shelf.clock.advance(Duration::from_secs(60));
    }
    assert_eq!(tracer.touched(), [], "a file of a spun-down disk was opened");
    // The tracer does notice an opened file and a listed folder.
    let (place, file) = shelf.stacks().remove(0);
    assert!(!tracer.touched().is_empty(), "the test itself listed all folders");
    std::fs::File::open(file).unwrap();
    assert_eq!(tracer.touched().first(), Some(&place));
    // A read of the rack touches the disks of one group only.
    rack.get(&big).await.unwrap().bytes().await.unwrap();
    let status = rack.status().await.unwrap();
    let holds_stack =
        |group: &&fulgurite_rack::GroupSnapshot| group.disks.iter().any(|disk| disk.place == place);
    let group = status.groups.iter().find(holds_stack).unwrap();
    let touched = tracer.touched();
    assert!(!touched.is_empty());
    assert!(touched.iter().all(|at| group.disks.iter().any(|disk| disk.place == *at)));
}
