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

mod choose;
mod collect;
mod embedded_proposer;
mod error;
mod get;
mod heal;
mod ids;
mod known_versions;
pub mod limits;
mod operation;
mod proposer;
mod put;
mod quorum;
mod remote_step;
mod restore;
mod row;
mod step;
mod terms;
mod value;
mod view;

pub use choose::{Choice, Judgement, choose, judge};
pub use collect::{Collect, CollectResult, Retention, Sweep, SweepResult};
pub use error::Error;
pub use get::{Read, ReadResult, ReadTarget};
pub use heal::{Heal, HealPolicy, HealResult};
pub use ids::{Ballot, Epoch, SiteIndex, Version, WriteId};
pub use known_versions::{Decided, KnownVersions};
pub use operation::{FetchResult, Fragment, FragmentOp, OpCommand, OpEvent, OpResult, Operation};
pub use proposer::{Ask, Condition, Event, Goal, Outcome, Proposer, Rounds};
pub use put::{Write, WriteResult, fragments, max_write_duration};
pub use quorum::{QuorumRule, Quorums};
pub use remote_step::{Answer, Image, StepQuery, decode_answer, encode_answer, step_bytes};
pub use restore::{Restore, RestoreResult};
pub use row::{Accepted, Instance, Row};
pub use step::{Command, Request, SiteState, StepResult, Verdict, step};
pub use terms::Terms;
pub use value::{Change, Chunk, Coded, Data, Put, Value};
pub use view::Hole;
