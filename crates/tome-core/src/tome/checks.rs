//! Consistency check of a group by a tome: it asks the others for their roots, and for more if
//! needed.
//!
//! One check at a time, all of it volatile. It needs no spin-up. Not here: how signatures are
//! compared ([`crate::consistency`]), and what is done about findings.

use fulgurite_units::{Instant, Outbox};

use super::{Answer, Command, RequestId, Tome};
use crate::consistency::{Descent, Nodes, Report};
use crate::limits::{CHECK_TIMEOUT, CHECK_TRIES_MAX, RESEND_INTERVAL};
use crate::membership_state::MembershipState;
use crate::message::Message;
use crate::{GroupId, Member, Result, TomeError, TomeId};

/// A check in progress.
#[derive(Clone, Debug)]
pub(super) struct Check {
    request: RequestId,
    group: GroupId,
    began: Instant,
    last_request: Instant,
    /// Number of the latest request: answers to earlier ones are ignored.
    round: u64,
    tries: u32,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    Reports(Vec<Option<Report>>),
    Nodes(Box<Descent>, Vec<Option<Nodes>>),
}

impl Tome {
    /// Starts a check of a group that this tome is in.
    pub(super) fn check_group(
        &mut self,
        request: RequestId,
        group: GroupId,
        out: &mut Outbox<Command>,
    ) -> Result<()> {
        let (_, region) = self.metadata.region_of(group).ok_or(TomeError::NoGroup { group })?;
        if matches!(region.membership_state(), MembershipState::Building(_) | MembershipState::Left)
        {
            return Err(TomeError::NoGroup { group });
        }
        if self.checking.is_some() {
            return Err(TomeError::Full { what: "checks at a time" });
        }
        let stage = Stage::Reports(vec![None; region.group().slots().len()]);
        let (began, round) = (self.now, self.rounds);
        let check = Check { request, group, began, last_request: began, round, tries: 1, stage };
        self.checking = Some(check);
        self.request_answers(out);
        Ok(())
    }

    /// Asks every member that has not answered; this tome answers itself.
    fn request_answers(&mut self, out: &mut Outbox<Command>) {
        self.rounds += 1;
        let Some(check) = self.checking.as_mut() else { return };
        (check.round, check.last_request) = (self.rounds, self.now);
        let (group, round, own) = (check.group, check.round, self.metadata.id());
        let Some((_, region)) = self.metadata.region_of(group) else { return };
        let missing: Vec<bool> = match &check.stage {
            Stage::Reports(reports) => reports.iter().map(Option::is_none).collect(),
            Stage::Nodes(_, nodes) => nodes.iter().map(Option::is_none).collect(),
        };
        let wanted = match &check.stage {
            Stage::Reports(_) => None,
            Stage::Nodes(descent, _) => {
                descent.wants().map(|(level, indexes)| (level, indexes.to_vec()))
            }
        };
        let message = match wanted {
            None => Message::ReportWanted { group, round },
            Some((level, indexes)) => Message::NodesWanted { group, round, level, indexes },
        };
        let slots = region.group().slots().iter().zip(missing);
        let to = slots.filter(|(_, is_missing)| *is_missing).map(|(slot, _)| slot.tome);
        let (mine, others): (Vec<TomeId>, Vec<TomeId>) = to.partition(|to| *to == own);
        for to in others {
            out.push(Command::Send { to, message: message.clone() });
        }
        if !mine.is_empty()
            && let Some(answer) = self.check_reply(&message)
        {
            self.handle_check_reply(own, answer, out);
        }
    }

    /// Returns this tome's answer to a message of a check.
    pub(super) fn check_reply(&self, message: &Message) -> Option<Message> {
        let (_, region) = self.metadata.region_of(message.group())?;
        let (group, member) = (region.group().id(), region.member());
        match message {
            Message::ReportWanted { round, .. } => {
                Some(Message::Report { group, round: *round, member, report: region.report() })
            }
            Message::NodesWanted { round, level, indexes, .. } => {
                let nodes = super::deltas::nodes(region, *level, indexes)?;
                Some(Message::Nodes { group, round: *round, member, nodes })
            }
            Message::Delta { .. }
            | Message::Query { .. }
            | Message::Status { .. }
            | Message::Report { .. }
            | Message::Nodes { .. }
            | Message::HoldingsWanted { .. }
            | Message::Holdings { .. }
            | Message::Freeze(_)
            | Message::Ready { .. }
            | Message::Share { .. }
            | Message::Thaw(_)
            | Message::Moved(_)
            | Message::Learned { .. } => None,
        }
    }

    /// Handles an answer of a member.
    pub(super) fn handle_check_reply(
        &mut self,
        from: TomeId,
        message: Message,
        out: &mut Outbox<Command>,
    ) {
        let Some(check) = self.checking.as_mut() else { return };
        let slots = self.metadata.region_of(check.group).map(|(_, region)| region.group().slots());
        let is_slot = |member: Member| {
            let slot = slots.and_then(|slots| slots.get(member.as_usize()));
            slot.is_some_and(|slot| slot.tome == from)
        };
        match (message, &mut check.stage) {
            (Message::Report { round, member, report, .. }, Stage::Reports(reports))
                if round == check.round && is_slot(member) =>
            {
                reports[member.as_usize()] = Some(report);
            }
            (Message::Nodes { round, member, nodes, .. }, Stage::Nodes(_, answers))
                if round == check.round && is_slot(member) =>
            {
                answers[member.as_usize()] = Some(nodes);
            }
            _ => return,
        }
        if let Err(error) = self.compare(out) {
            self.failed(error, out);
        }
    }

    /// Continues when all have answered.
    fn compare(&mut self, out: &mut Outbox<Command>) -> Result<()> {
        let Some(check) = self.checking.as_mut() else { return Ok(()) };
        let Some((_, region)) = self.metadata.region_of(check.group) else { return Ok(()) };
        let (split, layout) = (region.group().split(), *self.metadata.layout());
        let descent = match &mut check.stage {
            Stage::Reports(reports) => {
                let all: Option<Vec<Report>> = reports.iter().cloned().collect();
                let Some(all) = all else { return Ok(()) };
                Descent::new(split, layout, &all)?
            }
            Stage::Nodes(descent, answers) => {
                let all: Option<Vec<Nodes>> = answers.iter().cloned().collect();
                let Some(all) = all else { return Ok(()) };
                descent.take(&all)?;
                Descent::clone(descent)
            }
        };
        if descent.wants().is_none() {
            let (findings, exchanged) = (descent.findings().to_vec(), descent.exchanged());
            let answer = Answer::Checked { findings, exchanged };
            out.push(Command::Answer { request: check.request, answer });
            self.checking = None;
            return Ok(());
        }
        check.stage = Stage::Nodes(Box::new(descent), vec![None; split.total() as usize]);
        self.request_answers(out);
        Ok(())
    }

    /// Restarts the check when a region changed meanwhile, a few times at most.
    fn failed(&mut self, error: TomeError, out: &mut Outbox<Command>) {
        let Some(check) = self.checking.as_mut() else { return };
        check.tries += 1;
        if error != TomeError::Moved || check.tries > CHECK_TRIES_MAX {
            let answer = Answer::Refused(error);
            out.push(Command::Answer { request: check.request, answer });
            self.checking = None;
            return;
        }
        let members = match &check.stage {
            Stage::Reports(reports) => reports.len(),
            Stage::Nodes(_, answers) => answers.len(),
        };
        check.stage = Stage::Reports(vec![None; members]);
        self.request_answers(out);
    }

    /// Asks silent members again, and gives up in the end.
    pub(super) fn continue_check(&mut self, out: &mut Outbox<Command>) {
        let Some(check) = &self.checking else { return };
        if self.now.since(check.began) >= CHECK_TIMEOUT {
            let answer = Answer::Refused(TomeError::Silent { group: check.group });
            out.push(Command::Answer { request: check.request, answer });
            self.checking = None;
        } else if self.now.since(check.last_request) >= RESEND_INTERVAL {
            // Reports received are kept: each states by itself what went into its root.
            self.request_answers(out);
        }
    }

    pub(super) fn check_deadline(&self) -> Option<Instant> {
        self.checking.as_ref().map(|check| check.last_request + RESEND_INTERVAL)
    }
}
