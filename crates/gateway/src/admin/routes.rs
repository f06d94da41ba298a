//! Which calls there are. `docs/admin-openapi.json` describes the same ones, and is tested to.

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
}

/// Where the library is watched.
pub(crate) const EVENTS: &str = "/-/events";

/// Every call, with the method and the path that mean it.
const ROUTES: [(Method, &str, Call); 9] = [
    (Method::GET, "/-/admin/status", Call::Status),
    (Method::GET, "/-/admin/locate", Call::Locate),
    (Method::GET, "/-/admin/margins", Call::Margins),
    (Method::GET, "/-/admin/orphans", Call::Orphans),
    (Method::POST, "/-/admin/discard-orphan", Call::DiscardOrphan),
    (Method::POST, "/-/admin/seal", Call::Seal),
    (Method::POST, "/-/admin/verify", Call::Verify),
    (Method::POST, "/-/admin/move", Call::Move),
    (Method::GET, EVENTS, Call::Events),
];

impl Call {
    /// The call that a method and a path mean, if they mean one.
    pub(super) fn of(method: &Method, path: &str) -> Option<Self> {
        let meant = |(m, p, _): &&(Method, &str, Self)| m == method && *p == path;
        ROUTES.iter().find(meant).map(|&(_, _, call)| call)
    }
}

#[cfg(test)]
mod tests;
