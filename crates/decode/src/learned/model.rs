//! A model: a network in ONNX and its card, checked against each other.

use std::io::Read as _;
use std::path::Path;

use fulgurite_platter::channel::Medium;

use super::card::{Card, ModelId, check_format};
use super::graph;
#[cfg(feature = "tract")]
use super::tract::Plans;
use crate::DecodeError;
use crate::limits::FILE_BYTES_MAX;

/// A validated network: its file matches its card, its graph leads from images to logits, its
/// weights are finite. Any number of decoders may share it.
#[derive(Debug)]
pub struct Model {
    card: Card,
    onnx: Vec<u8>,
    #[cfg(feature = "tract")]
    plans: Plans,
}

impl Model {
    /// Opens `NAME.onnx`, and `NAME.json` beside it.
    ///
    /// # Errors
    /// [`DecodeError::ModelUnreadable`] when a file cannot be read, and what [`Self::new`] refuses.
    pub fn open(onnx: &Path) -> Result<Self, DecodeError> {
        let read = |path: &Path| {
            read_bounded(path).map_err(|error| DecodeError::ModelUnreadable {
                path: path.to_path_buf(),
                reason: error.to_string(),
            })
        };
        let bytes = read(onnx)?;
        let card = read(&onnx.with_extension("json"))?;
        Self::new(bytes, &card, onnx)
    }

    /// Creates a model from the bytes of both files. `path` is that of the model, for errors only.
    ///
    /// # Errors
    /// [`DecodeError::ModelCard`], [`DecodeError::ModelFormat`], [`DecodeError::ModelHash`],
    /// [`DecodeError::NotOnnx`], [`DecodeError::ModelNotFinite`].
    pub fn new(onnx: Vec<u8>, card: &[u8], path: &Path) -> Result<Self, DecodeError> {
        let card_path = path.with_extension("json");
        let card = Card::parse(card, &card_path)?;
        let found = blake3::hash(&onnx).to_hex().to_string();
        if found != card.blake3 {
            let (path, expected) = (path.to_path_buf(), card.blake3);
            return Err(DecodeError::ModelHash { path, found, expected });
        }
        let graph = graph::read(&onnx)
            .map_err(|reason| DecodeError::NotOnnx { path: path.to_path_buf(), reason })?;
        check_format(graph.format.as_deref().unwrap_or("network"), path)?;
        if let Some(place) = graph.non_finite_weights {
            return Err(DecodeError::ModelNotFinite { model: card.id().to_string(), place });
        }
        for (property, in_card, in_graph) in
            [("states", card.states, graph.states), ("symbols", card.symbols, graph.symbols)]
        {
            if in_graph.is_some_and(|count| count != in_card) {
                let reason = format!("{property} is {in_card}; the network has {in_graph:?}");
                return Err(DecodeError::ModelCard { path: card_path, reason });
            }
        }
        Ok(Self {
            card,
            onnx,
            #[cfg(feature = "tract")]
            plans: Plans::default(),
        })
    }

    /// The model's card.
    #[must_use]
    pub const fn card(&self) -> &Card {
        &self.card
    }

    /// Identifies the model.
    #[must_use]
    pub fn id(&self) -> ModelId {
        self.card.id()
    }

    /// Checks that the model is for this medium.
    ///
    /// # Errors
    /// [`DecodeError::ModelMedium`].
    pub fn check(&self, medium: Medium) -> Result<(), DecodeError> {
        let name = match medium {
            Medium::Birefringent => "a birefringent medium",
            Medium::Phase => "a phase medium",
        };
        for (property, found, expected) in [
            ("states", self.card.states, medium.images()),
            ("symbols", self.card.symbols, usize::from(medium.symbols())),
        ] {
            if found != expected {
                let (model, medium) = (self.id().to_string(), name);
                return Err(DecodeError::ModelMedium { model, property, found, expected, medium });
            }
        }
        Ok(())
    }

    /// The bytes of its ONNX file.
    pub(crate) fn onnx(&self) -> &[u8] {
        &self.onnx
    }

    #[cfg(feature = "tract")]
    pub(crate) const fn plans(&self) -> &Plans {
        &self.plans
    }
}

/// Reads a file, unless it is larger than any network.
#[expect(clippy::disallowed_methods, reason = "a model is opened here and nowhere else")]
fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more, to detect files that are too long.
    let limit = FILE_BYTES_MAX as u64 + 1;
    std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > FILE_BYTES_MAX {
        let reason = format!("it is larger than {FILE_BYTES_MAX} bytes, the maximum for a network");
        return Err(std::io::Error::other(reason));
    }
    Ok(bytes)
}
