//! What must hold of a file of a network, whatever the bytes: no panic, bounded memory, and the
//! same answer twice.
//!
//! The fuzz target calls this with what the fuzzer finds, and `crates/decode/tests/networks.rs`
//! with seeded changes of the networks that are shipped, on every run of the tests.

use std::path::Path;
use std::sync::Arc;

use fulgurite_decode::{EngineChoice, MODEL_FORMAT, Model, Tile};
use fulgurite_platter::numeric::Plane;

/// Rows and columns of pixels of what networks are run on: 4 x 4 voxels.
const SIDE: usize = 12;

/// A file, opened with a card that fits it, and run if our engine takes it. How far it came is
/// returned: 0 when it was refused, 1 when it could be opened, 2 when there were logits.
pub(crate) fn network(file: &[u8]) -> usize {
    let first = reached(file);
    assert_eq!(first, reached(file), "the same bytes are the same network");
    match first {
        Ok(logits) => {
            assert!(logits.iter().all(|logit| f32::from_bits(*logit).is_finite()));
            2
        }
        Err((is_open, reason)) => {
            assert!(!reason.is_empty() && reason.len() < 2000 + file.len(), "{reason}");
            usize::from(is_open)
        }
    }
}

/// The bits of all logits, or whether it could be opened and the reason why there are none.
fn reached(file: &[u8]) -> Result<Vec<u32>, (bool, String)> {
    let card = format!(
        r#"{{"format":"{MODEL_FORMAT}","name":"any","version":"1","blake3":"{}","precision":"int8",
        "states":4,"symbols":8,"pixels_per_pitch":3,"block":4,"margin":4,"temperature":1.0,
        "channel":"none"}}"#,
        blake3::hash(file).to_hex()
    );
    let model = Model::new(file.to_vec(), card.as_bytes(), Path::new("any.onnx"))
        .map_err(|error| (false, error.to_string()))?;
    let model = Arc::new(model);
    let refused = |error: fulgurite_decode::DecodeError| (true, error.to_string());
    let mut engine = EngineChoice::BuiltIn.start(&model).map_err(refused)?;
    let mut planes = vec![Plane::new(SIDE, SIDE); 4];
    for (at, pixel) in planes.iter_mut().flat_map(|plane| &mut plane.values).enumerate() {
        *pixel = (at % 97) as f32 / 60.0 - 0.8;
    }
    let logits = engine.run(&Tile::new(&planes, [0, 0], [SIDE, SIDE])).map_err(refused)?;
    Ok(logits.into_planes().into_iter().map(f32::to_bits).collect())
}
