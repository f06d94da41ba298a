//! Sizes in the files of planners: in powers of ten, as disks and platters are sold, or of two.

use fulgurite_units::ByteCount;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};

/// Parses a number with a unit: powers of ten as in `50TB`, or of two as in `50TiB`.
fn parse(text: &str) -> Result<ByteCount, String> {
    const UNITS: [(&str, f64); 6] =
        [("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12), ("PB", 1e15), ("EB", 1e18)];
    let Some((number, unit)) = UNITS
        .iter()
        .find_map(|(name, unit)| text.strip_suffix(name).map(|number| (number.trim_end(), unit)))
    else {
        return text.parse::<ByteCount>().map_err(|error| error.to_string());
    };
    match number.parse::<f64>() {
        Ok(number) if (0.0..=1.8e19).contains(&(number * unit)) => {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "in the range of 64 bits"
            )]
            let bytes = (number * unit).round() as u64;
            Ok(ByteCount::new(bytes))
        }
        _ => Err(format!(
            "\"{text}\" is not a number of bytes; write a number and a unit, like 50TB"
        )),
    }
}

/// Reads a size.
pub(crate) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteCount, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Reads a list of sizes.
pub(crate) fn sizes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<ByteCount>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| parse(text).map_err(D::Error::custom)).collect()
}

#[cfg(test)]
mod tests {
    use fulgurite_units::ByteCount;

    use super::parse;

    #[test]
    fn byte_units_are_decimal_or_binary() {
        assert_eq!(parse("50TB"), Ok(ByteCount::new(50_000_000_000_000)));
        assert_eq!(parse("1.5 PB"), Ok(ByteCount::new(1_500_000_000_000_000)));
        assert_eq!(parse("2TiB"), Ok(ByteCount::new(2 << 40)));
        assert_eq!(parse("0"), Ok(ByteCount::ZERO));
        for wrong in ["TB", "-1TB", "50XB", "nan TB", "50TB/week"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
