//! File systems that are really full, and really read-only: those of disks, and those of metadata
//! stores.
//!
//! Each is a small tmpfs, which only root can mount: otherwise the tests are skipped.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fulgurite_tome::TomeSet;

use crate::shelf::{BLOCK, Shelf, metadata, noise, root, tomes};

/// Size of a file system.
const BYTES: &str = "16m";

/// A tmpfs mounted over a folder.
struct Mounted(PathBuf);

impl Mounted {
    /// Mounts it; `None` where that is not permitted.
    fn over(folder: &Path) -> Option<Self> {
        std::fs::create_dir_all(folder).unwrap();
        let is_mounted =
            run("mount", &["-t", "tmpfs", "-o", &format!("size={BYTES}"), "tmpfs"], folder);
        is_mounted.then(|| Self(folder.to_owned()))
    }

    /// Fills the file system.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.0.join("ballast")).unwrap();
        for bytes in [1 << 20, 4096, 1] {
            while file.write_all(&vec![1; bytes]).is_ok() {}
        }
    }

    fn empty(&self) {
        std::fs::remove_file(self.0.join("ballast")).unwrap();
    }

    fn remount(&self, how: &str) -> bool {
        run("mount", &["-o", &format!("remount,{how}")], &self.0)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run("umount", &["--lazy"], &self.0);
    }
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> bool {
    let output = Command::new(program).args(arguments).arg(folder).output();
    output.is_ok_and(|output| output.status.success())
}

/// Puts objects until a tome fails; returns those that were acknowledged.
async fn until_given_up(shelf: &Shelf, set: &TomeSet) -> Vec<String> {
    let mut names = Vec::new();
    for number in 0..60 {
        let name = format!("more {number}");
        match shelf.wait(set.put(&name, noise(&name, 2 * BLOCK))).await {
            Ok(_) => names.push(name),
            Err(_) => break,
        }
        if !set.status().await.is_well() {
            break;
        }
    }
    names
}

#[tokio::test]
async fn full_or_read_only_storage_is_retried() {
    for is_metadata_store in [false, true] {
        for is_full in [true, false] {
            let shelf = Shelf::new();
            let place = |tome| match is_metadata_store {
                true => metadata(&shelf.folder, tome),
                false => root(&shelf.folder, tome),
            };
            let mounted: Vec<Mounted> =
                tomes().filter_map(|tome| Mounted::over(&place(tome))).collect();
            if mounted.len() < tomes().count() {
                return;
            }
            let set = shelf.init();
            shelf.wait(set.put("before", noise("before", 3 * BLOCK))).await.unwrap();
            shelf.wait(set.protected("before")).await.unwrap();
            shelf.settle(&set).await;
            for one in &mounted {
                if is_full {
                    one.fill();
                } else if !one.remount("ro") {
                    return set.stop();
                }
            }
            let context = format!("metadata store: {is_metadata_store}, full {is_full}");
            let acknowledged = until_given_up(&shelf, &set).await;
            let reported = set.status().await.reasons;
            assert!(reported.iter().any(|why| why.contains("retried")), "{context}: {reported:?}");
            for one in &mounted {
                if is_full {
                    one.empty();
                } else {
                    assert!(one.remount("rw"), "{context}");
                }
            }
            let well = async {
                while !set.status().await.is_well() {
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
            };
            shelf.wait(well).await;
            shelf.wait(set.put("after", noise("after", BLOCK))).await.unwrap();
            shelf.wait(set.protected("after")).await.unwrap();
            for name in &acknowledged {
                let read = shelf.wait(set.get(name)).await.unwrap();
                assert_eq!(read, noise(name, 2 * BLOCK), "{context}: {name}");
            }
            let read = shelf.wait(set.get("before")).await.unwrap();
            assert_eq!(read, noise("before", 3 * BLOCK), "{context}");
            set.stop();
        }
    }
}
