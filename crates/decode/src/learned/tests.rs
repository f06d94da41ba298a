//! Tests of the learned decoder: with a network too small to read anything, with fake engines, and
//! with the shipped network.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_platter::channel::{Channel, Medium, SectorShape};
use fulgurite_platter::numeric::Plane;
use serde_json::{Value, json};

use super::onnx::File;
use super::{
    Device, Engine, EngineChoice, Learned, Logits, Model, ModelRegistry, ReloadingDecoder, Tile,
};
use crate::front::RegisteredImages;
use crate::tests::{LabeledSector, errors, known, scores, sector, shape};
use crate::{DecodeError, Decoder, LinearFit, Scores, registered, standard_model};

const ONNX: &[u8] = include_bytes!("../../tests/models/tiny.onnx");
const CARD: &[u8] = include_bytes!("../../tests/models/tiny.json");

fn card() -> Value {
    serde_json::from_slice(CARD).unwrap()
}

/// Creates a model from these bytes and this card.
fn open(onnx: &[u8], card: &Value) -> Result<Model, DecodeError> {
    Model::new(onnx.to_vec(), card.to_string().as_bytes(), Path::new("models/tiny.onnx"))
}

/// Returns the card with these keys changed.
fn card_with(changes: Value) -> Value {
    let mut card = card();
    card.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    card
}

/// Returns a card for other bytes.
fn card_for(onnx: &[u8]) -> Value {
    card_with(json!({ "blake3": blake3::hash(onnx).to_hex().to_string() }))
}

fn tiny() -> Arc<Model> {
    Arc::new(open(ONNX, &card()).unwrap())
}

fn message<T: std::fmt::Debug>(result: Result<T, DecodeError>) -> String {
    result.unwrap_err().to_string()
}

/// The shipped networks: the int8 one, and the float32 one that it was made from.
const INT8: &str = "nominal-md-int8.onnx";
const FLOAT: &str = "nominal-md.onnx";

fn shipped(name: &str) -> Arc<Model> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    Arc::new(Model::open(&models.join(name)).unwrap())
}

/// Returns the int8 network, with these keys of its card changed.
fn small(changes: &Value) -> Arc<Model> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let path = models.join(INT8);
    let card = std::fs::read(path.with_extension("json")).unwrap();
    let mut card: Value = serde_json::from_slice(&card).unwrap();
    card.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let onnx = std::fs::read(&path).unwrap();
    Arc::new(Model::new(onnx, card.to_string().as_bytes(), &path).unwrap())
}

/// Returns registered images of a sector.
fn planes(side: SectorShape, number: u64) -> Vec<Plane> {
    let channel = Channel::preset("easy").unwrap();
    registered(&sector(&channel, side, number).0, side, channel.medium, 3).unwrap()
}

/// Returns a decoder with this machine's ONNX Runtime; without one, prints that the test is
/// skipped.
fn onnx_runtime(model: &Arc<Model>) -> Option<Learned> {
    match Learned::new(model, Medium::Birefringent, &EngineChoice::onnx_runtime()) {
        Ok(decoder) => Some(decoder),
        Err(error @ DecodeError::EngineMissing { .. }) => {
            #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
            {
                eprintln!("skipped: {error}");
            }
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the largest difference of two lists.
fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// A fake engine: the logit of symbol 1 is the brightness at each voxel's center in image 0.
#[derive(Debug)]
struct Middle {
    sizes: Vec<[usize; 2]>,
    fault: fn(&mut Vec<f32>),
}

impl Engine for Middle {
    fn name(&self) -> &'static str {
        "middle"
    }

    fn run(&mut self, tile: &Tile<'_>) -> Result<Logits<'_>, DecodeError> {
        let mut images = Vec::new();
        tile.copy_to(&mut images);
        let [rows, columns] = tile.size().map(|side| side / 3);
        assert_eq!(images.len(), 4 * 9 * rows * columns);
        self.sizes.push([rows, columns]);
        let mut logits = vec![0.0; 8 * rows * columns];
        for row in 0..rows {
            for column in 0..columns {
                logits[(rows + row) * columns + column] =
                    images[(3 * row + 1) * 3 * columns + 3 * column + 1];
            }
        }
        (self.fault)(&mut logits);
        Ok(Logits::new(logits))
    }
}

fn middle(model: &Arc<Model>, fault: fn(&mut Vec<f32>)) -> Learned {
    let engine = Box::new(Middle { sizes: Vec::new(), fault });
    Learned::with_engine(model, Medium::Birefringent, engine).unwrap()
}

/// Decodes registered images.
fn logarithms(
    decoder: &mut Learned,
    planes: &[Plane],
    side: SectorShape,
) -> Result<Vec<f32>, DecodeError> {
    decoder
        .network
        .probabilities::<8>(RegisteredImages::Planes(planes), side)
        .map(|found| found.logarithms().to_vec())
}

/// Tiles of different sizes, in blocks that do not divide the sector, put each voxel where it
/// belongs.
#[test]
fn tiles_are_cut_and_reassembled() {
    let side = SectorShape::new(44, 92).unwrap();
    let planes = planes(side, 1);
    let expected: Vec<f32> = (0..44)
        .flat_map(|row| (0..92).map(move |column| (3 * row + 1, 3 * column + 1)))
        .map(|(row, column)| planes[0].row(row)[column])
        .collect();
    for (block, margin) in [(4, 4), (8, 4), (16, 3)] {
        let card = card_with(json!({ "block": block, "margin": margin, "temperature": 1.0 }));
        let model = Arc::new(open(ONNX, &card).unwrap());
        for side_max in [1, 24, 32, 64, 512] {
            let mut decoder = middle(&model, |_| {}).with_tile_side_max(side_max);
            let found = logarithms(&mut decoder, &planes, side).unwrap();
            // All logits but the second are zero.
            let found: Vec<f32> = found.chunks_exact(8).map(|voxel| voxel[1] - voxel[0]).collect();
            assert!(difference(&found, &expected) < 1e-5, "{block} {margin} {side_max}");
        }
    }
}

/// The whole sector at once and in tiles: similar everywhere, equal away from tile edges.
#[cfg(feature = "tract")]
#[test]
fn tiles_decode_like_the_whole_sector() {
    let side = shape(96);
    let planes = planes(side, 2);
    let model = tiny();
    let decoder = || Learned::new(&model, Medium::Birefringent, &EngineChoice::default()).unwrap();
    let whole = logarithms(&mut decoder().with_tile_side_max(96), &planes, side).unwrap();
    let tiled = logarithms(&mut decoder().with_tile_side_max(64), &planes, side).unwrap();
    // The receptive field: convolutions of 2 + 4 + 8 voxels, twice except for the last, and halves.
    let receptive_field = 28;
    let greatest = whole.iter().fold(0.0f32, |max, value| max.max(value.abs()));
    let (mut all, mut near) = (0.0f64, 0.0f32);
    for (voxel, (a, b)) in whole.chunks_exact(8).zip(tiled.chunks_exact(8)).enumerate() {
        let apart = difference(a, b);
        all += f64::from(apart);
        // Tiles of 52 end at 44 and 52; voxels from 52 - sight on have the first tile's end in
        // their field.
        let is_inside = |at: usize| !(52 - receptive_field..44 + receptive_field).contains(&at);
        if is_inside(voxel / 96) && is_inside(voxel % 96) {
            near = near.max(apart);
        }
    }
    let mean = all / 9216.0;
    assert!(near < 1e-4, "{near}");
    assert!(mean > 0.0 && mean < 0.05 * f64::from(greatest), "{mean} of {greatest}");
}

/// Both engines agree on the same network, whole and in tiles.
#[cfg(feature = "tract")]
#[test]
fn engines_agree() {
    let model = tiny();
    let Some(mut reference) = onnx_runtime(&model) else { return };
    let mut builtin = Learned::new(&model, Medium::Birefringent, &EngineChoice::BuiltIn).unwrap();
    assert_eq!((builtin.engine(), reference.engine()), ("tract", "onnxruntime"));
    for (side, number) in [(shape(64), 3), (SectorShape::new(200, 36).unwrap(), 4)] {
        let planes = planes(side, number);
        let [a, b] = [&mut builtin, &mut reference]
            .map(|decoder| logarithms(decoder, &planes, side).unwrap());
        assert!(difference(&a, &b) < 1e-4, "{}", difference(&a, &b));
    }
}

#[test]
fn decoding_reports_its_model() {
    let channel = Channel::preset("easy").unwrap();
    let (images, _) = sector(&channel, shape(32), 5);
    let model = shipped(INT8);
    let mut decoder = Learned::new(&model, channel.medium, &EngineChoice::default()).unwrap();
    let found = decoder.decode(&images, shape(32)).unwrap();
    assert_eq!((found.voxels(), found.symbols()), (1024, 8));
    assert!((found.voxel(77).iter().map(|p| p.exp()).sum::<f32>() - 1.0).abs() < 1e-5);
    let id = decoder.model_id().unwrap();
    assert_eq!(id.hash.len(), 8);
    assert_eq!(id.to_string(), format!("{} {} ({})", id.name, id.version, id.hash));
    assert!(model.card().blake3.starts_with(&id.hash) && id.name == model.card().name);
}

/// A decoder changes models between sectors; a running decode ends with its own.
#[test]
fn models_are_replaced_while_decoders_run() {
    let channel = Channel::preset("easy").unwrap();
    let side = shape(32);
    let (images, _) = sector(&channel, side, 6);
    let tiny = small(&json!({ "name": "tiny", "version": "1", "temperature": 1.0 }));
    let models = Arc::new(ModelRegistry::new(tiny));
    let other = small(&json!({ "name": "other", "temperature": 2.0 }));
    assert!(models.insert(other).is_none());
    let follow = |name: Option<&str>| {
        let (models, name) = (Arc::clone(&models), name.map(str::to_owned));
        ReloadingDecoder::new(models, name, channel.medium, EngineChoice::default())
    };
    let (mut default, mut other) = (follow(None).unwrap(), follow(Some("other")).unwrap());
    let first = default.decode(&images, side).unwrap();
    assert_ne!(first, other.decode(&images, side).unwrap());
    assert_eq!(other.model_id().unwrap().name, "other");

    let kept = models.get(None).unwrap();
    let second = small(&json!({ "name": "tiny", "version": "2", "temperature": 2.0 }));
    let replaced = models.insert(second).unwrap();
    assert!(Arc::ptr_eq(&kept, &replaced));
    assert_eq!(default.model_id().unwrap().version, "1");
    assert_eq!(default.decode(&images, side).unwrap(), other.decode(&images, side).unwrap());
    assert_eq!(default.model_id().unwrap().version, "2");
    models.set_default("other").unwrap();
    default.decode(&images, side).unwrap();
    assert_eq!(default.model_id().unwrap().name, "other");

    let name =
        |platter, drive| models.choose(platter, drive).map(|model| model.card().name.clone());
    assert_eq!(name(Some("tiny"), Some("other")).unwrap(), "tiny");
    assert_eq!(name(None, Some("tiny")).unwrap(), "tiny");
    assert_eq!(name(None, None).unwrap(), "other");
    let known = "no model dense is loaded; loaded are other, tiny";
    assert_eq!(message(name(Some("dense"), None)), known);
    assert_eq!(message(models.set_default("dense")), known);
    assert_eq!(message(follow(Some("dense"))), known);
    assert_eq!(models.ids().iter().map(|id| &*id.name).collect::<Vec<_>>(), ["other", "tiny"]);
}

#[test]
fn missing_files_are_named() {
    let path = Path::new("/nowhere/nominal.onnx");
    let error = Model::open(path).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read /nowhere/nominal.onnx: No such file or directory (os error 2); \
         `python -m fulgurite.lab export` writes models"
    );
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // A file without a card.
    let found = message(Model::open(&here.join("src/lib.rs")));
    assert!(found.contains("src/lib.json: No such file"), "{found}");
    assert_eq!(Model::open(&here.join("tests/models/tiny.onnx")).unwrap().id(), tiny().id());
}

#[test]
fn invalid_cards_are_refused() {
    let refused =
        |card: &[u8]| message(Model::new(ONNX.to_vec(), card, Path::new("models/tiny.onnx")));
    let starts = "models/tiny.json is not a model card: ";
    for (card, reason) in [
        (b"no json".to_vec(), "expected ident at line 1 column 2"),
        (b"{}".to_vec(), "it has no format"),
        (
            card_with(json!({ "teperature": 1 })).to_string().into_bytes(),
            "unknown field `teperature`",
        ),
        (
            card_with(json!({ "block": 0 })).to_string().into_bytes(),
            "block is 0; it may be 1 to 64",
        ),
        (
            card_with(json!({ "states": 3 })).to_string().into_bytes(),
            "states is 3; it may be 1 or 4",
        ),
        (card_with(json!({ "temperature": 0 })).to_string().into_bytes(), "temperature is 0; it"),
        (
            card_with(json!({ "pixels_per_pitch": 5 })).to_string().into_bytes(),
            "pixels_per_pitch is 5; it may be 3 or 4",
        ),
        (
            card_with(json!({ "symbols": 4 })).to_string().into_bytes(),
            "symbols is 4; the network has Some(8)",
        ),
        (
            card_with(json!({ "states": 1 })).to_string().into_bytes(),
            "states is 1; the network has Some(4)",
        ),
    ] {
        let found = refused(&card);
        assert!(found.starts_with(&format!("{starts}{reason}")), "{found}");
        assert!(found.ends_with("; export the model again"), "{found}");
    }
}

#[test]
fn models_of_another_front_end_are_refused() {
    let other = "fulgurite voxel decoder 2";
    assert_eq!(
        message(open(ONNX, &card_with(json!({ "format": other })))),
        "models/tiny.json has format \"fulgurite voxel decoder 2\", not \"fulgurite voxel \
         decoder 1\"; export the model again"
    );
    // The card says format 1, the network itself says 2.
    let own = super::MODEL_FORMAT.as_bytes();
    let at = ONNX.windows(own.len()).position(|bytes| bytes == own).unwrap();
    let mut onnx = ONNX.to_vec();
    onnx[at..at + own.len()].copy_from_slice(other.as_bytes());
    let error = open(&onnx, &card_for(&onnx)).unwrap_err();
    assert!(matches!(&error, DecodeError::ModelFormat { path, .. } if path.ends_with("tiny.onnx")));
}

#[test]
fn files_that_differ_from_the_card_are_refused() {
    let mut onnx = ONNX.to_vec();
    *onnx.last_mut().unwrap() ^= 1;
    let found = open(&onnx, &card()).unwrap_err();
    assert!(matches!(&found, DecodeError::ModelHash { found, expected, .. } if found != expected));
    assert!(found.to_string().ends_with("use both from one export"), "{found}");
}

#[test]
fn files_without_a_network_are_refused() {
    for bytes in [&b"hardly a network"[..], b"", &ONNX[..ONNX.len() / 2]] {
        let error = open(bytes, &card_for(bytes)).unwrap_err();
        assert!(matches!(error, DecodeError::NotOnnx { .. }), "{error:?}");
    }
    // A graph without inputs and outputs is valid ONNX.
    let empty = [0x3a, 0x02, 0x12, 0x00];
    assert_eq!(
        message(open(&empty, &card_for(&empty))),
        "models/tiny.onnx is not an ONNX network of the lab: it has 0 inputs and 0 outputs; it \
         must have one of each; export it again"
    );
}

#[test]
fn models_of_another_medium_are_refused() {
    let found = Learned::new(&tiny(), Medium::Phase, &EngineChoice::default()).unwrap_err();
    let id = tiny().id();
    assert_eq!(
        found.to_string(),
        format!("the model {id} has 4 states, but a phase medium has 1; use another model")
    );
}

#[test]
fn non_finite_weights_are_refused() {
    let graph = File::read(ONNX).unwrap().graph.unwrap();
    let weights = graph.weights.iter().find(|tensor| tensor.raw.len() > 64).unwrap();
    let at = ONNX.windows(weights.raw.len()).position(|bytes| bytes == weights.raw);
    for bad in [f32::NAN, f32::INFINITY] {
        let mut bytes = ONNX.to_vec();
        bytes[at.unwrap() + 8..][..4].copy_from_slice(&bad.to_le_bytes());
        let error = open(&bytes, &card_for(&bytes)).unwrap_err();
        let DecodeError::ModelNotFinite { place, .. } = &error else { panic!("{error}") };
        assert_eq!(*place, format!("the weights {:?}", weights.name));
    }
}

#[test]
fn non_finite_logits_are_refused() {
    let (side, model) = (shape(32), tiny());
    let planes = planes(side, 7);
    let mut found = middle(&model, |logits| logits[3 * 1024 + 5 * 32 + 9] = f32::NAN);
    assert_eq!(
        message(logarithms(&mut found, &planes, side)),
        format!(
            "the model {} has a number that is not finite in the logits of the voxel in row 5, \
             column 9; use an undamaged one",
            model.id()
        )
    );
    let mut few = middle(&model, |logits| logits.truncate(100));
    assert_eq!(
        message(logarithms(&mut few, &planes, side)),
        format!(
            "middle cannot run the model {}: it gave 100 logits of a tile's 8192; try the other \
             engine",
            model.id()
        )
    );
}

#[test]
fn images_of_another_size_are_refused() {
    let channel = Channel::preset("easy").unwrap();
    let (images, _) = sector(&channel, shape(32), 8);
    let model = shipped(INT8);
    let mut decoder = Learned::new(&model, channel.medium, &EngineChoice::default()).unwrap();
    let error = decoder.decode(&images, shape(64)).unwrap_err();
    assert!(matches!(error, DecodeError::Images { rows: 64, columns: 64, .. }), "{error}");
}

#[test]
fn missing_engines_are_errors() {
    let model = tiny();
    let start = |library: PathBuf| {
        let library = Some(library);
        let choice = EngineChoice::OnnxRuntime { library, device: Device::Cpu };
        Learned::new(&model, Medium::Birefringent, &choice).unwrap_err()
    };
    let found = start("/nowhere/libonnxruntime.so".into());
    assert_eq!(
        found.to_string(),
        "no onnxruntime: cannot read /nowhere/libonnxruntime.so: No such file or directory (os \
         error 2); name the file libonnxruntime.so of version 1.20 or later by the variable \
         FULGURITE_ONNXRUNTIME, or take the built-in engine"
    );
    // A file that is not a library.
    let found = start(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    assert!(matches!(found, DecodeError::EngineMissing { .. }), "{found}");
}

/// When a GPU is requested, it is used, or an error says why not, or the CPU takes over.
#[test]
fn gpu_is_used_only_on_request() {
    let model = tiny();
    if onnx_runtime(&model).is_none() {
        return;
    }
    let start = |device| {
        let choice = EngineChoice::OnnxRuntime { library: None, device };
        Learned::new(&model, Medium::Birefringent, &choice)
    };
    match start(Device::Cuda) {
        Ok(decoder) => assert_eq!(decoder.engine(), "onnxruntime-cuda"),
        Err(error) => {
            assert!(matches!(error, DecodeError::EngineMissing { .. }), "{error}");
            let planes = planes(shape(32), 9);
            let mut decoder = start(Device::CudaIfAvailable).unwrap();
            assert_eq!(decoder.engine(), "onnxruntime");
            assert!(logarithms(&mut decoder, &planes, shape(32)).is_ok());
        }
    }
}

/// On sectors of drives and platters that neither decoder was trained on, the learned one makes
/// less than half the errors.
#[test]
fn the_shipped_network_beats_the_linear_decoder() {
    let channel = Channel::preset("nominal").unwrap();
    let side = shape(96);
    let sectors = |seeds: std::ops::Range<u64>| -> Vec<LabeledSector> {
        seeds.map(|number| sector(&channel, side, number)).collect()
    };
    let (train, test) = (sectors(0..16), sectors(1000..1008));
    let mut fit = LinearFit::new(channel.medium, 3, true, side);
    known(&train).for_each(|(images, symbols)| fit.add(images, symbols).unwrap());
    let (mut linear, _) = fit.finish(known(&train)).unwrap();
    let model = shipped(INT8);
    let mut learned = Learned::new(&model, channel.medium, &EngineChoice::BuiltIn).unwrap();
    let (by_linear, by_learned) =
        (scores(&channel, &mut linear, &test), scores(&channel, &mut learned, &test));
    let found = [errors(&by_linear), errors(&by_learned)];
    assert!(found[1] < 0.5 * found[0] && found[1] < 0.02, "{found:?}");
    let information = |scores: &Scores| scores.mean(|score| score.information).0;
    let found = [information(&by_linear), information(&by_learned)];
    assert!(found[1] > found[0] && found[1] > 2.9, "{found:?}");

    // The other engine reads the same, and nearly the same with the float32 network.
    let Some(mut reference) = onnx_runtime(&model) else { return };
    let by_reference = information(&scores(&channel, &mut reference, &test));
    assert!((by_reference - found[1]).abs() < 0.01, "{by_reference} and {found:?}");
    let mut full = onnx_runtime(&shipped(FLOAT)).unwrap();
    let by_full = information(&scores(&channel, &mut full, &test));
    assert!((by_full - found[1]).abs() < 0.01, "{by_full} and {found:?}");
}

/// tract runs the float32 network like ONNX Runtime, if that is there, and reads as well as our own
/// int8 engine.
#[cfg(feature = "tract")]
#[test]
fn tract_decodes_with_the_float32_network() {
    let channel = Channel::preset("nominal").unwrap();
    let side = shape(96);
    let test: Vec<LabeledSector> =
        (1000..1008).map(|number| sector(&channel, side, number)).collect();
    let (model, small) = (shipped(FLOAT), shipped(INT8));
    let decoder = |model| Learned::new(model, channel.medium, &EngineChoice::BuiltIn).unwrap();
    let (mut full, mut small) = (decoder(&model), decoder(&small));
    assert_eq!((full.engine(), small.engine()), ("tract", "integer"));
    let found = [&mut full, &mut small]
        .map(|decoder| scores(&channel, decoder, &test).mean(|score| score.information).0);
    assert!(found[0] > 2.9 && (found[0] - found[1]).abs() < 0.01, "{found:?}");
    let Some(mut reference) = onnx_runtime(&model) else { return };
    let planes = registered(&test[0].0, side, channel.medium, 3).unwrap();
    let [a, b] =
        [&mut full, &mut reference].map(|decoder| logarithms(decoder, &planes, side).unwrap());
    assert!(difference(&a, &b) < 1e-3, "{}", difference(&a, &b));
}

/// Without tract a float32 network needs ONNX Runtime; the error names all remedies.
#[cfg(not(feature = "tract"))]
#[test]
fn float32_networks_need_another_engine() {
    let model = tiny();
    let found = message(Learned::new(&model, Medium::Birefringent, &EngineChoice::BuiltIn));
    assert_eq!(
        found,
        format!(
            "no built-in engine for networks of float32: the model {} is one, and this program was \
             built without tract; take the engine onnxruntime (ONNX Runtime), a network of 8 bits, \
             or a program that was built with `--features tract`",
            model.id()
        )
    );
}

/// Our engine and ONNX Runtime agree on the same file, up to rounding.
#[test]
fn integer_results_match_onnx_runtime() {
    let model = shipped(INT8);
    let mut builtin = Learned::new(&model, Medium::Birefringent, &EngineChoice::BuiltIn).unwrap();
    assert_eq!(builtin.engine(), "integer");
    let Some(mut reference) = onnx_runtime(&model) else { return };
    for (side, number) in [(shape(96), 11), (SectorShape::new(200, 36).unwrap(), 12)] {
        let planes = planes(side, number);
        let [a, b] = [&mut builtin, &mut reference]
            .map(|decoder| logarithms(decoder, &planes, side).unwrap());
        // A quantization step of the logits, and the differences in such steps.
        let unit = 0.381 / model.card().temperature;
        let apart: Vec<f32> = a.iter().zip(&b).map(|(a, b)| (a - b).abs() / unit).collect();
        let alike = apart.iter().filter(|apart| **apart < 0.5).count() as f64 / apart.len() as f64;
        let max = apart.iter().fold(0.0f32, |max, one| max.max(*one));
        assert!(alike > 0.7 && max < 6.0, "{alike} are alike; the most is {max} steps");
    }
}

/// The shipped engine, without support for bytes.
#[derive(Debug)]
struct ByPlanes(Box<dyn Engine>);

impl Engine for ByPlanes {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn run(&mut self, tile: &Tile<'_>) -> Result<Logits<'_>, DecodeError> {
        self.0.run(tile)
    }
}

/// Images that are quantized during registration are read like those that the engine quantizes, in
/// one tile and in several: they differ only in rounding.
#[test]
fn bytes_are_read_as_planes() {
    let model = standard_model().unwrap();
    let channel = Channel::preset("nominal").unwrap();
    let side = SectorShape::new(92, 68).unwrap();
    let (images, _) = sector(&channel, side, 3);
    for tile in [384, 44] {
        let engine = || EngineChoice::BuiltIn.start(&model).unwrap();
        let decoder = |engine| {
            Learned::with_engine(&model, channel.medium, engine).unwrap().with_tile_side_max(tile)
        };
        let by_bytes = decoder(engine()).decode(&images, side).unwrap();
        let by_planes = decoder(Box::new(ByPlanes(engine()))).decode(&images, side).unwrap();
        let differ = (0..side.voxels())
            .filter(|voxel| by_bytes.likeliest(*voxel) != by_planes.likeliest(*voxel))
            .count();
        assert!(differ * 1000 <= side.voxels(), "{differ} voxels, tiles of {tile}");
        let off = by_bytes.logarithms().iter().zip(by_planes.logarithms());
        let mean = off.map(|(a, b)| (a - b).abs()).sum::<f32>() / (8 * side.voxels()) as f32;
        assert!(mean < 0.1, "{mean}, tiles of {tile}");
    }
}
