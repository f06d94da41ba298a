//! Tomes whose directories vanish without notice while objects are put as fast as possible: nothing
//! that was acknowledged as protected is lost, and what was local is lost with its tome at most.
//!
//! ```text
//! data, parity     the tome with an object's blocks, or its parity, goes while clients write
//! source           another member of a group goes while one of its member slots is rebuilt
//! target           the tome that is to take over the member slot goes
//! ```
//!
//! After each loss the set continues for a while with what it has open, is stopped, opened without
//! the tome, and everything that was acknowledged is compared; in the end member slots have moved
//! and all of it is compared again. `FULGURITE_TEST_VANISHED` is the number of repetitions, by
//! default one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use fulgurite_tome::TomeSet;
use fulgurite_tome_core::TomeId;
use fulgurite_units::{Duration, ErrorKind, RandomStream, Seed};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::degraded_reads::groups;
use crate::shelf::{BLOCK, Shelf, metadata, root};

/// Clients that put, protect and delete concurrently.
const WRITERS: u64 = 6;
/// Objects that a writer keeps before it removes its oldest.
const OBJECTS_MAX: usize = 4;
/// Clock steps for which they work before a tome vanishes, and after that.
const STEPS: u64 = 150;

/// The last acknowledgment for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledged {
    /// None, or its state is unknown.
    Nothing,
    Local,
    Protected,
    Deleted,
}

type Objects = Arc<Mutex<BTreeMap<String, (Vec<u8>, Acknowledged)>>>;

/// The tome that vanishes during the rebuild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Second {
    Nobody,
    Source,
    Target,
}

struct Writer {
    objects: Objects,
    random: RandomStream,
    number: u64,
    objects_put: Vec<String>,
}

impl Writer {
    fn record(&self, name: &str, acknowledged: Acknowledged) {
        self.objects.lock().unwrap().get_mut(name).unwrap().1 = acknowledged;
    }

    async fn work(mut self, set: Arc<TomeSet>, round: u64, mut over: watch::Receiver<bool>) {
        for count in 0.. {
            if *over.borrow() {
                return;
            }
            let name = format!("{round} {} {count}", self.number);
            let blocks = usize::try_from(self.random.below(3)).unwrap() + 1;
            let mut bytes = vec![0; blocks * BLOCK - 9];
            self.random.fill(&mut bytes);
            let row = (bytes.clone(), Acknowledged::Nothing);
            self.objects.lock().unwrap().insert(name.clone(), row);
            match set.put(&name, bytes).await {
                Ok(_) => self.record(&name, Acknowledged::Local),
                Err(error) => {
                    // The parity of the segment that it is added to has vanished.
                    let kinds = [ErrorKind::Unavailable, ErrorKind::Corrupt];
                    assert!(kinds.contains(&error.kind()), "{name}: {error}");
                    tokio::task::yield_now().await;
                    continue;
                }
            }
            tokio::select! {
                protected = set.protected(&name) => if protected.is_ok() {
                    self.record(&name, Acknowledged::Protected);
                },
                _ = over.wait_for(|over| *over) => return,
            }
            self.objects_put.push(name);
            if self.objects_put.len() > OBJECTS_MAX {
                let oldest = self.objects_put.remove(0);
                if set.delete(&oldest).await.is_ok() {
                    self.record(&oldest, Acknowledged::Deleted);
                } else {
                    self.record(&oldest, Acknowledged::Nothing);
                }
            }
        }
    }
}

/// State of a run.
struct Run {
    shelf: Shelf,
    objects: Objects,
    seed: Seed,
    rounds: u64,
    lost: BTreeSet<TomeId>,
}

impl Run {
    /// Lets clients work on a set, with an action in the middle; then stops the set.
    async fn write(&mut self, set: TomeSet, middle: impl AsyncFnOnce(&Shelf, &TomeSet)) {
        let set = Arc::new(set);
        let (send, over) = watch::channel(false);
        self.rounds += 1;
        let mut writers = JoinSet::new();
        for number in 0..WRITERS {
            let random = self.seed.child(format!("{} {number}", self.rounds).as_bytes()).stream();
            let objects = Arc::clone(&self.objects);
            let writer = Writer { objects, random, number, objects_put: Vec::new() };
            writers.spawn(writer.work(Arc::clone(&set), self.rounds, over.clone()));
        }
        advance(&self.shelf, STEPS).await;
        middle(&self.shelf, &set).await;
        advance(&self.shelf, STEPS).await;
        send.send(true).unwrap();
        set.stop();
        writers.join_all().await;
    }

    /// Compares all that was acknowledged. Local objects of a lost tome may be lost: they read back
    /// as put, or fail.
    async fn compare(&self, set: &TomeSet, is_rebuilt: bool) -> usize {
        let objects = self.objects.lock().unwrap().clone();
        let mut protected = 0;
        for (name, (bytes, acknowledged)) in &objects {
            let of_lost = set.tome_of(name).is_ok_and(|tome| self.lost.contains(&tome));
            match (self.shelf.wait(set.get(name)).await, acknowledged) {
                (Ok(_), Acknowledged::Deleted) => panic!("{name} is back"),
                (Ok(read), _) => {
                    assert_eq!(read, *bytes, "{name}, {acknowledged:?}");
                    protected += usize::from(*acknowledged == Acknowledged::Protected);
                }
                (Err(error), Acknowledged::Nothing | Acknowledged::Deleted)
                    if error.kind() == ErrorKind::NotFound || of_lost => {}
                (Err(error), Acknowledged::Local) if of_lost => {
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
                }
                // It was lost with its tome, whose member slots have moved.
                (Err(error), Acknowledged::Local)
                    if is_rebuilt && error.kind() == ErrorKind::NotFound => {}
                (Err(error), acknowledged) => panic!("{name}, {acknowledged:?}: {error}"),
            }
        }
        protected
    }

    async fn run(&mut self, of_parity: bool, second: Second) {
        let set = self.shelf.init();
        let mut victim = None;
        let objects = Arc::clone(&self.objects);
        self.write(set, async |shelf, set| {
            victim = Some(busy(&objects, set, of_parity));
            vanish(shelf, victim.unwrap());
        })
        .await;
        let first = victim.unwrap();
        self.lost.insert(first);
        let set = self.shelf.open();
        assert!(self.compare(&set, false).await > 0, "something was protected");
        set.stop();
        drop(set);

        // Clients continue to write during the rebuild, and a second tome vanishes in the middle of
        // it.
        self.shelf.add();
        let set = self.shelf.init();
        set.rebuild(first).await.unwrap();
        let mut gone = None;
        self.write(set, async |shelf, set| {
            let moving = set.moves().under_way;
            let Some(planned) = moving.first().map(|moving| moving.planned) else { return };
            gone = match second {
                Second::Nobody => None,
                Second::Target => Some(planned.to.tome),
                Second::Source => {
                    let all = groups(set).await;
                    let group = all.into_iter().find(|group| group.group == planned.group);
                    group.unwrap().tomes.into_iter().find(|tome| *tome != first)
                }
            };
            gone.into_iter().for_each(|tome| vanish(shelf, tome));
        })
        .await;
        if let Some(gone) = gone {
            self.lost.insert(gone);
            let set = self.shelf.open();
            self.compare(&set, true).await;
            set.stop();
            drop(set);
            self.shelf.add();
        }
        let set = self.shelf.init();
        for tome in self.lost.difference(&set.moves().out) {
            set.rebuild(*tome).await.unwrap();
        }
        let status = self.shelf.moved(&set).await;
        assert_eq!(status.moves.out, self.lost);
        assert!(self.compare(&set, true).await > 0);
        for name in set.list() {
            self.shelf.wait(set.protected(&name)).await.unwrap();
        }
        self.shelf.settle(&set).await;
        for group in groups(&set).await {
            assert_eq!((&group.failure, group.findings.len()), (&None, 0), "{group:?}");
        }
        set.stop();
    }
}

/// Returns a tome that clients write to, or one with parity of it.
fn busy(objects: &Objects, set: &TomeSet, of_parity: bool) -> TomeId {
    let objects = objects.lock().unwrap();
    let there =
        objects.iter().filter(|(_, (_, acknowledged))| *acknowledged == Acknowledged::Protected);
    let names = there.map(|(name, _)| name).filter(|name| set.tome_of(name).is_ok());
    let group = |name: &String| Some((name.clone(), set.groups_of(name).ok()?.pop()?));
    let (name, group) = names.filter_map(group).next_back().expect("something is protected");
    if of_parity { group.slots()[4].tome } else { set.tome_of(&name).unwrap() }
}

/// Lets time pass while clients work.
async fn advance(shelf: &Shelf, steps: u64) {
    for _ in 0..steps {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        shelf.clock.advance(Duration::from_secs(2));
    }
}

/// Unplugs a tome: its files vanish from under their paths.
fn vanish(shelf: &Shelf, tome: TomeId) {
    for path in [root(&shelf.folder, tome), metadata(&shelf.folder, tome)] {
        let aside = path.with_extension("gone");
        std::fs::rename(&path, &aside).unwrap();
        std::fs::remove_dir_all(aside).unwrap();
    }
}

#[expect(clippy::disallowed_methods, reason = "its caller sets how often it runs")]
fn times() -> u64 {
    std::env::var("FULGURITE_TEST_VANISHED").map_or(1, |text| text.parse().unwrap())
}

async fn vanished(of_parity: bool, second: Second) {
    for seed in 1..=times() {
        let (shelf, objects, lost) = (Shelf::new(), Objects::default(), BTreeSet::new());
        let mut run = Run { shelf, objects, seed: Seed::new(seed), rounds: 0, lost };
        run.run(of_parity, second).await;
    }
}

#[tokio::test]
async fn protected_data_survives_loss_of_data_and_rebuild_source() {
    vanished(false, Second::Source).await;
}

#[tokio::test]
async fn protected_data_survives_loss_of_parity_and_target() {
    vanished(true, Second::Target).await;
}

#[tokio::test]
async fn protected_data_survives_loss_during_writes() {
    vanished(false, Second::Nobody).await;
}
