"""The voxel channel: from symbols to what a camera sees.

A channel is the name of a preset, or JSON of all its numbers. Errors are `ValueError` and say which
number is out of range. The same seeds make the same images on every machine.
"""

from fulgurite._native import (
    channel_json,
    fingerprint,
    presets,
    registered,
    sector,
    sectors,
    symbols,
)

__all__ = ["channel_json", "fingerprint", "presets", "registered", "sector", "sectors", "symbols"]
