"""Trains a network on random crops, and decodes with it.

A checkpoint holds the weights and what they came from: configuration, fingerprints of channel and
sectors, commit, temperature. On one machine and one thread, a configuration trains to the same
weights each time; across machines only the sectors are the same.
"""

import dataclasses
import json
import math
import pickle
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from fulgurite.lab import data, metrics
from fulgurite.lab.config import Config, TrainingConfig, parse, without_nothing
from fulgurite.lab.data import inside
from fulgurite.lab.errors import LabError
from fulgurite.lab.network import VoxelUNet, macs_per_voxel, parameter_count

# The last rate is this share of the highest.
_RATE_FLOOR = 0.01
_GRADIENT_NORM_MAX = 1.0
# Of the running mean of the loss that is printed.
_SMOOTHING = 0.98


@dataclass
class Model:
    """A trained network, and what it came from."""

    config: Config
    channel: data.Channel
    network: VoxelUNet
    temperature: float
    origin: dict[str, Any]

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        path.parent.mkdir(parents=True, exist_ok=True)
        about = {
            "config": dataclasses.asdict(self.config),
            "temperature": self.temperature,
            "origin": self.origin,
        }
        torch.save({"about": json.dumps(about), "weights": self.network.state_dict()}, path)

    @classmethod
    def load(cls, path: Path) -> "Model":
        """Read a checkpoint."""
        try:
            stored = torch.load(path, map_location="cpu", weights_only=True)
            about = json.loads(stored["about"])
        except OSError as error:
            raise LabError(f"cannot read {path}: {error.strerror}") from error
        except (pickle.UnpicklingError, EOFError, RuntimeError, LookupError, ValueError) as error:
            raise LabError(f"{path} is no checkpoint") from error
        config = parse(without_nothing(about["config"]))
        channel = data.channel(config.channel.preset, config.channel.set)
        if channel.fingerprint != about["origin"]["channel"]:
            raise LabError(f"{path} was trained on another channel {config.channel.preset}")
        network = make(config, channel)
        network.load_state_dict(stored["weights"])
        return cls(config, channel, network.eval(), about["temperature"], about["origin"])


def make(config: Config, channel: data.Channel) -> VoxelUNet:
    """Make an untrained network; torch's seed decides its weights."""
    return VoxelUNet(config.network, channel.states, channel.symbols, channel.pixels_per_pitch)


def device(config: TrainingConfig) -> torch.device:
    """Choose where to train."""
    if config.device == "cuda" and not torch.cuda.is_available():
        raise LabError("training.device is cuda, and torch finds none")
    has_cuda = config.device != "cpu" and torch.cuda.is_available()
    return torch.device("cuda" if has_cuda else "cpu")


def train(config: Config, say: Callable[[dict[str, Any]], None]) -> Model:
    """Train a network. `say` receives progress lines."""
    channel = data.channel(config.channel.preset, config.channel.set)
    training = data.configured(channel, config.train)
    torch.set_num_threads(config.training.threads)
    torch.manual_seed(config.training.seed)
    network = make(config, channel)
    origin = {
        "channel": channel.fingerprint,
        "train": training.fingerprint,
        "commit": commit(),
        "parameters": parameter_count(network),
        "macs_per_voxel": macs_per_voxel(network, channel.states, channel.pixels_per_pitch),
    }
    say({"about": config.name} | origin)
    started = time.process_time()
    loss = _descend(network, config.training, training, say)
    origin |= {"loss": loss, "cpu_s": round(time.process_time() - started, 1)}
    network.eval()
    calibration = data.configured(channel, config.calibration)
    logits = predict(network, calibration)
    margin = config.evaluation.margin
    temperature = metrics.fit_temperature(
        inside(logits, margin), inside(calibration.symbols, margin)
    )
    say({"temperature": temperature} | origin)
    return Model(config, channel, network, temperature, origin)


def _descend(
    network: VoxelUNet,
    config: TrainingConfig,
    training: data.Sectors,
    say: Callable[[dict[str, Any]], None],
) -> float:
    """Run all steps; returns the running mean of the loss."""
    where = device(config)
    network.to(where, memory_format=torch.channels_last)  # type: ignore[call-overload]
    network.train()
    optimizer = torch.optim.AdamW(network.parameters(), config.rate, weight_decay=config.decay)
    batches = data.crops(training, config.crop, config.batch, config.seed)
    started, mean = time.process_time(), math.nan
    for step in range(config.steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(config, step)
        pixels, labels = next(batches)
        images = torch.from_numpy(pixels).to(where, memory_format=torch.channels_last)
        with torch.autocast(where.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
            logits = network(images)
        loss = functional.cross_entropy(logits.float(), torch.from_numpy(labels).to(where))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), _GRADIENT_NORM_MAX)
        optimizer.step()
        value = float(loss.detach())
        mean = value if math.isnan(mean) else _SMOOTHING * mean + (1 - _SMOOTHING) * value
        if (step + 1) % config.log == 0 or step + 1 == config.steps:
            cpu_s = round(time.process_time() - started, 1)
            say({"step": step + 1, "loss": round(mean, 5), "cpu_s": cpu_s})
    network.to("cpu")
    return mean


def rate(config: TrainingConfig, step: int) -> float:
    """Rate of a step: a short rise, then half a cosine."""
    rise = min(1.0, (step + 1) / max(1, config.warmup))
    fall = 0.5 * (1 + math.cos(math.pi * step / config.steps))
    return config.rate * rise * (_RATE_FLOOR + (1 - _RATE_FLOOR) * fall)


@torch.no_grad()
def predict(network: VoxelUNet, of: data.Sectors) -> NDArray[np.float32]:
    """Decode sectors one by one: logits `[sector, row, column, symbol]`."""
    network.eval()
    logits = np.empty((*of.symbols.shape, of.channel.symbols), np.float32)
    for index, image in enumerate(of.images):
        images = torch.from_numpy(data.registered(of.channel, image)[None])
        out = network(images.to(memory_format=torch.channels_last))
        logits[index] = out[0].permute(1, 2, 0).numpy()
    return logits


def commit() -> str:
    """Name the commit of this code; changed files make it dirty."""
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()
