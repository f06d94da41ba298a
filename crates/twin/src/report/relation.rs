//! Relations in numbers: `1.42 <= 1.5`, and the inputs of the number.

use super::scale::number;
use crate::experiment::{Derivation, Expected, RelationInputs, Row};

/// Formats a check that the paper states in words as a relation: `1.42 <= 1.5`, `1.5 <= 1.79 <=
/// 2.2` or, where it misses, `1.62 > 1.5`. `None` for a check with a value of the paper, or without
/// one of ours.
#[must_use]
pub fn relation(row: &Row) -> Option<String> {
    let ours = match (&row.expected, row.ours) {
        (Expected::Words(_), Some(ours)) => ours,
        (Expected::Words(_), None) | (Expected::Value(_), _) => return None,
    };
    let suffix = row.details.unit.suffix();
    let shown = distinguishing_digits(ours, row.band);
    // A lower bound of zero is omitted for a value that is not negative.
    let low = row.band[0].filter(|low| *low != 0.0 || ours < 0.0);
    Some(match (low, row.band[1]) {
        (Some(low), _) if ours < low => format!("{shown} < {}{suffix}", number(low)),
        (_, Some(high)) if ours > high => format!("{shown} > {}{suffix}", number(high)),
        (Some(low), Some(high)) => {
            format!("{} <= {shown} <= {}{suffix}", number(low), number(high))
        }
        (None, Some(high)) => format!("{shown} <= {}{suffix}", number(high)),
        (Some(low), None) => format!("{shown} >= {}{suffix}", number(low)),
        (None, None) => format!("{shown}{suffix}"),
    })
}

/// Formats a number with as many digits as distinguish it from both ends of its band.
fn distinguishing_digits(ours: f64, band: [Option<f64>; 2]) -> String {
    let short = number(ours);
    let same = |end: &f64| number(*end) == short && (ours - end).abs() > 0.0;
    if band.iter().flatten().any(same) { format!("{ours:.6}") } else { short }
}

/// Formats the inputs of a number: `5.76 / 2.54 h`.
#[must_use]
pub fn format_inputs(working: &RelationInputs) -> String {
    let suffix = working.unit.suffix();
    let all: Vec<String> = working.of.iter().map(|value| number(*value)).collect();
    let list = all.join(", ");
    match working.made {
        Derivation::Ratio => format!("{}{suffix}", all.join(" / ")),
        Derivation::Largest => format!("largest of {list}{suffix}"),
        Derivation::Smallest => format!("smallest of {list}{suffix}"),
        Derivation::StepUp => format!("largest step up in {list}{suffix}"),
        Derivation::StepDown => format!("largest step down in {list}{suffix}"),
        Derivation::Order => format!("smallest factor in {list}{suffix}"),
        Derivation::Slopes => format!("second slope over first of {list}{suffix}"),
        Derivation::Line => format!("straightness of {list}{suffix}"),
    }
}
