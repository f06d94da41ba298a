//! The card of a model: what must be known before its file is opened. Its format is in
//! docs/design/0007.

use std::fmt;
use std::path::Path;

use serde::Deserialize;

use crate::DecodeError;

/// The format that models and cards declare. The number is that of the front end, which registers
/// the camera's images.
pub const MODEL_FORMAT: &str = "fulgurite voxel decoder 1";

/// Hex digits of a hash that identify a model in reports.
const HASH_DIGITS: usize = 8;

/// Longest side of a block, and widest margin, that a card may ask for.
const BLOCK_MAX: usize = 64;

/// Identifies a model in the report of every decode.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelId {
    /// The model's name, which is that of its file.
    pub name: String,
    /// Its makers' version of this training.
    pub version: String,
    /// The first digits of its file's BLAKE3.
    pub hash: String,
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.name, self.version, self.hash)
    }
}

/// A validated card of a model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// [`MODEL_FORMAT`].
    pub format: String,
    /// The model's name.
    pub name: String,
    /// Its makers' version of this training.
    pub version: String,
    /// BLAKE3 of the model's file, in hex.
    pub blake3: String,
    /// Precision of the arithmetic: `float32`, or `int8` where the engine can.
    pub precision: String,
    /// Number of input images.
    pub states: usize,
    /// Size of the alphabet.
    pub symbols: usize,
    /// Side of a voxel, in pixels.
    pub pixels_per_pitch: usize,
    /// Rows and columns must be multiples of this.
    pub block: usize,
    /// Unusable voxels at the edge of a tile.
    pub margin: usize,
    /// Divides the logits.
    pub temperature: f32,
    /// Fingerprint of the channel that it was trained on.
    pub channel: String,
    /// Everything known of its training: seeds, configuration, metrics.
    #[serde(default)]
    pub about: serde_json::Value,
}

impl Card {
    /// Reads a card. `path` is for errors only.
    ///
    /// # Errors
    /// [`DecodeError::ModelFormat`] and [`DecodeError::ModelCard`].
    pub fn parse(text: &[u8], path: &Path) -> Result<Self, DecodeError> {
        let refuse = |reason: String| DecodeError::ModelCard { path: path.to_path_buf(), reason };
        let value: serde_json::Value =
            serde_json::from_slice(text).map_err(|error| refuse(error.to_string()))?;
        let format = value.get("format").and_then(serde_json::Value::as_str);
        let format = format.ok_or_else(|| refuse("it has no format".to_owned()))?;
        check_format(format, path)?;
        let card: Self =
            serde_json::from_value(value).map_err(|error| refuse(error.to_string()))?;
        match card.invalid_field() {
            Some(reason) => Err(refuse(reason)),
            None => Ok(card),
        }
    }

    /// Identifies the card's model.
    #[must_use]
    pub fn id(&self) -> ModelId {
        let hash = self.blake3.chars().take(HASH_DIGITS).collect();
        ModelId { name: self.name.clone(), version: self.version.clone(), hash }
    }

    /// Describes the first invalid number.
    fn invalid_field(&self) -> Option<String> {
        let numbers = [
            ("states", self.states, [1, 4].contains(&self.states), "1 or 4"),
            ("symbols", self.symbols, (2..=256).contains(&self.symbols), "2 to 256"),
            (
                "pixels_per_pitch",
                self.pixels_per_pitch,
                [3, 4].contains(&self.pixels_per_pitch),
                "3 or 4",
            ),
            ("block", self.block, (1..=BLOCK_MAX).contains(&self.block), "1 to 64"),
            ("margin", self.margin, self.margin <= BLOCK_MAX, "0 to 64"),
        ];
        let wrong = numbers.iter().find(|(_, _, is_sound, _)| !is_sound);
        if let Some((name, value, _, allowed)) = wrong {
            return Some(format!("{name} is {value}; it may be {allowed}"));
        }
        if self.temperature.is_finite() && self.temperature > 0.0 {
            return None;
        }
        Some(format!("temperature is {}; it may be above 0", self.temperature))
    }
}

/// Refuses formats other than [`MODEL_FORMAT`].
pub(crate) fn check_format(found: &str, path: &Path) -> Result<(), DecodeError> {
    if found == MODEL_FORMAT {
        return Ok(());
    }
    Err(DecodeError::ModelFormat {
        path: path.to_path_buf(),
        found: found.to_owned(),
        expected: MODEL_FORMAT,
    })
}
