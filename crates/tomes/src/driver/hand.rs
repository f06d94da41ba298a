//! What turns a tome's disk: each stage on a thread of its own, since a real disk answers when it
//! is ready, and its tome goes on answering others meanwhile.
//!
//! Not here: which stage comes when.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use fulgurite_disks::{Backend, PlaceId};
use fulgurite_units::Duration;

use super::Letter;

/// A step of a disk on its way up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    SpinUp,
    Mount,
    Unmount,
    SpinDown,
}

/// A stage is over.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(super) stage: Stage,
    /// What is still to be waited, of a simulated disk.
    pub(super) after: fulgurite_disks::Result<Duration>,
}

/// Begins a stage; its end is a letter.
///
/// # Errors
/// When there can be no thread.
pub(super) fn begin(
    stage: Stage,
    place: PlaceId,
    backend: &Arc<dyn Backend>,
    inbox: &SyncSender<Letter>,
) -> std::io::Result<()> {
    let (backend, inbox) = (Arc::clone(backend), inbox.clone());
    std::thread::Builder::new().name(format!("disk-{place}")).spawn(move || {
        let after = match stage {
            Stage::SpinUp => backend.spin_up(place),
            Stage::Mount => backend.mount(place, 0),
            Stage::Unmount => backend.unmount(place),
            Stage::SpinDown => backend.spin_down(place),
        };
        // Its tome may be gone.
        let _ = inbox.send(Letter::Stage(Ended { stage, after }));
    })?;
    Ok(())
}
