"""Classical decoders: what a learned one must beat. For birefringent voxels.

    images --> data.registered --+--> sample --> nearest azimuth        a
                                 +--> LMMSE, 13 x 13 pixels x 4 images  b
                                        +--> refit on own decisions     b2

A voxel is exp(2 i azimuth): eight phases on a circle. Linear
decoders estimate it, and a Gaussian demapper turns the estimate into log-probabilities. All in
numpy, on one sector at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fulgurite.lab.data import Sectors, registered
from fulgurite.lab.errors import LabError
from fulgurite.lab.filters import blur
from fulgurite.lab.metrics import log_softmax

Floats = NDArray[np.float32]
Complex = NDArray[np.complex64]

NAMES = ("a", "b", "b2")

SYMBOLS = 8
_CIRCLE: Complex = np.exp(2j * np.pi * np.arange(SYMBOLS) / SYMBOLS).astype(np.complex64)

# Radii of the sampling filter that are tried, in pixels: narrower than a spot, because a matched
# filter doubles the interference of neighbors.
_SAMPLING_PX = (0.3, 0.45, 0.6, 0.8, 1.0, 1.3)
# Sectors of the training set that it is chosen on.
_SAMPLING_SECTORS = 4
# Window of the equalizer: pixels on each side of the middle; its ridge, of the mean power.
_RADIUS = 6
_RIDGE = 1e-4
# The global solution counts as so many sectors when one is refitted.
_REFIT_WEIGHT = 0.35
_REFITS = 2
# First rows, whose symbols are known: they tell how the sample is turned.
_PILOT_ROWS = 2


def field(flat: Floats, pitch: int) -> Floats:
    """Real and imaginary part of the light of voxels, without slow background."""
    parts = np.stack([flat[3] - flat[1], flat[0] - flat[2]])
    return parts - blur(parts, 3.0 * pitch)


def sampled(parts: Floats, pitch: int, sigma: float, pilots: NDArray[Any]) -> Complex:
    """Light at the middle of each voxel, turned as the known first rows say."""
    smooth = blur(parts, sigma)[:, pitch // 2 :: pitch, pitch // 2 :: pitch]
    z = (smooth[0] + 1j * smooth[1]).astype(np.complex64)
    turn = (z[:_PILOT_ROWS] * _CIRCLE[pilots[:_PILOT_ROWS]].conj()).sum()
    turned: Complex = z * (abs(turn) / turn if turn else 1) / np.abs(z).mean()
    return turned


def nearest(z: Complex) -> NDArray[np.int64]:
    """Symbols with the nearest azimuth."""
    steps: NDArray[np.int64] = np.rint(np.angle(z) * SYMBOLS / (2 * np.pi)).astype(np.int64)
    return steps % SYMBOLS


def windows(flat: Floats, pitch: int) -> Floats:
    """Pixels around each voxel, and a 1: `[voxel, tap]`."""
    size = 2 * _RADIUS + 1
    beside = _RADIUS - pitch // 2
    padded = np.pad(flat, ((0, 0), (beside, beside), (beside, beside)), mode="edge")
    views = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))
    views = views[:, ::pitch, ::pitch].transpose(1, 2, 0, 3, 4)
    voxels = views.shape[0] * views.shape[1]
    taps = np.ones((voxels, len(flat) * size * size + 1), np.float32)
    taps[:, :-1] = views.reshape(voxels, -1)
    return taps


@dataclass
class Equalizer:
    """Linear least mean squares from a window of pixels to exp(2 i azimuth)."""

    pitch: int
    power: NDArray[np.float64]
    sectors: int
    weights: NDArray[np.float64]

    @classmethod
    def fit(cls, flats: list[Floats], symbols: NDArray[Any], pitch: int) -> "Equalizer":
        """Fit to sectors whose symbols are known."""
        power, cross = np.zeros(()), np.zeros(())
        for flat, known in zip(flats, symbols, strict=True):
            taps = windows(flat, pitch)
            power = power + (taps.T @ taps).astype(np.float64)
            cross = cross + taps.T @ _targets(known)
        weights = np.linalg.solve(power + _ridge(power), cross).astype(np.float64)
        return cls(pitch, power, len(flats), weights)

    def apply(self, flat: Floats) -> Complex:
        """Estimate the voxels of a sector."""
        rows, columns = (side // self.pitch for side in flat.shape[1:])
        return _complex(windows(flat, self.pitch) @ self.weights).reshape(rows, columns)

    def refit(self, flat: Floats, first: Complex) -> Complex:
        """Fit to a sector's own decisions, drawn towards all sectors; only while phases sharpen."""
        taps = windows(flat, self.pitch)
        own = (taps.T @ taps).astype(np.float64)
        share = _REFIT_WEIGHT / self.sectors
        power = own + share * self.power
        ridge = _ridge(power)
        best = first
        for _ in range(_REFITS):
            cross = taps.T @ _targets(nearest(best)) + (share * self.power + ridge) @ self.weights
            refitted = _complex(taps @ np.linalg.solve(power + ridge, cross)).reshape(first.shape)
            if _blur_of_phases(refitted) < _blur_of_phases(best):
                best = refitted
        return best


def _targets(symbols: NDArray[Any]) -> NDArray[np.float64]:
    wanted = _CIRCLE[symbols.ravel()]
    return np.stack([wanted.real, wanted.imag], 1).astype(np.float64)


def _ridge(power: NDArray[np.float64]) -> NDArray[np.float64]:
    ridge: NDArray[np.float64] = _RIDGE * np.eye(len(power)) * power.diagonal().mean()
    return ridge


def _complex(parts: NDArray[Any]) -> Complex:
    return (parts[:, 0] + 1j * parts[:, 1]).astype(np.complex64)


def _blur_of_phases(z: Complex) -> float:
    """Spread of phases around the eight that there are; 0 when all are exact."""
    return float(1 - (np.cos(SYMBOLS * np.angle(z)) * np.abs(z)).mean() / np.abs(z).mean())


@dataclass
class Demapper:
    """A plane Gaussian for each symbol."""

    means: NDArray[np.float64]
    inverses: NDArray[np.float64]
    offsets: NDArray[np.float64]

    @classmethod
    def fit(cls, estimates: Complex, symbols: NDArray[Any]) -> "Demapper":
        """Fit to estimates of known symbols."""
        points = np.stack([estimates.ravel().real, estimates.ravel().imag], 1).astype(np.float64)
        known = symbols.ravel()
        classes = [points[known == k] for k in range(SYMBOLS)]
        spreads = np.stack([np.cov(c.T) for c in classes])
        return cls(
            np.stack([c.mean(0) for c in classes]),
            np.linalg.inv(spreads),
            -0.5 * np.linalg.slogdet(spreads)[1],
        )

    def apply(self, estimates: Complex) -> Floats:
        """Log-probabilities `[..., symbol]`."""
        points = np.stack([estimates.real, estimates.imag], -1).astype(np.float64)
        off = points[..., None, :] - self.means
        squares = np.einsum("...ki,kij,...kj->...k", off, self.inverses, off)
        return log_softmax(self.offsets - 0.5 * squares)


def own_demapper(estimates: Complex) -> Floats:
    """Log-probabilities with the noise that a sector's own decisions show."""
    scale = (estimates * _CIRCLE[nearest(estimates)].conj()).real.mean()
    z = estimates / scale
    variance = (np.abs(z - _CIRCLE[nearest(z)]) ** 2).mean() / 2
    return log_softmax(-(np.abs(z[..., None] - _CIRCLE) ** 2) / (2 * variance))


class LinearDecoders:
    """All classical decoders, fitted to the same sectors."""

    def __init__(self, training: Sectors, margin: int) -> None:
        """Fit; demappers leave `margin` voxels at the border out, as scores do."""
        if training.channel.symbols != SYMBOLS:
            raise LabError("the linear decoders are for birefringent voxels")
        self._channel = channel = training.channel
        flats = [registered(channel, image) for image in training.images]
        symbols = training.symbols
        self._sigma = self._choose_sampling(flats[:_SAMPLING_SECTORS], symbols)
        self._equalizer = Equalizer.fit(flats, symbols, channel.pixels_per_pitch)
        inside = slice(margin, -margin or None)
        known = symbols[:, inside, inside]
        estimates: dict[str, list[Complex]] = {name: [] for name in NAMES[:-1]}
        for flat, own in zip(flats, symbols, strict=True):
            for name, z in self._estimates(flat, own).items():
                estimates[name].append(z[inside, inside])
        self._demappers = {name: Demapper.fit(np.stack(z), known) for name, z in estimates.items()}

    def decode(self, image: NDArray[Any], pilots: NDArray[Any]) -> dict[str, Floats]:
        """Log-probabilities `[row, column, symbol]` of one sector, by decoder.

        `pilots` are its symbols, of which only the first rows are looked at.
        """
        flat = registered(self._channel, image)
        estimates = self._estimates(flat, pilots)
        decoded = {name: self._demappers[name].apply(z) for name, z in estimates.items()}
        refitted = self._equalizer.refit(flat, estimates["b"])
        return decoded | {"b2": own_demapper(refitted)}

    def constellation(self, image: NDArray[Any], pilots: NDArray[Any]) -> dict[str, Complex]:
        """Estimates of the voxels of one sector, by decoder."""
        return self._estimates(registered(self._channel, image), pilots)

    def _estimates(self, flat: Floats, pilots: NDArray[Any]) -> dict[str, Complex]:
        pitch = self._channel.pixels_per_pitch
        return {
            "a": sampled(field(flat, pitch), pitch, self._sigma, pilots),
            "b": self._equalizer.apply(flat),
        }

    def _choose_sampling(self, flats: list[Floats], symbols: NDArray[Any]) -> float:
        pitch = self._channel.pixels_per_pitch

        def errors(sigma: float) -> float:
            wrong = [
                (nearest(sampled(field(f, pitch), pitch, sigma, s)) != s).mean()
                for f, s in zip(flats, symbols, strict=False)
            ]
            return float(np.mean(wrong))

        return min(_SAMPLING_PX, key=errors)


def decode_all(decoders: LinearDecoders, sectors: Sectors) -> Iterator[dict[str, Floats]]:
    """Decode sector after sector."""
    for image, symbols in zip(sectors.images, sectors.symbols, strict=True):
        yield decoders.decode(image, symbols)
