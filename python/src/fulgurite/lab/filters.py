"""Images in numpy: blur, resize, sample. Only what the linear decoders need.

Separable linear maps are matrices from both sides, `A @ image @ B.T`, which numpy does fastest.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@lru_cache(maxsize=64)
def blur_matrix(count: int, sigma: float) -> Floats:
    """Blur a line by a Gaussian; what lies outside is mirrored at the ends."""
    reach = int(np.ceil(3.5 * sigma))
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    taps /= taps.sum()
    source = np.pad(np.arange(count), reach, mode="reflect" if count > 1 else "edge")
    matrix = np.zeros((count, count))
    rows = np.arange(count)
    for tap, weight in enumerate(taps):
        np.add.at(matrix, (rows, source[tap : tap + count]), weight)
    return matrix.astype(np.float32)


@lru_cache(maxsize=64)
def sample_matrix(count: int, places: tuple[float, ...]) -> Floats:
    """Sample a line at places between its samples, linearly; its ends go on."""
    at = np.clip(np.array(places), 0, count - 1)
    first = np.minimum(at.astype(np.int64), max(count - 2, 0))
    weight = at - first
    matrix = np.zeros((len(at), count))
    rows = np.arange(len(at))
    np.add.at(matrix, (rows, first), 1 - weight)
    np.add.at(matrix, (rows, np.minimum(first + 1, count - 1)), weight)
    return matrix.astype(np.float32)


def blur(images: NDArray[Any], sigma: float) -> Floats:
    """Blur the last two axes."""
    rows, columns = images.shape[-2:]
    down, across = blur_matrix(rows, sigma), blur_matrix(columns, sigma)
    pixels: Floats = images.astype(np.float32, copy=False)
    blurred: Floats = np.matmul(np.matmul(down, pixels), across.T)
    return blurred


def resize(images: Floats, rows: int, columns: int) -> Floats:
    """Resize the last two axes linearly; samples are areas, so middles map to middles."""

    def matrix(count: int, to: int) -> Floats:
        return sample_matrix(count, tuple((np.arange(to) + 0.5) * count / to - 0.5))

    down, across = matrix(images.shape[-2], rows), matrix(images.shape[-1], columns)
    resized: Floats = np.matmul(np.matmul(down, images), across.T)
    return resized


def displace(images: Floats, by: Floats) -> Floats:
    """Sample `[state, row, column]` images `by` pixels down and to the right, bicubically."""
    states, rows, columns = images.shape
    y = np.clip(np.arange(rows, dtype=np.float32)[:, None] + by[0], 0, rows - 1)
    x = np.clip(np.arange(columns, dtype=np.float32) + by[1], 0, columns - 1)
    top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    down, across = _cubic(y - top), _cubic(x - left)
    pixels = np.ascontiguousarray(images.transpose(1, 2, 0)).reshape(-1, states)
    out = np.zeros((rows, columns, states), np.float32)
    for i in range(4):
        row = np.clip(top + i - 1, 0, rows - 1) * columns
        for j in range(4):
            column = np.clip(left + j - 1, 0, columns - 1)
            out += (down[i] * across[j])[..., None] * pixels[row + column]
    return np.ascontiguousarray(out.transpose(2, 0, 1))


def _cubic(t: Floats) -> list[Floats]:
    """Keys' weights of the four samples around, with slope -0.75."""
    a = np.float32(-0.75)

    def near(d: Floats) -> Floats:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Floats) -> Floats:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]
