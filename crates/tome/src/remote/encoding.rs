//! Encoding of messages, tokens, handshakes and their replies: a version, then postcard.
//!
//! What has another version is rejected; to the core that is a lost message. Groups are validated
//! as if they were created here. Not here: the messages around them.

use bytes::Bytes;
use fulgurite_tome_core::group::Group;
use fulgurite_tome_core::message::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::remote::{NetError, Result};
use crate::{SetHandshake, TomeQuery};

/// The version written.
const VERSION: u8 = 1;

/// Encodes a value.
pub(crate) fn encode<T: Serialize>(what: &'static str, value: &T) -> Result<Bytes> {
    let bytes = postcard::to_extend(value, vec![VERSION]);
    bytes.map(Bytes::from).map_err(|_| NetError::Undecoded { what })
}

/// Decodes a value from exactly these bytes.
pub(crate) fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => match postcard::take_from_bytes(rest) {
            Ok((value, [])) => Ok(value),
            Ok(_) | Err(_) => Err(NetError::Undecoded { what }),
        },
        Some((&version, _)) if version > VERSION => {
            Err(NetError::Newer { version, known: VERSION })
        }
        Some(_) | None => Err(NetError::Undecoded { what }),
    }
}

/// Decodes a message of a tome.
pub(crate) fn message(bytes: &[u8]) -> Result<Message> {
    let message = decode("a message", bytes)?;
    match &message {
        Message::Moved(group) => checked("a message", group)?,
        Message::Delta { .. }
        | Message::Query { .. }
        | Message::Status { .. }
        | Message::ReportWanted { .. }
        | Message::Report { .. }
        | Message::NodesWanted { .. }
        | Message::Nodes { .. }
        | Message::Freeze(_)
        | Message::Ready { .. }
        | Message::Share { .. }
        | Message::Thaw(_)
        | Message::Learned { .. }
        | Message::HoldingsWanted { .. }
        | Message::Holdings { .. } => {}
    }
    Ok(message)
}

/// Decodes a query of a set.
pub(crate) fn query(bytes: &[u8]) -> Result<TomeQuery> {
    let query: TomeQuery = decode("a query", bytes)?;
    match &query {
        TomeQuery::Rebuild { group, .. } => checked("a query", group)?,
        TomeQuery::Hold { .. }
        | TomeQuery::Scrub
        | TomeQuery::Check { .. }
        | TomeQuery::SpinUps
        | TomeQuery::MemberSlot { .. }
        | TomeQuery::Absent { .. }
        | TomeQuery::Adopt { .. }
        | TomeQuery::DataBlocks => {}
    }
    Ok(query)
}

/// Decodes the handshake of a set.
pub(crate) fn handshake(bytes: &[u8]) -> Result<SetHandshake> {
    let handshake: SetHandshake = decode("a handshake", bytes)?;
    handshake.groups.iter().try_for_each(|group| checked("a handshake", group))?;
    Ok(handshake)
}

fn checked(what: &'static str, group: &Group) -> Result<()> {
    match Group::new(group.id(), group.split(), group.slots().to_vec()) {
        Ok(_) => Ok(()),
        Err(_) => Err(NetError::Undecoded { what }),
    }
}
