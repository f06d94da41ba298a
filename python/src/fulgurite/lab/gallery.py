"""One sector with one damage at a time: what the camera sees, and where the network errs.

The same symbols, drive and platter each time, so only the damage differs.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fulgurite import channel as glass
from fulgurite.lab.decoder import Decoder

_SIDE = 64
_SEEDS = {"place": 2, "platter": 3, "track": 4, "drive": 5, "read": 6}

# Faults while writing and while reading, in voxels of a sector of 64 x 64.
DAMAGES: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "none": ({}, {}),
    "dust": (
        {},
        {"dust": [{"region": {"row": 30.0, "column": 36.0, "radius": 6.0}, "depth": 0.9}]},
    ),
    "scratch": (
        {},
        {
            "scratches": [
                {"row": 32.0, "column": 32.0, "angle_deg": 30.0, "width": 1.2, "depth": 0.8}
            ]
        },
    ),
    "void": ({"particulates": [{"row": 30.0, "column": 34.0, "radius": 7.0}]}, {}),
    "weak pulses": ({"dips": [[{"row": 32.0, "column": 32.0, "radius": 14.0}, 0.3]]}, {}),
    "2.5 um defocus": ({}, {"defocus_um": 2.5}),
    "dead columns": ({}, {"dead_columns": [60, 61, 62, 130]}),
}


def gallery(learned: Decoder) -> dict[str, NDArray[Any]]:
    """Images and errors by damage: `NAME image`, `NAME errors`."""
    channel = learned.channel
    most = 2 * json.loads(channel.json)["optics"]["layers"]
    layers = [glass.symbols(channel.json, _SIDE, 10 + i) for i in range(most)]
    neighbors = [(1 + i // 2, layer) for i, layer in enumerate(layers)]
    symbols = glass.symbols(channel.json, _SIDE, 1)
    found: dict[str, NDArray[Any]] = {}
    for name, (write, read) in DAMAGES.items():
        image = glass.sector(
            channel.json,
            symbols,
            **_SEEDS,
            neighbors=neighbors,
            write_faults=json.dumps(write),
            read_faults=json.dumps(read),
        )
        logits = learned.decode(image)
        found[f"{name} image"] = image.astype(np.uint16)
        found[f"{name} errors"] = logits.argmax(-1) != symbols
    return found
