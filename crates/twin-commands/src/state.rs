//! Prints the state of a library at one moment.

use fulgurite_glass_core::control::{Action, DriveState, Place, ShuttleState, Snapshot};
use fulgurite_terminal::output::Output;
use fulgurite_units::PlatterId;

/// Maximum number of platters listed one by one; the others are only counted.
const PLATTERS_SHOWN_MAX: usize = 40;

pub(super) fn print(snapshot: &Snapshot, out: &Output) -> anyhow::Result<()> {
    out.text(format!("unfinished requests: {}", snapshot.requests))?;
    snapshot.shuttles.iter().try_for_each(|state| out.text(shuttle(state)))?;
    snapshot.drives.iter().try_for_each(|state| out.text(drive(state)))?;
    for state in snapshot.platters.iter().take(PLATTERS_SHOWN_MAX) {
        let claim = state.claimed_by.map(|shuttle| format!(", claimed by shuttle {shuttle}"));
        let (platter, place) = (short(state.platter), place(state.place));
        let claim = claim.unwrap_or_default();
        out.text(format!("platter {platter}  {place}, {} reads{claim}", state.reads))?;
    }
    let more = snapshot.platters.len().saturating_sub(PLATTERS_SHOWN_MAX);
    if more > 0 {
        out.text(format!("and {more} more platters; --json lists all"))?;
    }
    out.text("every other platter is in its slot")
}

fn shuttle(state: &ShuttleState) -> String {
    let meters = fulgurite_glass_core::control::RailPosition::default().meters_to(state.rail);
    let cargo = state.cargo.map(|platter| format!(", carries {}", short(platter)));
    let doing = match state.doing {
        _ if state.broken => "broken".to_owned(),
        Some(action) => describe(&action),
        None if state.on_trip => "waits for right of way".to_owned(),
        None => "idle".to_owned(),
    };
    let (number, panel, shelf) = (state.shuttle, state.panel, state.shelf);
    let cargo = cargo.unwrap_or_default();
    format!("shuttle {number}  panel {panel}, shelf {shelf}, {meters:.3} m: {doing}{cargo}")
}

fn drive(state: &DriveState) -> String {
    let slots = state.slots.map(|slot| match (slot.platter, slot.expects) {
        (Some(platter), _) if slot.mounted => format!("{} mounted", short(platter)),
        (Some(platter), _) => short(platter),
        (None, Some(shuttle)) => format!("empty, shuttle {shuttle} is coming"),
        (None, None) => "empty".to_owned(),
    });
    let doing = match state.doing {
        _ if state.broken => "broken".to_owned(),
        Some(action) => describe(&action),
        None => "idle".to_owned(),
    };
    format!("drive {}  [{}] [{}]: {doing}", state.drive, slots[0], slots[1])
}

fn place(place: Place) -> String {
    match place {
        Place::EjectBay(panel) => format!("in the eject bay of panel {panel}"),
        Place::Storage(slot) => format!("in slot {slot}"),
        Place::Drive(drive, slot) => format!("in drive {drive} ({slot:?})"),
        Place::Shuttle(shuttle) => format!("in shuttle {shuttle}"),
    }
}

/// Returns the first digits of a platter's ID.
fn short(platter: PlatterId) -> String {
    platter.to_string().chars().take(8).collect()
}

pub(super) fn describe(action: &Action) -> String {
    match action {
        Action::Move { from, to, .. } => format!("moves {:.3} m", from.meters_to(*to)),
        Action::Crab { from, to, .. } => format!("crabs from shelf {from} to {to}"),
        Action::Pick { platter, from, .. } => format!("picks {} from {from:?}", short(*platter)),
        Action::Place { platter, to, .. } => format!("places {} into {to:?}", short(*platter)),
        Action::Charge { .. } => "charges".to_owned(),
        Action::Mount { platter, .. } => format!("mounts {}", short(*platter)),
        Action::Unmount { platter, .. } => format!("unmounts {}", short(*platter)),
        Action::Switch { to, .. } => format!("switches to the slot {to:?}"),
        Action::Seek { platter, track, .. } => {
            format!("seeks track {track} of {}", short(*platter))
        }
        Action::Read { request, tracks, .. } => {
            format!("reads {} tracks for request {request}", tracks.track_count)
        }
        Action::VerifyPass { platter, tracks, .. } => {
            format!("verifies {} tracks of {}", tracks.track_count, short(*platter))
        }
    }
}
