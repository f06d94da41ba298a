"""Trained decoders: a checkpoint of the lab, or an exported network.

An exported network carries its configuration, so it can be judged without torch: that file is what
the archive reads with.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fulgurite.lab import data
from fulgurite.lab.config import Config, parse, without_nothing
from fulgurite.lab.errors import LabError

# Key and value by which an exported network says what it is.
FORMAT = "fulgurite voxel decoder 1"


@dataclass(frozen=True)
class Decoder:
    """A trained network, however it is run."""

    config: Config
    channel: data.Channel
    temperature: float
    about: dict[str, Any]
    run: Callable[[NDArray[np.float32]], NDArray[np.float32]]

    def decode(self, image: NDArray[Any]) -> NDArray[np.float32]:
        """Logits `[row, column, symbol]` of the images of one sector."""
        logits = self.run(data.registered(self.channel, image)[None])
        return np.ascontiguousarray(logits[0].transpose(1, 2, 0))


def load(path: Path) -> Decoder:
    """Open a network by the end of its name, `.pt` or `.onnx`."""
    return _load_onnx(path) if path.suffix == ".onnx" else _load_checkpoint(path)


def _load_checkpoint(path: Path) -> Decoder:
    try:
        import torch
    except ImportError as error:
        raise LabError("checkpoints need torch: pip install -e .[train]") from error
    from fulgurite.lab.train import Model

    model = Model.load(path)
    network = model.network.eval()

    @torch.no_grad()
    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        logits: NDArray[np.float32] = network(torch.from_numpy(images)).numpy()
        return logits

    return Decoder(model.config, model.channel, model.temperature, model.origin, run)


def _load_onnx(path: Path) -> Decoder:
    try:
        import onnxruntime
    except ImportError as error:
        raise LabError("exported networks need onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise LabError(f"cannot open {path}: {error}") from error
    stored = session.get_modelmeta().custom_metadata_map
    if stored.get("format") != FORMAT:
        raise LabError(f"{path} is not a {FORMAT}")
    config = parse(without_nothing(json.loads(stored["config"])))
    channel = data.channel(config.channel.preset, config.channel.set)

    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        logits: NDArray[np.float32] = session.run(["logits"], {"images": images})[0]
        return logits

    return Decoder(config, channel, float(stored["temperature"]), dict(stored), run)
