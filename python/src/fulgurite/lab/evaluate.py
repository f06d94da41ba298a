"""Judges every decoder on the same frozen sectors.

A temperature is the one number that may be fitted besides the decoder itself, and it is fitted on
other sectors than it is judged on. Reports are JSON; `figures` draws them.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fulgurite.lab import data, linear, metrics
from fulgurite.lab.config import Config
from fulgurite.lab.data import configured, inside
from fulgurite.lab.decoder import Decoder

Say = Callable[[str], None]

# Voxels of the constellation that a report keeps.
_POINTS = 6000

LEARNED = "net"

# Numbers of the channel that a sweep changes, and their values; the nominal one is among them.
SWEEPS: Mapping[str, tuple[float, ...]] = {
    "camera.electrons": (100, 225, 450, 900, 1800, 3600),
    "optics.focus_um": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    "optics.crosstalk": (0.0, 0.5, 1.0, 1.5, 2.0),
    "optics.aperture": (0.5, 0.55, 0.6, 0.65, 0.7),
    "voxels.pitch_um": (0.42, 0.45, 0.5, 0.55, 0.6),
    "polarization.swing_waves": (0.04, 0.06, 0.08, 0.1, 0.12),
    "defects": (0.0, 1.0, 3.0, 10.0),
}
# What `defects` multiplies.
_DEFECTS = {"defects.dust": 0.7, "defects.scratches": 0.08, "defects.voids": 0.15}


def fit_linear(config: Config, channel: data.Channel) -> linear.LinearDecoders:
    """Fit the linear decoders to the first training sectors."""
    training = configured(channel, config.train, config.evaluation.linear)
    return linear.LinearDecoders(training, config.evaluation.margin)


def decode(
    learned: Decoder, classical: linear.LinearDecoders | None, of: data.Sectors
) -> tuple[dict[str, NDArray[np.float32]], dict[str, float]]:
    """Logits of all sectors by decoder; and the processor time that a voxel took, in us."""
    logits: dict[str, list[NDArray[np.float32]]] = {}
    spent = {"linear": 0.0, LEARNED: 0.0}
    for image, symbols in zip(of.images, of.symbols, strict=True):
        started = time.process_time()
        decoded = {} if classical is None else classical.decode(image, symbols)
        spent["linear"] += time.process_time() - started
        started = time.process_time()
        decoded[LEARNED] = learned.decode(image)
        spent[LEARNED] += time.process_time() - started
        for name, values in decoded.items():
            logits.setdefault(name, []).append(values)
    us = {name: 1e6 * seconds / of.symbols.size for name, seconds in spent.items()}
    return {name: np.stack(values) for name, values in logits.items()}, us


def evaluate(learned: Decoder, say: Say, *, with_linear: bool = True) -> dict[str, Any]:
    """Judge the learned decoder, and the linear ones beside it."""
    config, channel = learned.config, learned.channel
    classical = fit_linear(config, channel) if with_linear else None
    calibration, test = configured(channel, config.calibration), configured(channel, config.test)
    say(f"{len(test)} sectors {test.fingerprint} of channel {channel.fingerprint}")
    margin = config.evaluation.margin
    temperatures = _temperatures(learned, classical, calibration, margin)
    logits, us = decode(learned, classical, test)
    known = inside(test.symbols, margin)
    rows, spread, counts = {}, {}, {}
    for name, values in logits.items():
        values = inside(values, margin)
        score = metrics.score(values, known, temperatures[name])
        say(line(name, score))
        rows[name] = score.json()
        spread[name] = {
            "ser": metrics.sector_errors(values, known).tolist(),
            "mi": metrics.sector_bits(values, known, temperatures[name]).tolist(),
        }
        counts[name] = metrics.confusion(values, known).tolist()
    return {
        "name": config.name,
        "preset": config.channel.preset,
        "channel": channel.fingerprint,
        "test": {"seed": config.test.seed, "fingerprint": test.fingerprint},
        "margin": margin,
        "model": learned.about,
        "decoders": rows,
        "sectors": spread,
        "confusion": counts,
        "us_per_voxel": us,
        "constellation": {} if classical is None else _constellation(classical, test, margin),
    }


def sweep(learned: Decoder, count: int, say: Say) -> dict[str, Any]:
    """Judge decoders made for one channel on others: one number changed at a time."""
    config = learned.config
    classical = fit_linear(config, learned.channel)
    calibration = configured(learned.channel, config.calibration)
    margin = config.evaluation.margin
    temperatures = _temperatures(learned, classical, calibration, margin)
    found: dict[str, Any] = {}
    for axis, values in SWEEPS.items():
        found[axis] = []
        for value in values:
            changes = {k: v * value for k, v in _DEFECTS.items()}
            changed = data.channel(
                config.channel.preset,
                config.channel.set | (changes if axis == "defects" else {axis: value}),
            )
            test = configured(changed, config.test, count)
            logits, _ = decode(learned, classical, test)
            known = inside(test.symbols, margin)
            scores = {
                name: metrics.score(inside(values, margin), known, temperatures[name])
                for name, values in logits.items()
            }
            say(f"{axis} {value}: " + line(LEARNED, scores[LEARNED]))
            rows = {name: score.json() for name, score in scores.items()}
            found[axis].append({"value": value, "decoders": rows})
    return {"name": config.name, "preset": config.channel.preset, "axes": found}


def line(name: str, score: metrics.Score) -> str:
    """Print a score in one line."""
    return (
        f"{name:4} SER {score.ser.value:.2e} +- {score.ser.error:.0e}"
        f"  p50 {score.ser_p50.value:.1e}  p90 {score.ser_p90.value:.1e}"
        f"  BER {score.ber.value:.2e}  MI {score.mi.value:.4f} +- {score.mi.error:.4f}"
        f"  p10 {score.mi_p10.value:.3f}  worst tenth {score.mi_worst.value:.3f}"
        f"  poor {100 * score.poor:.0f} %  T {score.temperature:.2f}"
    )


def _temperatures(
    learned: Decoder,
    classical: linear.LinearDecoders | None,
    calibration: data.Sectors,
    margin: int,
) -> dict[str, float]:
    logits, _ = decode(learned, classical, calibration)
    known = inside(calibration.symbols, margin)
    fitted = {
        name: metrics.fit_temperature(inside(values, margin), known)
        for name, values in logits.items()
    }
    return fitted | {LEARNED: learned.temperature}


def _constellation(
    classical: linear.LinearDecoders, test: data.Sectors, margin: int
) -> dict[str, Any]:
    """Estimates of some voxels of the first sector."""
    estimates = classical.constellation(test.images[0], test.symbols[0])
    known = inside(test.symbols[:1], margin).ravel()
    picked = np.random.default_rng(0).permutation(known.size)[:_POINTS]
    points = {
        name: inside(z[None], margin).ravel()[picked]
        for name, z in estimates.items()
        if name in ("a", "b")
    }
    return {
        "symbols": known[picked].tolist(),
        "points": {
            name: [np.round(z.real, 4).tolist(), np.round(z.imag, 4).tolist()]
            for name, z in points.items()
        },
    }
