//! Queries of a set to a tome in another process, besides those about objects, and the replies.
//!
//! ```text
//! Ask --> Question ~~~~~~> LoneTome::answer --> Ask of its driver
//!     '-> Asker    <~~~~~~ Said <--------------'
//! ```
//!
//! Not here: the transport, and objects, whose bytes are sent separately.

use std::collections::BTreeSet;

use fulgurite_disks::{Cause, PlaceId, Wake};
use fulgurite_tome::group::{Group, Move};
use fulgurite_tome::message::Held;
use fulgurite_tome::{GroupId, Member, Offset, RegionIndex, TomeId};
use fulgurite_units::UnixTime;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::driver::{Ask, Checked, Holdings, Reply, Seated};
use crate::piece_store::Placed;
use crate::{Result, TomesError};

/// A query as it is sent to a tome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as the `Ask` of the same name")]
pub enum Question {
    Hold { group: GroupId, offsets: Vec<Offset>, may_wake: bool },
    Scrub,
    Check { group: GroupId },
    Wakes,
    Rebuild { planned: Move, group: Group },
    Seat { region: RegionIndex, group: GroupId },
    Adopt { region: RegionIndex, objects: Vec<(String, Placed)> },
    DataBlocks,
    Absent { tomes: BTreeSet<TomeId> },
}

/// The reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as what the `Ask` is answered with")]
pub enum Said {
    Held(Member, Vec<Held>),
    Done,
    Checked(Checked),
    Wakes(Vec<(UnixTime, Vec<PlaceId>, Cause)>),
    Seat(Seated),
    Names(Vec<String>),
    Room { data_blocks: u64, regions: usize },
}

/// The recipient of a reply.
#[derive(Debug)]
pub struct Asker(Waits);

#[derive(Debug)]
enum Waits {
    Held(Reply<Holdings>),
    Done(Reply<()>),
    Checked(Reply<Checked>),
    Wakes(oneshot::Sender<Vec<Wake>>),
    Seat(Reply<Seated>),
    Names(Reply<Vec<String>>),
    Look(Reply<crate::Look>),
}

impl Asker {
    /// Passes the result to the recipient.
    pub fn tell(self, said: Result<Said>) {
        let other = || TomesError::Invalid { what: "another answer than was asked for".to_owned() };
        // The requester may be gone.
        match (self.0, said) {
            (Waits::Held(reply), Ok(Said::Held(member, held))) => {
                drop(reply.send(Ok((member, held))));
            }
            (Waits::Done(reply), Ok(Said::Done)) => drop(reply.send(Ok(()))),
            (Waits::Checked(reply), Ok(Said::Checked(checked))) => drop(reply.send(Ok(checked))),
            (Waits::Wakes(reply), Ok(Said::Wakes(wakes))) => {
                let wake = |(at, places, cause)| Wake { at, group: None, places, cause };
                drop(reply.send(wakes.into_iter().map(wake).collect()));
            }
            (Waits::Seat(reply), Ok(Said::Seat(seated))) => drop(reply.send(Ok(seated))),
            (Waits::Names(reply), Ok(Said::Names(names))) => drop(reply.send(Ok(names))),
            (Waits::Look(reply), Ok(Said::Room { data_blocks, regions })) => {
                drop(reply.send(Ok(crate::Look { data_blocks, regions, objects: Vec::new() })));
            }
            (waits, said) => waits.refuse(said.err().unwrap_or_else(other)),
        }
    }
}

impl Waits {
    fn refuse(self, error: TomesError) {
        match self {
            Self::Held(reply) => drop(reply.send(Err(error))),
            Self::Done(reply) => drop(reply.send(Err(error))),
            Self::Checked(reply) => drop(reply.send(Err(error))),
            Self::Wakes(reply) => drop(reply),
            Self::Seat(reply) => drop(reply.send(Err(error))),
            Self::Names(reply) => drop(reply.send(Err(error))),
            Self::Look(reply) => drop(reply.send(Err(error))),
        }
    }
}

impl Ask {
    /// Splits a request into a query and its recipient. Requests about objects are sent separately.
    ///
    /// # Errors
    /// The request itself, when it is not sent as a query.
    pub fn into_question(self) -> Result<(Question, Asker), Self> {
        let (question, waits) = match self {
            Self::Hold { group, offsets, may_wake, reply } => {
                (Question::Hold { group, offsets, may_wake }, Waits::Held(reply))
            }
            Self::Scrub { reply } => (Question::Scrub, Waits::Done(reply)),
            Self::Check { group, reply } => (Question::Check { group }, Waits::Checked(reply)),
            Self::Wakes(reply) => (Question::Wakes, Waits::Wakes(reply)),
            Self::Rebuild { planned, group, reply } => {
                (Question::Rebuild { planned, group }, Waits::Done(reply))
            }
            Self::Absent { tomes, reply } => (Question::Absent { tomes }, Waits::Done(reply)),
            Self::Seat { region, group, reply } => {
                (Question::Seat { region, group }, Waits::Seat(reply))
            }
            Self::Adopt { region, objects, reply } => {
                (Question::Adopt { region, objects }, Waits::Names(reply))
            }
            Self::Look { max: 0, reply, .. } => (Question::DataBlocks, Waits::Look(reply)),
            other @ (Self::Put { .. }
            | Self::Get { .. }
            | Self::Delete { .. }
            | Self::Protected { .. }
            | Self::Look { .. }
            | Self::Status(_)) => return Err(other),
        };
        Ok((question, Asker(waits)))
    }
}
