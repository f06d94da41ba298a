"""Writes a trained network as ONNX, with what it came from in its metadata.

    images float32 [n, states, 3H, 3W] --> logits float32 [n, symbols, H, W], H and W in fours

Images are those of `data.registered`, of the whole sector. The temperature is in the metadata, not
in the graph: P(symbol) = softmax(logits / temperature).
"""

import dataclasses
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fulgurite.lab.decoder import FORMAT, load
from fulgurite.lab.errors import LabError
from fulgurite.lab.train import Model

_OPSET = 17
# What every engine that we tried runs.
_OPERATORS = frozenset({"Conv", "Relu", "Add", "DepthToSpace"})
# How far an engine's sums may be from torch's.
_TOLERANCE = 1e-4


def export(model: Model, path: Path) -> dict[str, str]:
    """Write the network, open it again and compare; returns its metadata."""
    try:
        import onnx
    except ImportError as error:
        raise LabError("export needs onnx: pip install -e .[train]") from error
    pitch, states = model.channel.pixels_per_pitch, model.channel.states
    block = 2**model.config.network.depth
    example = torch.zeros(1, states, 4 * block * pitch, 4 * block * pitch)
    axes = {0: "n", 2: "h", 3: "w"}
    path.parent.mkdir(parents=True, exist_ok=True)
    network = model.network.eval().to(memory_format=torch.contiguous_format)
    with warnings.catch_warnings():
        # Without dynamo: it folds batch norms, and its graph opens everywhere.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            network,
            (example,),
            str(path),
            input_names=["images"],
            output_names=["logits"],
            dynamic_axes={"images": axes, "logits": axes},
            opset_version=_OPSET,
            dynamo=False,
        )
    graph = onnx.load(path)
    operators = {node.op_type for node in graph.graph.node} - {"Constant"}
    if not operators <= _OPERATORS:
        raise AssertionError(f"the graph has {sorted(operators - _OPERATORS)}")
    about = metadata(model, block)
    onnx.helper.set_model_props(graph, about)
    onnx.checker.check_model(graph)
    onnx.save(graph, path)
    difference = compare(model, path)
    if difference > _TOLERANCE:
        raise AssertionError(f"logits of {path} differ by {difference}")
    return about


def metadata(model: Model, block: int) -> dict[str, str]:
    """All that a reader must know, and all that the network came from."""
    config = model.config
    return {
        "format": FORMAT,
        "name": config.name,
        "input": "registered",
        "preset": config.channel.preset,
        "channel": model.channel.fingerprint,
        "channel_json": model.channel.json,
        "pixels_per_pitch": str(model.channel.pixels_per_pitch),
        "block": str(block),
        "margin": str(config.evaluation.margin),
        "temperature": f"{model.temperature:.4f}",
        "seed": str(config.training.seed),
        "train_seed": str(config.train.seed),
        "config": json.dumps(dataclasses.asdict(config)),
        **{key: str(value) for key, value in model.origin.items() if key != "channel"},
    }


def compare(model: Model, path: Path) -> float:
    """Greatest difference of logits between torch and the file, on noise of another shape."""
    pitch, states = model.channel.pixels_per_pitch, model.channel.states
    block = 2**model.config.network.depth
    shape = (1, states, 5 * block * pitch, 7 * block * pitch)
    images: NDArray[np.float32] = np.random.default_rng(0).normal(0, 0.3, shape).astype(np.float32)
    with torch.no_grad():
        ours: NDArray[Any] = model.network(torch.from_numpy(images)).numpy()
    theirs = load(path).run(images)
    return float(np.abs(ours - theirs).max())
