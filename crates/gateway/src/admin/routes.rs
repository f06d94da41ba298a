//! The table of calls. `docs/admin-openapi.json` describes the same ones; a test compares them.

use fulgurite_tier::Operation;
use http::Method;

/// A call of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Status,
    Locate,
    Margins,
    Orphans,
    DiscardOrphan,
    Seal,
    Verify,
    Move,
    Events,
    Tiers,
}

/// A call of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TierCall {
    Snapshot,
    Ledger,
    Events,
    Run(Operation),
}

/// Events of the library.
const EVENTS: &str = "/-/events";
/// The tiers; the calls of each are below its name.
const TIERS: &str = "/-/admin/tiers";

/// Every call but those of a tier, with its method and path.
const ROUTES: [(Method, &str, Call); 10] = [
    (Method::GET, "/-/admin/status", Call::Status),
    (Method::GET, "/-/admin/locate", Call::Locate),
    (Method::GET, "/-/admin/margins", Call::Margins),
    (Method::GET, "/-/admin/orphans", Call::Orphans),
    (Method::POST, "/-/admin/discard-orphan", Call::DiscardOrphan),
    (Method::POST, "/-/admin/seal", Call::Seal),
    (Method::POST, "/-/admin/verify", Call::Verify),
    (Method::POST, "/-/admin/move", Call::Move),
    (Method::GET, EVENTS, Call::Events),
    (Method::GET, TIERS, Call::Tiers),
];

impl Call {
    /// Returns the call for a method and a path, if there is one.
    pub(super) fn for_request(method: &Method, path: &str) -> Option<Self> {
        let matches_route = |(m, p, _): &&(Method, &str, Self)| m == method && *p == path;
        ROUTES.iter().find(matches_route).map(|&(_, _, call)| call)
    }
}

impl TierCall {
    /// Returns the name of the tier and the call for a method and a path, if there is one.
    pub(super) fn for_request<'a>(method: &Method, path: &'a str) -> Option<(&'a str, Self)> {
        let below = path.strip_prefix(TIERS)?.strip_prefix('/')?;
        let (name, call) = below.split_once('/').unwrap_or((below, ""));
        let call = match (method, call) {
            (&Method::GET, "") if below == name => Self::Snapshot,
            (&Method::GET, "ledger") => Self::Ledger,
            (&Method::GET, "events") => Self::Events,
            (&Method::POST, operation) => Self::Run(operation.parse().ok()?),
            _ => return None,
        };
        Some((name, call))
    }
}

/// Whether a path is that of a stream of events.
pub(crate) fn is_stream_of_events(path: &str) -> bool {
    path == EVENTS
        || TierCall::for_request(&Method::GET, path)
            .is_some_and(|(_, call)| call == TierCall::Events)
}

#[cfg(test)]
mod tests;
