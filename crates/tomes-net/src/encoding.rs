//! What is in the bytes of letters, tokens, introductions and greetings: a version, then postcard.
//!
//! A tome that is of an earlier version refuses what it does not know; to the core that is a lost
//! letter. Groups are looked at as if they were made here. Not here: the messages around them.

use fulgurite_tome::group::Group;
use fulgurite_tome::message::Message;
use fulgurite_tomes::{Introduction, Question};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{NetError, Result};

/// The version that is written.
const VERSION: u8 = 1;

/// The bytes of a value.
pub(crate) fn encode<T: Serialize>(what: &'static str, value: &T) -> Result<Vec<u8>> {
    postcard::to_extend(value, vec![VERSION]).map_err(|_| NetError::Undecoded { what })
}

/// The value in these bytes, all of them.
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

/// A message of a tome.
pub(crate) fn message(bytes: &[u8]) -> Result<Message> {
    let message = decode("a letter", bytes)?;
    match &message {
        Message::Moved(group) => checked("a letter", group)?,
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

/// What a set asks.
pub(crate) fn question(bytes: &[u8]) -> Result<Question> {
    let question: Question = decode("a question", bytes)?;
    match &question {
        Question::Rebuild { group, .. } => checked("a question", group)?,
        Question::Hold { .. }
        | Question::Scrub
        | Question::Check { .. }
        | Question::Wakes
        | Question::Seat { .. }
        | Question::Absent { .. }
        | Question::Adopt { .. }
        | Question::DataBlocks => {}
    }
    Ok(question)
}

/// What a set says first.
pub(crate) fn introduction(bytes: &[u8]) -> Result<Introduction> {
    let introduction: Introduction = decode("an introduction", bytes)?;
    introduction.groups.iter().try_for_each(|group| checked("an introduction", group))?;
    Ok(introduction)
}

fn checked(what: &'static str, group: &Group) -> Result<()> {
    match Group::new(group.id(), group.split(), group.seats().to_vec()) {
        Ok(_) => Ok(()),
        Err(_) => Err(NetError::Undecoded { what }),
    }
}
