//! The table of calls. `docs/admin-openapi.json` describes the same ones; a test compares them.

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
    Rack(RackCall),
    Tomes(TomesCall),
    Geo,
    GeoEvents,
}

/// A call of the set of tomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TomesCall {
    Status,
    Ledger,
    Verify,
    Scrub,
    Rebuild,
    Retire,
    Inventory,
    Recover,
    Events,
}

/// A call of the rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RackCall {
    Status,
    Ledger,
    Verify,
    Rebuild,
    Replace,
    Recover,
    Events,
}

/// Events of the library.
pub(crate) const EVENTS: &str = "/-/events";
/// Events of the rack.
pub(crate) const RACK_EVENTS: &str = "/-/rack-events";
/// Events of the set of tomes.
pub(crate) const TOMES_EVENTS: &str = "/-/tomes-events";
/// Events of a namespace over several sites.
pub(crate) const GEO_EVENTS: &str = "/-/geo-events";

/// Every call, with its method and path.
const ROUTES: [(Method, &str, Call); 27] = [
    (Method::GET, "/-/admin/status", Call::Status),
    (Method::GET, "/-/admin/locate", Call::Locate),
    (Method::GET, "/-/admin/margins", Call::Margins),
    (Method::GET, "/-/admin/orphans", Call::Orphans),
    (Method::POST, "/-/admin/discard-orphan", Call::DiscardOrphan),
    (Method::POST, "/-/admin/seal", Call::Seal),
    (Method::POST, "/-/admin/verify", Call::Verify),
    (Method::POST, "/-/admin/move", Call::Move),
    (Method::GET, EVENTS, Call::Events),
    (Method::GET, RACK_EVENTS, Call::Rack(RackCall::Events)),
    (Method::GET, TOMES_EVENTS, Call::Tomes(TomesCall::Events)),
    (Method::GET, "/-/admin/rack", Call::Rack(RackCall::Status)),
    (Method::GET, "/-/admin/rack-ledger", Call::Rack(RackCall::Ledger)),
    (Method::POST, "/-/admin/rack-verify", Call::Rack(RackCall::Verify)),
    (Method::POST, "/-/admin/rack-rebuild", Call::Rack(RackCall::Rebuild)),
    (Method::POST, "/-/admin/rack-replace", Call::Rack(RackCall::Replace)),
    (Method::POST, "/-/admin/rack-recover", Call::Rack(RackCall::Recover)),
    (Method::GET, "/-/admin/tomes", Call::Tomes(TomesCall::Status)),
    (Method::GET, "/-/admin/tomes-ledger", Call::Tomes(TomesCall::Ledger)),
    (Method::POST, "/-/admin/tomes-verify", Call::Tomes(TomesCall::Verify)),
    (Method::POST, "/-/admin/tomes-scrub", Call::Tomes(TomesCall::Scrub)),
    (Method::POST, "/-/admin/tomes-rebuild", Call::Tomes(TomesCall::Rebuild)),
    (Method::POST, "/-/admin/tomes-retire", Call::Tomes(TomesCall::Retire)),
    (Method::POST, "/-/admin/tomes-inventory", Call::Tomes(TomesCall::Inventory)),
    (Method::POST, "/-/admin/tomes-recover", Call::Tomes(TomesCall::Recover)),
    (Method::GET, "/-/admin/geo", Call::Geo),
    (Method::GET, GEO_EVENTS, Call::GeoEvents),
];

impl Call {
    /// Returns the call for a method and a path, if there is one.
    pub(super) fn for_request(method: &Method, path: &str) -> Option<Self> {
        let matches_route = |(m, p, _): &&(Method, &str, Self)| m == method && *p == path;
        ROUTES.iter().find(matches_route).map(|&(_, _, call)| call)
    }
}

#[cfg(test)]
mod tests;
