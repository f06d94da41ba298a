//! What an operator sees and does of a tier, whatever its kind. Its bytes are behind
//! `object_store::ObjectStore`.

use std::fmt::{Debug, Display, Formatter};
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use fulgurite_units::{ErrorKind, error_chain};
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Progress, TierMetrics};

/// The kind of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TierKind {
    /// Platters of glass in a library.
    Glass,
    /// A rack of cold disks.
    Rack,
    /// A set of tomes.
    Tome,
    /// A namespace over several sites.
    Geo,
    /// A directory or a bucket.
    Objects,
}

impl TierKind {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Glass => "glass",
            Self::Rack => "rack",
            Self::Tome => "tome",
            Self::Geo => "geo",
            Self::Objects => "objects",
        }
    }
}

impl Display for TierKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What an operator can have a tier do. A verb means the same for every kind of tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Compare what is stored, and report; nothing is changed.
    Verify,
    /// Read what is stored, and rebuild what is lost or damaged.
    Scrub,
    /// Give up a unit of hardware for good, and rebuild its contents on others.
    Rebuild,
    /// Take new, empty hardware in the place of old, and rebuild the contents on it.
    Replace,
    /// Move the contents of working hardware to others, and do without it.
    Retire,
    /// Read a unit of hardware whole, to rebuild its metadata.
    Inventory,
    /// Search all hardware for objects that the index does not know.
    Recover,
    /// Remove the bytes of obsolete versions, and those that no version references.
    Collect,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Verify,
        Self::Scrub,
        Self::Rebuild,
        Self::Replace,
        Self::Retire,
        Self::Inventory,
        Self::Recover,
        Self::Collect,
    ];

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Scrub => "scrub",
            Self::Rebuild => "rebuild",
            Self::Replace => "replace",
            Self::Retire => "retire",
            Self::Inventory => "inventory",
            Self::Recover => "recover",
            Self::Collect => "collect",
        }
    }
}

impl Display for Operation {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Operation {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|operation| operation.name() == name).ok_or(())
    }
}

/// Whether an operation takes a unit of hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// It is for the whole tier.
    None,
    /// For one unit, or for all.
    Optional,
    /// For one unit.
    Required,
}

/// What an operation is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationArgs {
    /// The unit of hardware: the number of a disk's place or of a tome, or the name of a site.
    pub target: Option<String>,
    /// Address of the table of a site's new location.
    pub table: Option<String>,
    /// Address of its blobs.
    pub blobs: Option<String>,
}

impl OperationArgs {
    /// Returns the number of the unit of hardware, if there is a target.
    ///
    /// # Errors
    /// If the target is not a number.
    pub fn number(&self) -> Result<Option<u32>, TierError> {
        let parse = |text: &String| {
            text.parse().map_err(|_| {
                TierError::invalid(format!("\"{text}\" is not the number of a disk or a tome"))
            })
        };
        self.target.as_ref().map(parse).transpose()
    }
}

/// An operation that a tier has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierOperation {
    /// Its name.
    pub operation: Operation,
    /// Whether it takes a target.
    pub target: Target,
    /// Whether it takes the addresses of stores: `table` and `blobs`.
    #[serde(default)]
    pub addresses: bool,
}

impl TierOperation {
    /// Returns the operation with its target.
    #[must_use]
    pub const fn new(operation: Operation, target: Target) -> Self {
        Self { operation, target, addresses: false }
    }

    /// Returns an operation that also takes addresses of stores.
    #[must_use]
    pub const fn with_addresses(operation: Operation, target: Target) -> Self {
        Self { operation, target, addresses: true }
    }

    /// Checks that a tier of this kind has an operation among its `known` ones, and that it takes
    /// these arguments.
    ///
    /// # Errors
    /// `NotFound` if there is no such operation, `Invalid` if it does not take the arguments.
    pub fn check(
        kind: TierKind,
        known: &[Self],
        operation: Operation,
        args: &OperationArgs,
    ) -> Result<(), TierError> {
        let Some(found) = known.iter().find(|known| known.operation == operation) else {
            let names: Vec<_> = known.iter().map(|known| known.operation.name()).collect();
            let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let message =
                format!("a tier of kind {kind} has no operation {operation}; it has: {has}");
            return Err(TierError::not_found(message));
        };
        let message = match (found.target, &args.target) {
            (Target::None, Some(target)) => {
                format!("{operation} is for the whole tier, not for {target} alone")
            }
            (Target::Required, None) => format!("{operation} needs a target"),
            _ if !found.addresses && (args.table.is_some() || args.blobs.is_some()) => {
                format!("{operation} of a tier of kind {kind} takes no table and no blobs")
            }
            (Target::None | Target::Optional | Target::Required, _) => return Ok(()),
        };
        Err(TierError::invalid(message))
    }
}

/// A tier, as its operator sees it. `RackStore`, `TomeStore` and `GeoStore` are tiers.
#[async_trait]
pub trait Tier: Debug + Send + Sync {
    /// Returns its kind.
    fn kind(&self) -> TierKind;

    /// Returns the operations that it has.
    fn operations(&self) -> &'static [TierOperation] {
        &[]
    }

    /// Checks that it has an operation, and that this one takes these arguments. Whether there is
    /// such a target is not looked up.
    ///
    /// # Errors
    /// When it does not have the operation, or not so.
    fn check(&self, operation: Operation, args: &OperationArgs) -> Result<(), TierError> {
        TierOperation::check(self.kind(), self.operations(), operation, args)
    }

    /// Returns its state, as JSON. No disk spins up and no site is contacted.
    async fn snapshot(&self) -> Result<Value, TierError>;

    /// Returns the last spin-ups of its disks, newest first, as a JSON array.
    async fn ledger(&self) -> Result<Value, TierError> {
        Err(TierError::not_found(format!("a tier of kind {} has no disks of its own", self.kind())))
    }

    /// Runs one of its [`operations`](Self::operations) and returns the report, as JSON.
    async fn run(
        &self,
        operation: Operation,
        _args: &OperationArgs,
        _progress: &Arc<Progress>,
    ) -> Result<Value, TierError> {
        Err(TierError::no_such_operation(self.kind(), operation))
    }

    /// Subscribes to its events: a snapshot, then what happens. Nothing waits for the subscriber.
    async fn watch(&self) -> Result<BoxStream<'static, TierEvent>, TierError> {
        Err(TierError::not_found(format!("a tier of kind {} has no events", self.kind())))
    }

    /// Returns the kinds of its failures, without names, for clients that have shown no keys; none
    /// if it is healthy.
    async fn degraded_kinds(&self) -> Result<Vec<String>, TierError>;

    /// Returns its failures for an operator; none if it is healthy.
    async fn reasons(&self) -> Result<Vec<String>, TierError>;

    /// Adds its metrics.
    async fn write_metrics(&self, _metrics: &mut TierMetrics<'_>) -> Result<(), TierError> {
        Ok(())
    }

    /// Stops waiting for what may take long, before the archive that uses it stops.
    fn stop_waiting(&self) {}

    /// Stops it: what runs finishes, disks spin down. Blocks until then.
    fn stop(&self) {}
}

/// An event of a tier.
#[derive(Clone, Debug, PartialEq)]
pub enum TierEvent {
    /// Something happened, or the snapshot that the following events start from.
    Event {
        /// Its name: `snapshot`, `step`, ...
        name: &'static str,
        /// Number of steps so far.
        step: u64,
        /// The rest.
        data: Value,
    },
    /// The subscriber was too slow, and events were overwritten. It is the last event.
    Late,
}

impl TierEvent {
    /// Returns an event whose data is `data` with the step in it.
    #[must_use]
    pub fn new(name: &'static str, step: u64, mut data: Value) -> Self {
        data["step"] = step.into();
        Self::Event { name, step, data }
    }
}

/// Why a call of a tier failed.
#[derive(Debug)]
pub struct TierError {
    /// What the caller should do about it.
    pub kind: ErrorKind,
    /// Whether too much is running or waiting.
    pub is_busy: bool,
    /// The message, with its causes.
    pub message: String,
}

impl TierError {
    /// Returns the error with its causes.
    #[must_use]
    pub fn new(kind: ErrorKind, error: &dyn std::error::Error) -> Self {
        Self { kind, is_busy: false, message: error_chain(error) }
    }

    /// Returns the error of something that the tier does not have.
    #[must_use]
    pub const fn not_found(message: String) -> Self {
        Self { kind: ErrorKind::NotFound, is_busy: false, message }
    }

    /// Returns the error of a request that is wrong.
    #[must_use]
    pub const fn invalid(message: String) -> Self {
        Self { kind: ErrorKind::Invalid, is_busy: false, message }
    }

    /// Returns the error of an operation that a kind of tier does not have.
    #[must_use]
    pub fn no_such_operation(kind: TierKind, operation: Operation) -> Self {
        Self::not_found(format!("a tier of kind {kind} has no operation {operation}"))
    }
}

impl Display for TierError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TierError {}
