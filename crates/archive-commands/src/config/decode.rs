//! Settings of the decode service: hourly prices, and the address of a queue.

use std::str::FromStr;

use fulgurite_archive::config::HOURS;
use serde::{Deserialize, Serialize};

/// Energy price for each hour of the day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub(crate) struct Prices(pub [f64; HOURS]);

impl Default for Prices {
    /// The same price at every hour.
    fn default() -> Self {
        Self([1.0; HOURS])
    }
}

impl TryFrom<Vec<f64>> for Prices {
    type Error = String;

    /// Takes one price for all hours, or one for each.
    fn try_from(prices: Vec<f64>) -> Result<Self, String> {
        let hours: [f64; HOURS] = match prices[..] {
            [all] => [all; HOURS],
            _ => prices.as_slice().try_into().map_err(|_| {
                format!("{} prices are not {HOURS}, one for each hour of the day", prices.len())
            })?,
        };
        let wrong = hours.iter().find(|price| !(price.is_finite() && **price >= 0.0));
        wrong.map_or(Ok(Self(hours)), |price| Err(format!("{price} is not a price, from 0 up")))
    }
}

impl From<Prices> for Vec<f64> {
    fn from(prices: Prices) -> Self {
        // Shorten if all hours are the same.
        let [first, rest @ ..] = prices.0;
        #[expect(clippy::float_cmp, reason = "compares prices as written")]
        let is_flat = rest.iter().all(|price| *price == first);
        if is_flat { vec![first] } else { prices.0.to_vec() }
    }
}

impl FromStr for Prices {
    type Err = String;

    /// Parses comma-separated numbers, with or without the file's brackets.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |word: &str| {
            word.trim().parse::<f64>().map_err(|_| format!("\"{word}\" is not a number"))
        };
        text.trim_matches(['[', ']'])
            .split(',')
            .map(number)
            .collect::<Result<Vec<f64>, String>>()?
            .try_into()
    }
}

/// The address of a queue.
pub(super) mod queue {
    use fulgurite_archive::config::QueueAddress;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::config) fn serialize<S: Serializer>(
        address: &Option<QueueAddress>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match address {
            Some(address) => serializer.collect_str(address),
            None => serializer.serialize_none(),
        }
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<QueueAddress>, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Some).map_err(serde::de::Error::custom)
    }
}
