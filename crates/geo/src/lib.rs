//! Agreement between several sites on the last version of an object, with nothing but conditional
//! writes (Giza, USENIX ATC 2017).
//!
//! ```text
//!  Proposer: a write or a read             Read, Write, Heal, ...: with bytes
//!     | Ask            ^ Answered              state machines without clock, thread, socket, store
//!     v                |                       (fulgurite_units::Controller)
//!   site's row --step(row, request)--> row', verdict
//!     one row per object and site, changed by a conditional write; every version is one instance
//!     of Fast Paxos over the rows of all voting sites
//! ```
//!
//! Live nodes, the simulation and the twin use the same [`step()`] and the same controllers; the
//! models use the same `step`. Not here: stores, connections and bytes. Design note 0031.

mod act;
mod agreeing;
mod choose;
mod collect;
mod elsewhere;
mod error;
mod get;
mod heal;
mod ids;
mod known;
pub mod limits;
mod proposer;
mod put;
mod quorum;
mod restore;
mod row;
mod step;
mod terms;
mod value;
mod view;

pub use act::{Act, Deed, Fetched, Fragment, Heard, How, Operation};
pub use choose::{Choice, Judgement, choose, judge};
pub use collect::{Collect, Collected, Keep, Sweep, Swept};
pub use elsewhere::{Answer, Image, Question, decode_answer, encode_answer, step_bytes};
pub use error::Error;
pub use get::{Got, Read, Wanted};
pub use heal::{Care, Heal, Healed};
pub use ids::{Ballot, Epoch, SiteIndex, Version, WriteId};
pub use known::{Decided, Known};
pub use proposer::{Ask, Condition, Event, Goal, Outcome, Proposer, Rounds};
pub use put::{Write, Wrote, fragments, longest};
pub use quorum::{Quorums, Sizes};
pub use restore::{Restore, Restored};
pub use row::{Accepted, Instance, Row};
pub use step::{Command, Request, Standing, Stepped, Verdict, step};
pub use terms::Terms;
pub use value::{Change, Chunk, Coded, Data, Put, Value};
pub use view::Hole;
