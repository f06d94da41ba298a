//! Disk worker: it runs each stage of a spin-up or spin-down on a thread of its own, since a real
//! disk answers when it is ready, and its tome must answer others meanwhile.
//!
//! Not here: the order of the stages.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use fulgurite_disks::{Backend, PlaceId};
use fulgurite_units::Duration;

use super::DriverMessage;

/// A step of spinning a disk up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    SpinUp,
    Mount,
    Unmount,
    SpinDown,
}

/// The end of a stage.
#[derive(Debug)]
pub(crate) struct StageEnd {
    pub(super) stage: Stage,
    /// Remaining wait, for a simulated disk.
    pub(super) after: fulgurite_disks::Result<Duration>,
}

/// Starts a stage; its end arrives as a message.
///
/// # Errors
/// When no thread can be started.
pub(super) fn begin(
    stage: Stage,
    place: PlaceId,
    backend: &Arc<dyn Backend>,
    inbox: &SyncSender<DriverMessage>,
) -> std::io::Result<()> {
    let (backend, inbox) = (Arc::clone(backend), inbox.clone());
    std::thread::Builder::new().name(format!("disk-{place}")).spawn(move || {
        let after = match stage {
            Stage::SpinUp => backend.spin_up(place),
            Stage::Mount => backend.mount(place, 0),
            Stage::Unmount => backend.unmount(place),
            Stage::SpinDown => backend.spin_down(place),
        };
        // The tome may be gone.
        let _ = inbox.send(DriverMessage::Stage(StageEnd { stage, after }));
    })?;
    Ok(())
}
