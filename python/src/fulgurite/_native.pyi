"""Types of the compiled bindings, python/native."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def presets() -> list[str]: ...
def channel_json(channel: str) -> str: ...
def fingerprint(bytes: bytes) -> str: ...  # noqa: A002
def symbols(channel: str, side: int, seed: int) -> NDArray[np.uint8]: ...
def registered(channel: str, images: NDArray[np.uint16]) -> NDArray[np.float32]: ...
def sectors(
    channel: str,
    side: int,
    count: int,
    seed: int,
    first: int = 0,
    *,
    population: int | None = None,
    drives: int | None = None,
    platters: int | None = None,
) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]: ...
def sector(
    channel: str,
    symbols: NDArray[np.uint8],
    *,
    place: int,
    platter: int,
    track: int,
    drive: int,
    read: int,
    neighbors: Sequence[tuple[int, NDArray[np.uint8]]] = ...,
    write_faults: str | None = None,
    read_faults: str | None = None,
) -> NDArray[np.uint16]: ...
