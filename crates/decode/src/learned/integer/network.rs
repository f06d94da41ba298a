//! Converts the graph of an int8 network to the steps that compute it.
//!
//! ```text
//! images -Quantize-> u8 -Dequantize-> Conv | Add | DepthToSpace -Quantize-> u8 -Dequantize-> ..
//! weights i8, bias i32 -Dequantize----^
//! ```
//!
//! That is ONNX's QDQ format: operators on real numbers between conversions, meant to be run in
//! integers. Sizes are not part of it: a network takes images of any size.

use std::collections::BTreeMap;

use super::graph::{
    INT8, UINT8, channel_scale, dims, floats, input, integer, integers, uniform_attribute,
};
use super::map::GROUP;
use crate::Range;
use crate::learned::onnx::{File, Graph, Node, Tensor as Numbers};
use crate::limits::{STEPS_MAX, WEIGHTS_MAX};

/// Longest side of a convolution, most channels, most terms of a sum: they bound a graph's memory
/// and keep sums within 32 bits.
const SIDE_MAX: usize = 16;
const CHANNELS_MAX: usize = 1024;
const TERMS_MAX: usize = 1 << 15;

/// The 8-bit output of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tensor {
    pub(super) channels: usize,
    pub(super) range: Range,
}

/// The parameters of a convolution.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    pub(super) side: usize,
    pub(super) stride: usize,
    /// Zero padding of its input on each side, in pixels.
    pub(super) padding: usize,
    /// By output channel: four input channels at a position, by group, row and column.
    pub(super) channels: Vec<Vec<[i8; GROUP]>>,
    /// Bias of each output channel's sum.
    pub(super) bias: Vec<i32>,
    /// The unit of that sum in units of the output.
    pub(super) scale: Vec<f32>,
}

/// Computes a tensor from earlier ones.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The images.
    Input,
    Convolution {
        from: usize,
        weights: Weights,
    },
    Add {
        from: [usize; 2],
    },
    /// Depth to space: input channels are ordered by position in a square of `side`, then by output
    /// channel.
    DepthToSpace {
        from: usize,
        side: usize,
    },
}

impl Step {
    /// Returns the tensors that it reads.
    pub(super) fn reads(&self) -> Vec<usize> {
        match self {
            Self::Input => Vec::new(),
            Self::Convolution { from, .. } | Self::DepthToSpace { from, .. } => vec![*from],
            Self::Add { from } => from.to_vec(),
        }
    }
}

/// Steps, each of which computes the tensor with its index; the last one computes the logits.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) tensors: Vec<Tensor>,
    pub(super) steps: Vec<Step>,
}

impl Network {
    /// Reads an ONNX file; the error says why it cannot be run.
    pub(super) fn read(file: &[u8]) -> Result<Self, String> {
        Self::from_graph(&File::read(file)?.graph.ok_or("it has no graph")?)
    }

    /// Converts a graph.
    pub(super) fn from_graph(graph: &Graph) -> Result<Self, String> {
        Builder::new(graph)?.build(graph)
    }
}

/// An integer constant that a Dequantize node converts to real numbers.
#[derive(Clone, Copy)]
struct Constant<'a> {
    values: &'a Numbers,
    scale: &'a Numbers,
}

/// The meaning of a name while a graph is read.
#[derive(Clone)]
enum Value<'a> {
    Images,
    Constant(Constant<'a>),
    /// An 8-bit tensor, quantized or dequantized.
    Tensor(usize),
    /// Computed, but not yet quantized.
    Unquantized {
        step: Unquantized<'a>,
        channels: usize,
    },
}

#[derive(Clone)]
enum Unquantized<'a> {
    Convolution { from: usize, node: &'a Node, weights: Constant<'a>, bias: Constant<'a> },
    Add { from: [usize; 2] },
    DepthToSpace { from: usize, side: usize },
}

struct Builder<'a> {
    initializers: BTreeMap<&'a str, &'a Numbers>,
    values: BTreeMap<&'a str, Value<'a>>,
    network: Network,
    /// Remaining budget of weights for convolutions.
    weights_left: usize,
}

impl<'a> Builder<'a> {
    fn new(graph: &'a Graph) -> Result<Self, String> {
        let initializers: BTreeMap<_, _> =
            graph.weights.iter().map(|tensor| (&*tensor.name, tensor)).collect();
        let mut inputs = graph.inputs.iter().filter(|i| !initializers.contains_key(&*i.name));
        let input = inputs.next().ok_or("it has no input")?;
        let values = BTreeMap::from([(&*input.name, Value::Images)]);
        let network = Network { tensors: Vec::new(), steps: Vec::new() };
        Ok(Self { initializers, values, network, weights_left: WEIGHTS_MAX })
    }

    fn build(mut self, graph: &'a Graph) -> Result<Network, String> {
        for node in &graph.nodes {
            let value = self
                .node(node)
                .map_err(|error| format!("its node {:?}, {}: {error}", node.name, node.operator))?;
            let [output] = &node.outputs[..] else {
                return Err(format!("its node {:?} has several outputs", node.name));
            };
            self.values.insert(output, value);
        }
        let output = graph.outputs.first().ok_or("it has no output")?;
        if !matches!(self.network.steps.first(), Some(Step::Input)) {
            return Err("its first step is not the images'".to_owned());
        }
        match self.values.get(&*output.name) {
            Some(Value::Tensor(last)) if last + 1 == self.network.steps.len() => Ok(self.network),
            Some(_) | None => Err("its output is not the last that it makes in 8 bits".to_owned()),
        }
    }

    fn node(&mut self, node: &'a Node) -> Result<Value<'a>, String> {
        match &*node.operator {
            "DequantizeLinear" => self.dequantize(node),
            "QuantizeLinear" => self.quantize(node),
            "Conv" => {
                let from = self.tensor(node, 0)?;
                let (weights, bias) = (self.constant(node, 1)?, self.constant(node, 2)?);
                let channels = dims(weights.values)?[0];
                let step = Unquantized::Convolution { from, node, weights, bias };
                Ok(Value::Unquantized { step, channels })
            }
            "Add" => {
                let from = [self.tensor(node, 0)?, self.tensor(node, 1)?];
                let [a, b] = from.map(|step| self.network.tensors[step].channels);
                let is_image =
                    from.iter().any(|from| matches!(self.network.steps[*from], Step::Input));
                if a != b || from[0] == from[1] || is_image {
                    return Err(format!("{a} channels and {b} of the steps {from:?}"));
                }
                Ok(Value::Unquantized { step: Unquantized::Add { from }, channels: a })
            }
            "DepthToSpace" => {
                let from = self.tensor(node, 0)?;
                let side = integer(node, "blocksize")?;
                let mode = node.attributes.iter().find(|attribute| attribute.name == "mode");
                if mode.is_none_or(|mode| mode.text != b"CRD") {
                    return Err("its mode is not CRD".to_owned());
                }
                let channels = self.network.tensors[from].channels;
                if !(1..=SIDE_MAX).contains(&side) || !channels.is_multiple_of(side * side * GROUP)
                {
                    return Err(format!("{channels} channels are not groups in squares of {side}"));
                }
                let channels = channels / (side * side);
                Ok(Value::Unquantized { step: Unquantized::DepthToSpace { from, side }, channels })
            }
            _ => Err("its operator is not supported in 8 bits".to_owned()),
        }
    }

    fn dequantize(&self, node: &'a Node) -> Result<Value<'a>, String> {
        let name = input(node, 0)?;
        if let Some(values) = self.initializers.get(name).copied() {
            let scale = self.initializer(node, 1)?;
            if let Ok(zero) = self.initializer(node, 2)
                && integers(zero)?.iter().any(|zero| *zero != 0)
            {
                return Err("weights with a zero that is not 0".to_owned());
            }
            return Ok(Value::Constant(Constant { values, scale }));
        }
        let tensor = self.tensor(node, 0)?;
        if self.range(node)? != self.network.tensors[tensor].range {
            return Err("another range than that it was made with".to_owned());
        }
        Ok(Value::Tensor(tensor))
    }

    fn quantize(&mut self, node: &'a Node) -> Result<Value<'a>, String> {
        let range = self.range(node)?;
        let name = input(node, 0)?;
        let (step, channels) = match self.values.get(name).cloned() {
            Some(Value::Images) if self.network.steps.is_empty() => (Step::Input, 0),
            Some(Value::Unquantized { step, channels }) => (self.finish(&step, range)?, channels),
            Some(Value::Images | Value::Constant(_) | Value::Tensor(_)) | None => {
                return Err(format!("{name:?} is quantized twice, or not computed"));
            }
        };
        if channels > CHANNELS_MAX {
            return Err(format!("{channels} channels; {CHANNELS_MAX} are possible"));
        }
        if self.network.steps.len() >= STEPS_MAX {
            return Err(format!("over {STEPS_MAX} steps"));
        }
        self.network.steps.push(step);
        self.network.tensors.push(Tensor { channels, range });
        Ok(Value::Tensor(self.network.steps.len() - 1))
    }

    /// Completes a step, once the range of its output is known.
    fn finish(&mut self, unquantized: &Unquantized<'a>, range: Range) -> Result<Step, String> {
        match *unquantized {
            Unquantized::Add { from } => Ok(Step::Add { from }),
            Unquantized::Convolution { from, node, weights, bias } => {
                let weights = self.weights(from, node, weights, bias, range)?;
                Ok(Step::Convolution { from, weights })
            }
            Unquantized::DepthToSpace { from, side } => {
                let tensor = self.network.tensors[from];
                if tensor.range != range {
                    return Err("a range other than that of its input".to_owned());
                }
                // The input is the latest step and a convolution, so its output channels can be
                // reordered.
                let last = self.network.steps.len() - 1;
                match self.network.steps.last_mut() {
                    Some(Step::Convolution { weights, .. }) if from == last => {
                        weights.reorder_for_depth_to_space(side * side);
                    }
                    Some(_) | None => return Err("its input is not a convolution's".to_owned()),
                }
                Ok(Step::DepthToSpace { from, side })
            }
        }
    }

    fn weights(
        &mut self,
        from: usize,
        node: &Node,
        weights: Constant<'_>,
        bias: Constant<'_>,
        to: Range,
    ) -> Result<Weights, String> {
        let [outputs, inputs, side, stride, padding] = convolution_params(node, weights.values)?;
        let tensor = &mut self.network.tensors[from];
        // The number of images is known only from their convolution.
        if matches!(self.network.steps[from], Step::Input) && tensor.channels == 0 {
            tensor.channels = inputs;
        }
        let terms = inputs * side * side;
        if tensor.channels != inputs || terms > TERMS_MAX {
            return Err(format!("{inputs} input channels where {} are", tensor.channels));
        }
        let left = self.weights_left.checked_sub(outputs * terms);
        self.weights_left = left.ok_or_else(|| format!("over {WEIGHTS_MAX} weights in all"))?;
        let values: Vec<i8> = integers(weights.values)?
            .into_iter()
            .map(i8::try_from)
            .collect::<Result<_, _>>()
            .map_err(|e| e.to_string())?;
        let (scales, biases) = (floats(weights.scale)?, integers(bias.values)?);
        let bias_scales = floats(bias.scale)?;
        if weights.values.kind != INT8 || values.len() != outputs * terms || biases.len() != outputs
        {
            return Err("weights or biases of another type or number".to_owned());
        }
        let range = tensor.range;
        let area = side * side;
        let mut found =
            Weights { side, stride, padding, channels: vec![], bias: vec![], scale: vec![] };
        for (output, own) in values.chunks_exact(terms).enumerate() {
            let weight = |group: usize, at: usize| {
                std::array::from_fn(|lane| {
                    let input = group * GROUP + lane;
                    if input < inputs { own[input * area + at] } else { 0 }
                })
            };
            let groups = 0..inputs.div_ceil(GROUP);
            let taps = groups.flat_map(|group| (0..area).map(move |at| (group, at)));
            found.channels.push(taps.map(|(group, at)| weight(group, at)).collect());
            // The unit of a sum: input scale times weight scale.
            let unit = f64::from(range.scale) * channel_scale(&scales, output)?;
            let bias = f64::from(biases[output]) * channel_scale(&bias_scales, output)? / unit;
            // Stored inputs are offset by their zero point.
            let sum: i32 = own.iter().map(|weight| i32::from(*weight)).sum();
            let bias = bias.round_ties_even() - f64::from(sum * i32::from(range.zero));
            // Written so that NaN counts as too large.
            let is_small = bias.abs() < f64::from(1 << 30);
            if !is_small {
                return Err(format!("a bias of {bias} units of its sum"));
            }
            #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^30")]
            found.bias.push(bias as i32);
            #[expect(clippy::cast_possible_truncation, reason = "rounded to single precision")]
            let scale = (unit / f64::from(to.scale)) as f32;
            if !(scale > 0.0 && scale.is_finite()) {
                return Err(format!("a scale of {scale}"));
            }
            found.scale.push(scale);
        }
        Ok(found)
    }

    fn tensor(&self, node: &Node, at: usize) -> Result<usize, String> {
        let name = input(node, at)?;
        match self.values.get(name) {
            Some(Value::Tensor(tensor)) => Ok(*tensor),
            Some(Value::Images | Value::Constant(_) | Value::Unquantized { .. }) | None => {
                Err(format!("{name:?} is not in 8 bits"))
            }
        }
    }

    fn constant(&self, node: &Node, at: usize) -> Result<Constant<'a>, String> {
        let name = input(node, at)?;
        match self.values.get(name) {
            Some(Value::Constant(constant)) => Ok(*constant),
            Some(Value::Images | Value::Tensor(_) | Value::Unquantized { .. }) | None => {
                Err(format!("{name:?} is not a constant in integers"))
            }
        }
    }

    fn initializer(&self, node: &Node, at: usize) -> Result<&'a Numbers, String> {
        let name = input(node, at)?;
        let found = self.initializers.get(name).copied();
        found.ok_or_else(|| format!("{name:?} is not a constant"))
    }

    /// Returns the range that a node quantizes to or dequantizes from.
    fn range(&self, node: &Node) -> Result<Range, String> {
        let (scale, zero) = (self.initializer(node, 1)?, self.initializer(node, 2)?);
        let (&[scale], &[value]) = (&floats(scale)?[..], &integers(zero)?[..]) else {
            return Err("a range for each channel".to_owned());
        };
        let is_uint8 = zero.kind == UINT8;
        let value = u8::try_from(value).ok().filter(|_| is_uint8);
        let zero = value.ok_or("a range that is not of unsigned 8 bits")?;
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(format!("a scale of {scale}"));
        }
        Ok(Range { scale, zero })
    }
}

impl Weights {
    /// Reorders output channels for depth to space from channel-major to position-major; a square
    /// has `places` positions.
    fn reorder_for_depth_to_space(&mut self, places: usize) {
        fn sort<T: Clone>(list: &mut Vec<T>, places: usize) {
            *list = (0..places)
                .flat_map(|place| list.iter().skip(place).step_by(places).cloned())
                .collect();
        }
        sort(&mut self.channels, places);
        sort(&mut self.bias, places);
        sort(&mut self.scale, places);
    }
}

/// Returns a convolution's output and input channels, side, stride and padding.
fn convolution_params(node: &Node, weights: &Numbers) -> Result<[usize; 5], String> {
    let [outputs, inputs, side, other] = dims(weights)?[..] else {
        return Err("weights that are not of two dimensions".to_owned());
    };
    let stride = uniform_attribute(node, "strides")?;
    let padding = uniform_attribute(node, "pads")?;
    let is_sound = side == other
        && (1..=SIDE_MAX).contains(&side)
        && (1..=SIDE_MAX).contains(&stride)
        && padding < side;
    if !is_sound {
        return Err(format!("a kernel of {side} by {other}, stride {stride}, pads {padding}"));
    }
    let channels = 1..=CHANNELS_MAX;
    if !channels.contains(&inputs) || !channels.contains(&outputs) {
        return Err(format!("{inputs} channels to {outputs}; 1 to {CHANNELS_MAX} are possible"));
    }
    if uniform_attribute(node, "dilations")? != 1 || integer(node, "group")? != 1 {
        return Err("a convolution with gaps or in groups".to_owned());
    }
    Ok([outputs, inputs, side, stride, padding])
}
