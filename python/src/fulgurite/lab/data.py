"""Sectors to train on and to judge by.

A set is named by its channel, side, count and seeds; the channel is bit-exact, so that name is the
set, and its fingerprint proves it. Nothing is stored on disk.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fulgurite import channel as glass
from fulgurite.lab.config import SectorsConfig
from fulgurite.lab.errors import LabError

# Sectors that are made at once; their pixels are 16 bits until they are packed.
_CHUNK = 8


@dataclass(frozen=True)
class Channel:
    """A channel, and what decoders must know of it."""

    json: str
    states: int
    symbols: int
    pixels_per_pitch: int

    @property
    def fingerprint(self) -> str:
        """Hash of all its numbers."""
        return glass.fingerprint(self.json.encode())[:16]

    @property
    def turns(self) -> int:
        """Turns of the sample that are a shift of the states: its exact symmetries."""
        return self.states if self.symbols == 8 else 1


def channel(preset: str, changes: Mapping[str, float] | None = None) -> Channel:
    """Make a channel from a preset, with some numbers changed (`"optics.focus_um": 0.6`)."""
    try:
        numbers: dict[str, Any] = json.loads(glass.channel_json(preset))
        for key, value in (changes or {}).items():
            section, _, name = key.partition(".")
            if not isinstance(numbers.get(section), dict) or name not in numbers[section]:
                raise LabError(f"channel has no number {key}")
            kind = type(numbers[section][name])
            numbers[section][name] = kind(value)
        text = glass.channel_json(json.dumps(numbers))
    except ValueError as error:
        raise LabError(str(error)) from error
    is_birefringent = numbers["medium"] == "birefringent"
    return Channel(
        json=text,
        states=4 if is_birefringent else 1,
        symbols=8 if is_birefringent else 4,
        pixels_per_pitch=numbers["optics"]["pixels_per_pitch"],
    )


@dataclass(frozen=True)
class Sectors:
    """Images `[sector, state, row, column]` of pixels, symbols `[sector, row, column]`."""

    channel: Channel
    images: NDArray[np.uint8] | NDArray[np.uint16]
    symbols: NDArray[np.uint8]

    def __len__(self) -> int:
        """Count of sectors."""
        return len(self.symbols)

    @property
    def fingerprint(self) -> str:
        """Hash of all pixels and symbols."""
        pixels = glass.fingerprint(self.images.astype("<u2").tobytes())
        symbols = glass.fingerprint(self.symbols.tobytes())
        return glass.fingerprint((pixels + symbols).encode())[:16]

    def part(self, first: int, end: int) -> "Sectors":
        """Sectors from `first` until `end`."""
        return Sectors(self.channel, self.images[first:end], self.symbols[first:end])


def sectors(
    source: Channel,
    side: int,
    count: int,
    seed: int,
    *,
    drives: int | None = None,
    platters: int | None = None,
) -> Sectors:
    """Make a set. Sets of different seeds share no sector, drive or platter."""
    pitch = source.pixels_per_pitch
    is_wide = json.loads(source.json)["camera"]["bits"] > 8
    shape = (count, source.states, side * pitch, side * pitch)
    images: NDArray[Any] = np.empty(shape, np.uint16 if is_wide else np.uint8)
    symbols = np.empty((count, side, side), np.uint8)
    for first in range(0, count, _CHUNK):
        end = min(first + _CHUNK, count)
        try:
            images[first:end], symbols[first:end] = glass.sectors(
                source.json, side, end - first, seed, first, drives=drives, platters=platters
            )
        except ValueError as error:
            raise LabError(str(error)) from error
    return Sectors(source, images, symbols)


def configured(source: Channel, of: SectorsConfig, count: int | None = None) -> Sectors:
    """Make a set of a configuration, or its first sectors."""
    most = of.count if count is None else min(count, of.count)
    return sectors(source, of.side, most, of.seed, drives=of.drives, platters=of.platters)


def inside(values: NDArray[Any], margin: int) -> NDArray[Any]:
    """Leave out voxels at the border of `[sector, row, column, ..]`."""
    end = -margin or None
    return values[:, margin:end, margin:end]


def registered(source: Channel, images: NDArray[Any]) -> NDArray[np.float32]:
    """What decoders see of one sector: its images without illumination, voxels put in place."""
    return glass.registered(source.json, np.ascontiguousarray(images, np.uint16))


def turn(
    images: NDArray[Any], symbols: NDArray[Any], turns: int, count: int = 8
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Turn a sample by so many times 45 degrees: states move by one, azimuths by two.

    Exact: optics has no preferred azimuth, and neither has the memory of the writing laser.
    """
    return np.roll(images, turns, axis=-3), (symbols + 2 * turns) % count


def crops(
    source: Sectors, side: int, batch: int, seed: int
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """Random registered crops, turned at random, without end."""
    random = np.random.default_rng(seed)
    pitch = source.channel.pixels_per_pitch
    images = np.stack([registered(source.channel, image) for image in source.images])
    images = images.astype(np.float16)
    places = source.symbols.shape[1] - side + 1
    while True:
        pixels, labels = [], []
        for sector in random.integers(len(source), size=batch):
            row, column = random.integers(places, size=2)
            rows = slice(row * pitch, (row + side) * pitch)
            columns = slice(column * pitch, (column + side) * pitch)
            image = images[sector, :, rows, columns].astype(np.float32)
            symbols = source.symbols[sector, row : row + side, column : column + side]
            turns = int(random.integers(source.channel.turns))
            image, symbols = turn(image, symbols.astype(np.int64), turns, source.channel.symbols)
            pixels.append(image)
            labels.append(symbols)
        yield np.stack(pixels), np.stack(labels)
