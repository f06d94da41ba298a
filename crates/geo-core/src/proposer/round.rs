//! One round: a request to all sites, and their answers.

use std::collections::BTreeMap;

use fulgurite_units::{Instant, Outbox};

use super::{Ask, Proposer};
use crate::{Ballot, Command, Request, Row, SiteIndex, Verdict, Version};

/// The current round.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Number of its request.
    pub(super) call: u32,
    /// When it stops waiting for answers.
    pub(super) ends: Option<Instant>,
    /// The last ballot of its own, and the version.
    pub(super) own: Option<(Version, Ballot)>,
    /// Whether the first read of the nearest row can be skipped.
    pub(super) skip_first_read: bool,
    answers: BTreeMap<SiteIndex, Option<(Verdict, Row)>>,
}

impl Round {
    /// Creates the state before the first request.
    pub(super) fn new(skip_first_read: bool) -> Self {
        Self { skip_first_read, ..Self::default() }
    }

    /// Number of sites that answered, or will not.
    pub(super) fn answers(&self) -> usize {
        self.answers.len()
    }

    /// Number of sites that executed the request.
    pub(super) fn oks(&self) -> usize {
        self.promised().count()
    }

    /// Returns the rows of sites that executed the request, as they were right after.
    pub(super) fn promised(&self) -> impl Iterator<Item = &Row> {
        let answers = self.answers.values().flatten();
        answers.filter(|(verdict, _)| *verdict == Verdict::Ok).map(|(_, row)| row)
    }

    /// Returns the last own ballot for a version.
    pub(super) fn highest(&self, version: Version) -> Ballot {
        let own = self.own.filter(|(own, _)| *own == version);
        own.map_or(Ballot::FAST, |(_, ballot)| ballot)
    }

    /// Whether the round has timed out.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.ends.is_some_and(|ends| now >= ends)
    }
}

impl Proposer {
    /// Opens a round; answers to earlier requests no longer count.
    pub(super) fn open_round(&mut self, now: Instant) {
        self.round.call += 1;
        self.round.ends = Some(now + self.terms.round);
        self.round.answers.clear();
    }

    pub(super) fn ask(&self, site: SiteIndex, command: Command) -> Ask {
        let request = Request { epoch: self.terms.epoch, known: self.known.newest(), command };
        Ask { site, call: self.round.call, request }
    }

    pub(super) fn ask_all(&mut self, command: &Command, now: Instant, out: &mut Outbox<Ask>) {
        self.open_round(now);
        for site in &self.terms.voters {
            out.push(self.ask(*site, command.clone()));
        }
    }

    /// Handles a site's answer, whichever request it belongs to.
    pub(super) fn handle_answer(
        &mut self,
        site: SiteIndex,
        call: u32,
        answer: Option<(Verdict, Row)>,
    ) {
        if let Some((_, row)) = &answer {
            self.known.merge(&row.known);
            if row.silent {
                self.silent.insert(site);
            } else {
                self.silent.remove(&site);
                self.rows.insert(site, row.clone());
            }
        }
        let votes = self.terms.voters.contains(&site);
        if call == self.round.call && votes {
            self.round.answers.entry(site).or_insert(answer);
        }
    }
}
