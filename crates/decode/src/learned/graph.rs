//! Reads the metadata of a network's file, before any engine sees it. Whether the graph can be run
//! is left to the engines.

use std::collections::BTreeSet;

use super::onnx::{self, Tensor, ValueInfo};

/// ONNX's code of the type float32.
const FLOAT: i32 = 1;

/// The metadata of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Graph {
    /// The format that it declares.
    pub(crate) format: Option<String>,
    /// Number of input images, if declared.
    pub(crate) states: Option<usize>,
    /// Size of the alphabet, if declared.
    pub(crate) symbols: Option<usize>,
    /// Name of weights that are not finite, if any.
    pub(crate) non_finite_weights: Option<String>,
}

/// Reads a file; the error says what is wrong with it.
pub(crate) fn read(file: &[u8]) -> Result<Graph, String> {
    let network = onnx::File::read(file)?;
    let format = network.metadata.iter().find(|(key, _)| key == "format");
    let format = format.map(|(_, value)| value.clone());
    let graph = network.graph.ok_or("it has no graph")?;
    let inputs = inputs(&graph);
    let ([input], [output]) = (&inputs[..], &graph.outputs[..]) else {
        let (ins, outs) = (inputs.len(), graph.outputs.len());
        return Err(format!("it has {ins} inputs and {outs} outputs; it must have one of each"));
    };
    let non_finite_weights = weights(&graph)
        .find(|tensor| !is_finite(tensor))
        .map(|tensor| format!("the weights {:?}", tensor.name));
    Ok(Graph { format, states: channels(input), symbols: channels(output), non_finite_weights })
}

/// Returns the inputs that are not weights; older writers list both.
fn inputs(graph: &onnx::Graph) -> Vec<&ValueInfo> {
    let weights: BTreeSet<&str> = graph.weights.iter().map(|tensor| &*tensor.name).collect();
    graph.inputs.iter().filter(|input| !weights.contains(&*input.name)).collect()
}

/// Returns the second dimension of `[n, channels, rows, columns]`.
fn channels(port: &ValueInfo) -> Option<usize> {
    port.lengths.get(1).copied().flatten().and_then(|count| usize::try_from(count).ok())
}

fn weights(graph: &onnx::Graph) -> impl Iterator<Item = &Tensor> {
    let attributes = graph.nodes.iter().flat_map(|node| &node.attributes);
    graph.weights.iter().chain(attributes.filter_map(|attribute| attribute.tensor.as_ref()))
}

fn is_finite(tensor: &Tensor) -> bool {
    if tensor.kind != FLOAT {
        return true;
    }
    let raw = tensor.raw.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    raw.chain(tensor.floats.iter().copied()).all(f32::is_finite)
}
