"""What several tests share."""

import json
from typing import Any

import pytest

from fulgurite import channel as glass


@pytest.fixture(scope="session")
def clean() -> str:
    """A channel without noise, errors or defects, but with the memory of the writing laser."""
    numbers: dict[str, Any] = json.loads(glass.channel_json("nominal"))
    nothing = {
        "voxels": ("retardance_spread", "drift", "azimuth_deg", "missing", "position"),
        "optics": ("focus_um", "illumination", "layers"),
        "polarization": ("swing_error", "axis_error_deg", "gain_error", "background_rad"),
        "stage": ("shift_px", "warp_px", "state_px"),
        "defects": ("dust", "scratches", "voids"),
        "camera": ("read_electrons", "nonuniformity"),
    }
    for section, names in nothing.items():
        numbers[section] |= dict.fromkeys(names, 0)
    numbers["voxels"]["line_position"] = 0
    numbers["camera"] |= {"electrons": 1e6, "bits": 12}
    return json.dumps(numbers)
