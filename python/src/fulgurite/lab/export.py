"""Writes a trained network as ONNX, with what it came from in its metadata and a card beside it.

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

from fulgurite.lab import card, data
from fulgurite.lab.decoder import FORMAT, load
from fulgurite.lab.errors import LabError
from fulgurite.lab.train import Model

_OPSET = 17
# What every engine that we tried runs.
_OPERATORS = frozenset({"Conv", "Relu", "Add", "DepthToSpace"})
# How far an engine's sums may be from torch's.
_TOLERANCE = 1e-4
# Sectors that ranges of 8 bits are found on.
_CALIBRATION_SECTORS = 8


def export(model: Model, path: Path, version: str = "1") -> dict[str, str]:
    """Write the network and its card, open it again and compare; returns its metadata."""
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
    _write_card(model, path, about, version, "float32")
    return about


def export_int8(model: Model, exported: Path, version: str = "1") -> Path:
    """Quantize an exported network to 8 bits, statically and by channel; returns the new file.

    Products are int8, their ranges those of some calibration sectors. Graphs of this kind
    (QuantizeLinear, DequantizeLinear) are for the archive's own engine and for ONNX Runtime.
    """
    try:
        import onnx
        from onnxruntime import quantization
    except ImportError as error:
        raise LabError("export needs onnx and onnxruntime: pip install -e .[train]") from error
    path = exported.with_name(f"{exported.stem}-int8.onnx")
    sectors = data.configured(model.channel, model.config.calibration, _CALIBRATION_SECTORS)

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.images = iter(sectors.images)

        def get_next(self) -> dict[str, NDArray[np.float32]] | None:
            image = next(self.images, None)
            if image is None:
                return None
            return {"images": data.registered(model.channel, image)[None]}

    quantization.quantize_static(
        str(exported),
        str(path),
        Reader(),
        quant_format=quantization.QuantFormat.QDQ,
        # Unsigned by signed is what processors multiply fast: 2.5 times float32; the default,
        # signed by signed, is slower than float32.
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
    )
    graph = onnx.load(path)
    about = metadata(model, 2**model.config.network.depth) | {"name": path.stem}
    onnx.helper.set_model_props(graph, about)
    onnx.save(graph, path)
    _write_card(model, path, about, version, "int8")
    return path


def _write_card(
    model: Model, path: Path, about: dict[str, str], version: str, precision: str
) -> None:
    card.write(
        path,
        about,
        states=model.channel.states,
        symbols=model.channel.symbols,
        version=version,
        precision=precision,
    )


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
