"""Images in numpy: a blur, which is all that the linear decoders need.

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


def blur(images: NDArray[Any], sigma: float) -> Floats:
    """Blur the last two axes."""
    rows, columns = images.shape[-2:]
    down, across = blur_matrix(rows, sigma), blur_matrix(columns, sigma)
    pixels: Floats = images.astype(np.float32, copy=False)
    blurred: Floats = np.matmul(np.matmul(down, pixels), across.T)
    return blurred
