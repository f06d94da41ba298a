//! A simulated site: a table of rows and a store of fragments.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_geo_core::{Epoch, Fragment, Request, Row, SiteState, Verdict, WriteId, step};

use super::run::Fault;

#[derive(Debug)]
pub(super) struct Site {
    pub(super) state: SiteState,
    /// Whether it answers.
    pub(super) up: bool,
    pub(super) rows: BTreeMap<u64, Row>,
    pub(super) fragments: BTreeSet<(WriteId, u8)>,
    pub(super) fenced: BTreeSet<(WriteId, u8)>,
}

impl Site {
    pub(super) fn new() -> Self {
        let state = SiteState { epoch: Epoch(1), rebuilding: false };
        Self {
            state,
            up: true,
            rows: BTreeMap::new(),
            fragments: BTreeSet::new(),
            fenced: BTreeSet::new(),
        }
    }

    /// Applies a request, going through the encoded bytes of the row as a store would.
    pub(super) fn apply(
        &mut self,
        key: u64,
        request: &Request,
        fault: Option<Fault>,
    ) -> (Verdict, Row) {
        let forgets = fault == Some(Fault::ForgottenVotes);
        let state = SiteState { rebuilding: self.state.rebuilding && !forgets, ..self.state };
        let row = self.rows.get(&key);
        let row = row.map(|row| Row::decode(&row.encode().unwrap()).unwrap());
        let stepped = step(row.as_ref(), request, state);
        if stepped.changed {
            self.rows.insert(key, stepped.row.clone());
        }
        (stepped.verdict, stepped.row)
    }

    pub(super) fn has(&self, fragment: Fragment) -> bool {
        self.fragments.contains(&(fragment.write, fragment.index))
    }

    /// Loses everything; the site is being rebuilt.
    pub(super) fn wipe(&mut self) {
        self.rows.clear();
        self.fragments.clear();
        self.fenced.clear();
        self.state.rebuilding = true;
    }
}
