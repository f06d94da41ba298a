//! The decoders that come with the program, one of each kind for each preset of the channel.

use crate::{DecodeError, Linear};

/// The linear decoder of a preset (`examples/fit_linear.rs` made them).
///
/// # Errors
/// [`DecodeError::Preset`] when there is none of this name.
pub fn standard_linear(preset: &str) -> Result<Linear, DecodeError> {
    let text = match preset {
        "nominal" => include_str!("../../../models/nominal-linear.json"),
        "easy" => include_str!("../../../models/easy-linear.json"),
        "dense" => include_str!("../../../models/dense-linear.json"),
        "phase" => include_str!("../../../models/phase-linear.json"),
        _ => return Err(DecodeError::Preset { preset: preset.to_owned() }),
    };
    serde_json::from_str(text).map_err(|error| DecodeError::Fit { reason: error.to_string() })
}
