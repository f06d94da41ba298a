//! The built-in decoders, one of each kind for each preset of the channel.

#[cfg(feature = "learned")]
use std::path::Path;
#[cfg(feature = "learned")]
use std::sync::Arc;

#[cfg(feature = "learned")]
use crate::Model;
use crate::{DecodeError, Linear};

/// The learned decoder for fused silica, trained on the preset `nominal`, in 8 bits. Its card
/// documents its training and quality; other presets are read with it as well, after the linear
/// decoder was tried.
///
/// # Errors
/// None, as long as both files are from one export.
#[cfg(feature = "learned")]
pub fn standard_model() -> Result<Arc<Model>, DecodeError> {
    let onnx = include_bytes!("../../../models/nominal-md-int8.onnx").to_vec();
    let card = include_bytes!("../../../models/nominal-md-int8.json");
    Model::new(onnx, card, Path::new("models/nominal-md-int8.onnx")).map(Arc::new)
}

/// Returns the linear decoder of a preset (made by `examples/fit_linear.rs`).
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
