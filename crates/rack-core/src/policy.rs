//! The policy of a rack, as a value, so that policies can be compared.

use fulgurite_units::{ByteCount, Duration, Ratio};
use serde::{Deserialize, Serialize};

use crate::limits::{BACKGROUND_QUEUE, CLIENT_QUEUE};
use crate::order::{Budget, Due, Order, SpinUps};

/// Parameters of the scheduler of each class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The order in which a class serves operations.
    pub order: Order,
    /// Which disks of a group are spun up for its operations.
    pub spin_ups: SpinUps,
    /// How far others may push an operation back from its place in arrival order, in bytes of
    /// operations (u); none, written `any`, for any distance. Zero means first come, first served.
    #[serde(with = "any_or")]
    pub reach_bytes: Option<ByteCount>,
    /// The same in time, as estimated from the measured pace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach_time: Option<Duration>,
    /// The share of background work while clients wait as well (w).
    pub background_share: Ratio,
    /// How far one side may get ahead of the other before the turn changes (H): a turn must be
    /// worth its switch.
    pub turn: Duration,
    /// Maximum number of client operations that wait in a class.
    pub client_queue: usize,
    /// Maximum number of background operations that wait in a class.
    pub background_queue: usize,
    /// Maximum number of operations that run at once in the spinning group.
    pub at_once: usize,
    /// Whether an operation for the spinning group goes ahead of other groups, as far as these may
    /// be pushed back, even if no other of its group waits.
    pub joins_running: bool,
    /// Whether classes that share the unit in which groups lie spin up one after the other: in
    /// Pelican's prototype a tray could supply only one disk that spins up.
    pub spins_up_in_turn: bool,
    /// After what time an idle group is spun down; none to let it spin, as Pelican does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Duration>,
    /// How long a disk may take to spin up before its group goes on without it.
    pub rise_limit: Duration,
    /// How long the initialization of a group may be delayed while clients want others.
    pub init_patience: Duration,
    /// Limit on spin-ups; none for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

impl Policy {
    /// The paper's policy (section 4.2), with the values that it leaves open as design note 0026
    /// chose them.
    #[must_use]
    pub fn pelican() -> Self {
        Self { order: Order::Batches, joins_running: false, ..Self::default() }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            order: Order::Due(Due::default()),
            spin_ups: SpinUps::All,
            reach_bytes: Some(ByteCount::new(500_000_000_000)),
            reach_time: None,
            background_share: Ratio::new(0.5).unwrap_or_default(),
            turn: Duration::from_secs(300),
            client_queue: CLIENT_QUEUE,
            background_queue: BACKGROUND_QUEUE,
            at_once: 1,
            joins_running: true,
            spins_up_in_turn: false,
            idle: None,
            rise_limit: Duration::from_secs(60),
            init_patience: Duration::from_secs(3600),
            budget: None,
        }
    }
}

/// Serializes a count of bytes, or `any`.
mod any_or {
    use fulgurite_units::ByteCount;
    use serde::{Deserialize, Deserializer, Serialize as _, Serializer, de::Error as _};

    const ANY: &str = "any";

    pub(super) fn serialize<S: Serializer>(
        bytes: &Option<ByteCount>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => bytes.serialize(serializer),
            None => serializer.serialize_str(ANY),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ByteCount>, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == ANY {
            return Ok(None);
        }
        text.parse().map(Some).map_err(D::Error::custom)
    }
}
