//! What the file of a network says of itself, read before any engine sees it. It does not judge
//! whether the graph can be run: engines do.

use tract_onnx::onnx;
use tract_onnx::pb::tensor_shape_proto::dimension::Value as Length;
use tract_onnx::pb::type_proto::Value as Type;
use tract_onnx::pb::{GraphProto, TensorProto, ValueInfoProto};
use tract_onnx::prelude::Framework as _;

/// ONNX's number of the type float32.
const FLOAT: i32 = 1;

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Graph {
    /// What its metadata says it is.
    pub(crate) format: Option<String>,
    /// Images that it reads, if it says.
    pub(crate) states: Option<usize>,
    /// Symbols that it tells apart, if it says.
    pub(crate) symbols: Option<usize>,
    /// Weights that are not finite.
    pub(crate) not_a_number: Option<String>,
}

/// Reads a file; what is wrong with it is the error.
pub(crate) fn read(file: &[u8]) -> Result<Graph, String> {
    let network = onnx().proto_model_for_read(&mut &file[..]).map_err(|error| error.to_string())?;
    let format = network.metadata_props.iter().find(|entry| entry.key == "format");
    let format = format.map(|entry| entry.value.clone());
    let graph = network.graph.ok_or_else(|| "it has no graph".to_owned())?;
    let inputs = inputs(&graph);
    let ([input], [output]) = (&inputs[..], &graph.output[..]) else {
        let (ins, outs) = (inputs.len(), graph.output.len());
        return Err(format!("it has {ins} inputs and {outs} outputs; one of each is meant"));
    };
    let not_a_number = weights(&graph)
        .find(|tensor| !is_finite(tensor))
        .map(|tensor| format!("the weights {:?}", tensor.name));
    Ok(Graph { format, states: channels(input), symbols: channels(output), not_a_number })
}

/// Inputs that are not weights; older writers list both.
fn inputs(graph: &GraphProto) -> Vec<&ValueInfoProto> {
    let is_weight = |name: &str| graph.initializer.iter().any(|tensor| tensor.name == name);
    graph.input.iter().filter(|input| !is_weight(&input.name)).collect()
}

/// The second length of `[n, channels, rows, columns]`.
fn channels(of: &ValueInfoProto) -> Option<usize> {
    let Type::TensorType(tensor) = of.r#type.as_ref()?.value.as_ref()?;
    match tensor.shape.as_ref()?.dim.get(1)?.value.as_ref()? {
        Length::DimValue(count) => usize::try_from(*count).ok(),
        Length::DimParam(_) => None,
    }
}

fn weights(graph: &GraphProto) -> impl Iterator<Item = &TensorProto> {
    let attributes = graph.node.iter().flat_map(|node| &node.attribute);
    graph.initializer.iter().chain(attributes.filter_map(|attribute| attribute.t.as_ref()))
}

fn is_finite(tensor: &TensorProto) -> bool {
    if tensor.data_type != FLOAT {
        return true;
    }
    let raw = tensor.raw_data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    raw.chain(tensor.float_data.iter().copied()).all(f32::is_finite)
}
