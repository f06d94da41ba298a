//! A model: a network in ONNX and its card, checked against each other.

use std::path::Path;

use fulgurite_glass::channel::Medium;

use super::card::{Card, ModelId, check_format};
use super::graph;
use super::tract::Plans;
use crate::DecodeError;

/// A trained network that is sound: its file is the one of its card, its graph leads from images to
/// logits, its weights are numbers. Any number of decoders may share it.
#[derive(Debug)]
pub struct Model {
    card: Card,
    onnx: Vec<u8>,
    plans: Plans,
}

impl Model {
    /// Opens `NAME.onnx`, and `NAME.json` beside it.
    ///
    /// # Errors
    /// [`DecodeError::ModelMissing`] when a file cannot be read, and what [`Self::new`] refuses.
    pub fn open(onnx: &Path) -> Result<Self, DecodeError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| DecodeError::ModelMissing {
                path: path.to_path_buf(),
                reason: error.to_string(),
            })
        };
        let bytes = read(onnx)?;
        let card = read(&onnx.with_extension("json"))?;
        Self::new(bytes, &card, onnx)
    }

    /// Makes a model of the bytes of both files. `path` is that of the model, for errors only.
    ///
    /// # Errors
    /// [`DecodeError::ModelCard`], [`DecodeError::ModelFormat`], [`DecodeError::ModelHash`],
    /// [`DecodeError::NotOnnx`], [`DecodeError::ModelNumber`].
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
        if let Some(place) = graph.not_a_number {
            return Err(DecodeError::ModelNumber { model: card.id().to_string(), place });
        }
        for (what, of_card, of_graph) in
            [("states", card.states, graph.states), ("symbols", card.symbols, graph.symbols)]
        {
            if of_graph.is_some_and(|count| count != of_card) {
                let reason = format!("{what} is {of_card}; the network has {of_graph:?}");
                return Err(DecodeError::ModelCard { path: card_path, reason });
            }
        }
        Ok(Self { card, onnx, plans: Plans::default() })
    }

    /// What is known of it.
    #[must_use]
    pub const fn card(&self) -> &Card {
        &self.card
    }

    /// Which one it is.
    #[must_use]
    pub fn id(&self) -> ModelId {
        self.card.id()
    }

    /// Checks that it reads this medium.
    ///
    /// # Errors
    /// [`DecodeError::ModelMedium`].
    pub fn check(&self, medium: Medium) -> Result<(), DecodeError> {
        let name = match medium {
            Medium::Birefringent => "a birefringent medium",
            Medium::Phase => "a phase medium",
        };
        for (what, found, expected) in [
            ("states", self.card.states, medium.images()),
            ("symbols", self.card.symbols, usize::from(medium.symbols())),
        ] {
            if found != expected {
                let (model, medium) = (self.id().to_string(), name);
                return Err(DecodeError::ModelMedium { model, what, found, expected, medium });
            }
        }
        Ok(())
    }

    /// Its file.
    pub(crate) fn onnx(&self) -> &[u8] {
        &self.onnx
    }

    pub(crate) const fn plans(&self) -> &Plans {
        &self.plans
    }
}
