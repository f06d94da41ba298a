//! Tests of the engine with the shipped network: every instruction set, different sizes, and graphs
//! that it cannot run.

use std::path::Path;

use fulgurite_codes::Isa;
use fulgurite_platter::numeric::Plane;

use super::IntegerEngine;
use super::kernel::Kernel;
use super::map::Map;
use super::network::Network;
use crate::learned::onnx::{File, Graph};
use crate::learned::{Engine as _, Logits, Model, Tile};
use crate::limits::STEPS_MAX;

fn model() -> Model {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    Model::open(&models.join("nominal-md-int8.onnx")).unwrap()
}

/// Returns arbitrary images, in the range of real ones.
fn images([rows, columns]: [usize; 2]) -> Vec<Plane> {
    let value = |at: u32| (at.wrapping_mul(2_654_435_761) >> 8) as f32 / 1.2e7 - 0.7;
    let plane = |state: u32| {
        let mut plane = Plane::new(3 * rows, 3 * columns);
        (state << 20..).zip(&mut plane.values).for_each(|(at, pixel)| *pixel = value(at));
        plane
    };
    (0..4).map(plane).collect()
}

/// Runs the engine on one tile of these images.
fn run(engine: &mut IntegerEngine, images: &[Plane]) -> Result<Vec<f32>, String> {
    let size = [images[0].rows, images[0].columns];
    let found = engine.run(&Tile::new(images, [0, 0], size)).map(Logits::into_planes);
    found.map_err(|error| error.to_string())
}

/// All instruction sets give the same logits, bit by bit, in tiles of whole vectors and others.
#[test]
fn isa_levels_give_the_same_logits() {
    let model = model();
    for size in [[4, 4], [12, 40], [32, 32]] {
        let images = images(size);
        let run = |isa| {
            let mut engine = IntegerEngine::with_kernel(&model, Kernel::for_isa(isa)).unwrap();
            run(&mut engine, &images).unwrap()
        };
        let expected = run(Isa::Scalar);
        let first = expected[0].to_bits();
        assert!(expected.iter().any(|logit| logit.to_bits() != first));
        for isa in Isa::supported() {
            assert!(run(isa) == expected, "{} {size:?}", isa.name());
        }
    }
}

/// Earlier runs of an engine leave no trace, in tiles of the same size and of others.
#[test]
fn engine_keeps_no_state_between_tiles() {
    let model = model();
    let (one, other) = ([12, 40], [32, 32]);
    let fresh = |size| run(&mut IntegerEngine::new(&model).unwrap(), &images(size)).unwrap();
    let mut used = IntegerEngine::new(&model).unwrap();
    for size in [one, other, one, one] {
        let mut bright = images(size);
        bright.iter_mut().for_each(|plane| plane.values.fill(9.0));
        run(&mut used, &bright).unwrap();
        assert!(run(&mut used, &images(size)).unwrap() == fresh(size), "{size:?}");
    }
}

/// Beyond a sector's edge a tile is zero, like the network's own padding.
#[test]
fn tiles_are_zero_beyond_the_sector() {
    let model = model();
    let planes = images([12, 16]);
    let mut padded = planes.clone();
    for plane in &mut padded {
        let mut larger = Plane::new(48, 60);
        for row in 0..36 {
            larger.row_mut(row)[..48].copy_from_slice(plane.row(row));
        }
        *plane = larger;
    }
    let mut engine = IntegerEngine::new(&model).unwrap();
    let beyond = engine.run(&Tile::new(&planes, [0, 0], [48, 60])).unwrap().into_planes();
    assert!(beyond == run(&mut engine, &padded).unwrap());
    let part = engine.run(&Tile::new(&planes, [24, 12], [24, 36])).unwrap().into_planes();
    let cut: Vec<Plane> = planes
        .iter()
        .map(|plane| {
            let mut part = Plane::new(24, 36);
            for row in 0..12 {
                part.row_mut(row).copy_from_slice(&plane.row(24 + row)[12..]);
            }
            part
        })
        .collect();
    assert!(part == run(&mut engine, &cut).unwrap());
}

#[test]
fn invalid_tiles_are_refused() {
    let mut engine = IntegerEngine::new(&model()).unwrap();
    let found = run(&mut engine, &images([4, 4])[..3]).unwrap_err();
    assert!(found.contains("it reads 4 images, not 3"), "{found}");
    // Images of partial blocks come out shorter than they went in.
    let found = run(&mut engine, &images([6, 4])).unwrap_err();
    assert!(found.contains("it adds [2, 2] pixels and [3, 2]"), "{found}");
    let found = run(&mut engine, &images([0, 0])).unwrap_err();
    assert!(found.contains("images of [0, 0] pixels are too small"), "{found}");
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut planes = images([4, 4]);
        planes[2].row_mut(7)[3] = bad;
        let found = run(&mut engine, &planes).unwrap_err();
        assert!(found.contains("row 7 of its images has a value that is not finite"), "{found}");
    }
    assert!(run(&mut engine, &images([4, 4])).is_ok());
}

/// Graphs with one change, and the error for each.
#[test]
fn unsupported_graphs_are_refused() {
    let model = model();
    let graph = File::read(model.onnx()).unwrap().graph.unwrap();
    assert_eq!(Network::from_graph(&graph).unwrap().steps.len(), 26);
    let refused = |change: &dyn Fn(&mut Graph), expected: &str| {
        let mut graph = graph.clone();
        change(&mut graph);
        let found = Network::from_graph(&graph).unwrap_err();
        assert!(found.contains(expected), "{found}");
    };
    let at = |kind: &str| graph.nodes.iter().position(|node| node.operator == kind).unwrap();
    let (conv, shuffle, quantize) = (at("Conv"), at("DepthToSpace"), at("QuantizeLinear"));
    let attribute = |graph: &mut Graph, node: usize, name: &str, value: i64| {
        let attributes = &mut graph.nodes[node].attributes;
        let found = attributes.iter_mut().find(|attribute| attribute.name == name).unwrap();
        found.integer = value;
        found.integers.fill(value);
    };
    let tensor = |graph: &mut Graph, name: &str, bytes: &[u8]| {
        let found = graph.weights.iter_mut().find(|tensor| tensor.name == name).unwrap();
        found.raw = bytes.to_vec();
        found.floats.clear();
        found.integers.clear();
    };
    refused(
        &|graph| graph.nodes[conv].operator = "Gelu".to_owned(),
        "Gelu: its operator is not supported",
    );
    refused(&|graph| attribute(graph, conv, "dilations", 2), "with gaps or in groups");
    refused(&|graph| attribute(graph, conv, "group", 2), "with gaps or in groups");
    refused(&|graph| attribute(graph, conv, "strides", 0), "stride 0");
    refused(&|graph| attribute(graph, conv, "strides", i64::MAX), "stride 9223372036854775807");
    refused(&|graph| attribute(graph, shuffle, "blocksize", i64::MAX), "in squares of 9223");
    refused(&|graph| attribute(graph, conv, "strides", -1), "strides of [-1, -1]");
    refused(&|graph| attribute(graph, conv, "pads", 7), "pads 7");
    refused(&|graph| attribute(graph, shuffle, "blocksize", 5), "not groups in squares of 5");
    refused(&|graph| graph.nodes[shuffle].attributes.clear(), "has no attribute blocksize");
    refused(&|graph| graph.nodes[conv].inputs.truncate(1), "it has no input 1");
    refused(&|graph| graph.nodes[conv].inputs[0] = "images".to_owned(), "\"images\" is not in 8 b");
    refused(&|graph| graph.nodes.truncate(graph.nodes.len() - 2), "its output is not the last");
    refused(&|graph| graph.nodes[quantize].inputs[1] = "none".to_owned(), "is not a constant");
    for scale in [0.0f32, -1.0, f32::NAN, f32::INFINITY] {
        let bytes = scale.to_le_bytes();
        refused(&|graph| tensor(graph, "images_scale", &bytes), "a scale of ");
    }
    let length = |graph: &mut Graph, name: &str, at: usize, value: i64| {
        let found = graph.weights.iter_mut().find(|tensor| tensor.name == name).unwrap();
        found.lengths[at] = value;
    };
    let stem = &graph.nodes[conv].inputs[1].replace("_DequantizeLinear_Output", "_quantized");
    refused(&|graph| length(graph, "head.weight_quantized", 0, 0), "24 channels to 0; 1 to 1024");
    refused(&|graph| length(graph, stem, 1, i64::MAX), "9223372036854775807 channels to 24");
    refused(&|graph| length(graph, stem, 1, -1), "the dimensions of");
    refused(&|graph| length(graph, stem, 3, 6), "a kernel of 7 by 6");
    refused(&|graph| tensor(graph, "head.weight_quantized", &[1; 7]), "another type or number");
    refused(&|graph| tensor(graph, "head.bias_quantized_scale", &[0, 0, 128, 127]), "a bias of");
    refused(&|graph| tensor(graph, "head.weight_scale", &[]), "too few scales");
}

/// The cost of a small file is bounded: any number of convolutions may share one tensor, and depth
/// to space makes images larger and larger.
#[test]
fn graphs_beyond_the_limits_are_refused() {
    let model = model();
    let graph = File::read(model.onnx()).unwrap().graph.unwrap();
    // A convolution and its quantization, repeated.
    let repeated = |conv: usize| {
        let mut long = graph.clone();
        let pair = long.nodes[conv..conv + 2].to_vec();
        assert_eq!(pair[1].operator, "QuantizeLinear");
        long.nodes.splice(conv..conv, pair.iter().cloned().cycle().take(2 * STEPS_MAX));
        Network::from_graph(&long).unwrap_err()
    };
    let head = graph.nodes.iter().rposition(|node| node.operator == "Conv").unwrap();
    let found = repeated(head);
    assert!(found.contains("over 1024 steps"), "{found}");
    let largest = graph.weights.iter().max_by_key(|tensor| tensor.raw.len()).unwrap();
    let name = largest.name.replace("_quantized", "_DequantizeLinear_Output");
    let found =
        repeated(graph.nodes.iter().position(|node| node.inputs.get(1) == Some(&name)).unwrap());
    assert!(found.contains("over 67108864 weights"), "{found}");
    let left = &mut 1000;
    let found = Map::new(1, [10, 10], 0, 0, left).unwrap();
    assert_eq!((found.bytes.len(), *left), (704, 296));
    for (groups, size) in [(1, [10, 10]), (1 << 20, [1 << 20, 1 << 20]), (1, [usize::MAX, 1])] {
        let found = Map::new(groups, size, 1, 0, left).unwrap_err();
        assert!(found.contains("are too large"), "{found}");
    }
}

/// A float32 network is for another engine.
#[test]
fn float32_networks_are_refused() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let model = Model::open(&models.join("nominal-md.onnx")).unwrap();
    let found = IntegerEngine::new(&model).unwrap_err().to_string();
    assert!(found.starts_with("integer cannot run the model nominal-md 2"), "{found}");
    assert!(found.contains("is not in 8 bits") && found.ends_with("the other engine"), "{found}");
}
