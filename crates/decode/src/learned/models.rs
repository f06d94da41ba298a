//! Several models by name, which can be replaced while decoders run.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use fulgurite_platter::channel::{Medium, SectorImages, SectorShape};

use super::Learned;
use super::card::ModelId;
use super::engine::EngineChoice;
use super::model::Model;
use crate::{DecodeError, Decoder, SymbolProbabilities};

/// The loaded models. One of them is the default.
///
/// Readers take a snapshot of the list by one pointer: a decode that runs when a model is replaced
/// ends with the model it began with.
#[derive(Debug)]
pub struct ModelRegistry(RwLock<Arc<List>>);

/// A snapshot of the models.
#[derive(Clone, Debug)]
struct List {
    default: String,
    by_name: BTreeMap<String, Arc<Model>>,
}

impl ModelRegistry {
    /// Creates a list of one model, the default.
    #[must_use]
    pub fn new(default: Arc<Model>) -> Self {
        let name = default.card().name.clone();
        let by_name = BTreeMap::from([(name.clone(), default)]);
        Self(RwLock::new(Arc::new(List { default: name, by_name })))
    }

    /// Adds a model, and returns the one of the same name that it replaces.
    pub fn insert(&self, model: Arc<Model>) -> Option<Arc<Model>> {
        self.update(|list| list.by_name.insert(model.card().name.clone(), model))
    }

    /// Changes the default.
    ///
    /// # Errors
    /// [`DecodeError::ModelUnknown`] when it is not loaded.
    pub fn set_default(&self, name: &str) -> Result<(), DecodeError> {
        self.update(|list| {
            list.get(name)?;
            name.clone_into(&mut list.default);
            Ok(())
        })
    }

    /// Returns the model of a name, or the default.
    ///
    /// # Errors
    /// [`DecodeError::ModelUnknown`] when it is not loaded: another one would read worse,
    /// unnoticed.
    pub fn get(&self, name: Option<&str>) -> Result<Arc<Model>, DecodeError> {
        let list = self.list();
        list.get(name.unwrap_or(&list.default)).cloned()
    }

    /// Returns the model that a platter names, else the one that the drive names, else the default.
    /// The written data matter more than the drive that reads them.
    ///
    /// # Errors
    /// [`DecodeError::ModelUnknown`] when the named one is not loaded.
    pub fn choose(
        &self,
        platter: Option<&str>,
        drive: Option<&str>,
    ) -> Result<Arc<Model>, DecodeError> {
        self.get(platter.or(drive))
    }

    /// Returns the ids of all models, sorted by name.
    #[must_use]
    pub fn ids(&self) -> Vec<ModelId> {
        self.list().by_name.values().map(|model| model.id()).collect()
    }

    fn list(&self) -> Arc<List> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn update<R>(&self, edit: impl FnOnce(&mut List) -> R) -> R {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut list = List::clone(&current);
        let result = edit(&mut list);
        *current = Arc::new(list);
        result
    }
}

impl List {
    fn get(&self, name: &str) -> Result<&Arc<Model>, DecodeError> {
        self.by_name.get(name).ok_or_else(|| DecodeError::ModelUnknown {
            name: name.to_owned(),
            known: self.by_name.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }
}

/// A decoder that follows a name: it picks up replaced models and new defaults from one sector to
/// the next.
#[derive(Debug)]
pub struct ReloadingDecoder {
    models: Arc<ModelRegistry>,
    name: Option<String>,
    medium: Medium,
    engine: EngineChoice,
    decoder: Learned,
}

impl ReloadingDecoder {
    /// Creates a decoder that follows a name, or the default.
    ///
    /// # Errors
    /// [`DecodeError::ModelUnknown`], and what [`Learned::new`] refuses.
    pub fn new(
        models: Arc<ModelRegistry>,
        name: Option<String>,
        medium: Medium,
        engine: EngineChoice,
    ) -> Result<Self, DecodeError> {
        let decoder = Learned::new(&models.get(name.as_deref())?, medium, &engine)?;
        Ok(Self { models, name, medium, engine, decoder })
    }
}

impl Decoder for ReloadingDecoder {
    fn name(&self) -> &str {
        self.decoder.name()
    }

    /// The model of the last decode.
    fn model_id(&self) -> Option<ModelId> {
        self.decoder.model_id()
    }

    fn decode(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<SymbolProbabilities, DecodeError> {
        let model = self.models.get(self.name.as_deref())?;
        if !Arc::ptr_eq(&model, self.decoder.model()) {
            self.decoder = Learned::new(&model, self.medium, &self.engine)?;
        }
        self.decoder.decode(images, shape)
    }
}
