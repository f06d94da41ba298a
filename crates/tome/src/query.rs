//! Queries of a set to a tome in another process, besides those about objects, and the replies.
//!
//! ```text
//! TomeRequest --> TomeQuery ~~~~~~> StandaloneTome::answer --> TomeRequest
//!     '-> Requester       <~~~~~~ TomeReply <--------------'
//! ```
//!
//! Not here: the transport, and objects, whose bytes are sent separately.

use std::collections::BTreeSet;

use fulgurite_disks::{Cause, PlaceId, SpinUp};
use fulgurite_tome_core::group::{Group, Move};
use fulgurite_tome_core::message::Held;
use fulgurite_tome_core::{GroupId, Member, Offset, RegionIndex, TomeId};
use fulgurite_units::UnixTime;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::driver::{Checked, Holdings, MembershipStatus, Reply, TomeRequest};
use crate::piece_store::ObjectLocation;
use crate::{Result, TomesError};

/// A query as it is sent to a tome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as the `TomeRequest` of the same name")]
pub enum TomeQuery {
    Hold { group: GroupId, offsets: Vec<Offset>, may_spin_up: bool },
    Scrub,
    Check { group: GroupId },
    SpinUps,
    Rebuild { planned: Move, group: Group },
    MemberSlot { region: RegionIndex, group: GroupId },
    Adopt { region: RegionIndex, objects: Vec<(String, ObjectLocation)> },
    DataBlocks,
    Absent { tomes: BTreeSet<TomeId> },
}

/// The reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as the answer to the `TomeRequest`")]
pub enum TomeReply {
    Held(Member, Vec<Held>),
    Done,
    Checked(Checked),
    SpinUps(Vec<(UnixTime, Vec<PlaceId>, Cause)>),
    MemberSlot(MembershipStatus),
    Names(Vec<String>),
    Room { data_blocks: u64, regions: usize },
}

/// The recipient of a reply.
#[derive(Debug)]
pub struct Requester(PendingReply);

#[derive(Debug)]
enum PendingReply {
    Held(Reply<Holdings>),
    Done(Reply<()>),
    Checked(Reply<Checked>),
    SpinUps(oneshot::Sender<Vec<SpinUp>>),
    MemberSlot(Reply<MembershipStatus>),
    Names(Reply<Vec<String>>),
    ObjectPage(Reply<crate::ObjectPage>),
}

impl Requester {
    /// Passes the result to the recipient.
    pub fn send(self, result: Result<TomeReply>) {
        let other =
            || TomesError::Invalid { what: "the answer does not match the request".to_owned() };
        // The requester may be gone.
        match (self.0, result) {
            (PendingReply::Held(reply), Ok(TomeReply::Held(member, held))) => {
                drop(reply.send(Ok((member, held))));
            }
            (PendingReply::Done(reply), Ok(TomeReply::Done)) => drop(reply.send(Ok(()))),
            (PendingReply::Checked(reply), Ok(TomeReply::Checked(checked))) => {
                drop(reply.send(Ok(checked)))
            }
            (PendingReply::SpinUps(reply), Ok(TomeReply::SpinUps(spin_ups))) => {
                let spin_up = |(at, places, cause)| SpinUp { at, group: None, places, cause };
                drop(reply.send(spin_ups.into_iter().map(spin_up).collect()));
            }
            (PendingReply::MemberSlot(reply), Ok(TomeReply::MemberSlot(status))) => {
                drop(reply.send(Ok(status)))
            }
            (PendingReply::Names(reply), Ok(TomeReply::Names(names))) => {
                drop(reply.send(Ok(names)))
            }
            (PendingReply::ObjectPage(reply), Ok(TomeReply::Room { data_blocks, regions })) => {
                drop(reply.send(Ok(crate::ObjectPage {
                    data_blocks,
                    regions,
                    objects: Vec::new(),
                })));
            }
            (pending, result) => pending.refuse(result.err().unwrap_or_else(other)),
        }
    }
}

impl PendingReply {
    fn refuse(self, error: TomesError) {
        match self {
            Self::Held(reply) => drop(reply.send(Err(error))),
            Self::Done(reply) => drop(reply.send(Err(error))),
            Self::Checked(reply) => drop(reply.send(Err(error))),
            Self::SpinUps(reply) => drop(reply),
            Self::MemberSlot(reply) => drop(reply.send(Err(error))),
            Self::Names(reply) => drop(reply.send(Err(error))),
            Self::ObjectPage(reply) => drop(reply.send(Err(error))),
        }
    }
}

impl TomeRequest {
    /// Splits a request into a query and its recipient. Requests about objects are sent separately.
    ///
    /// # Errors
    /// The request itself, when it is not sent as a query.
    pub fn into_query(self) -> Result<(TomeQuery, Requester), Self> {
        let (query, pending) = match self {
            Self::Hold { group, offsets, may_spin_up, reply } => {
                (TomeQuery::Hold { group, offsets, may_spin_up }, PendingReply::Held(reply))
            }
            Self::Scrub { reply } => (TomeQuery::Scrub, PendingReply::Done(reply)),
            Self::Check { group, reply } => {
                (TomeQuery::Check { group }, PendingReply::Checked(reply))
            }
            Self::SpinUps(reply) => (TomeQuery::SpinUps, PendingReply::SpinUps(reply)),
            Self::Rebuild { planned, group, reply } => {
                (TomeQuery::Rebuild { planned, group }, PendingReply::Done(reply))
            }
            Self::Absent { tomes, reply } => {
                (TomeQuery::Absent { tomes }, PendingReply::Done(reply))
            }
            Self::MemberSlot { region, group, reply } => {
                (TomeQuery::MemberSlot { region, group }, PendingReply::MemberSlot(reply))
            }
            Self::Adopt { region, objects, reply } => {
                (TomeQuery::Adopt { region, objects }, PendingReply::Names(reply))
            }
            Self::ObjectPage { max: 0, reply, .. } => {
                (TomeQuery::DataBlocks, PendingReply::ObjectPage(reply))
            }
            other @ (Self::Put { .. }
            | Self::Get { .. }
            | Self::Delete { .. }
            | Self::Protected { .. }
            | Self::ObjectPage { .. }
            | Self::Status(_)) => return Err(other),
        };
        Ok((query, Requester(pending)))
    }
}
