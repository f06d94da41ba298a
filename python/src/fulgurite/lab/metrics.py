"""How good decoders are: errors, and the bits that a soft decoder leaves to the code.

Logits are any log-probabilities, `[..., symbols]`; symbols carry Gray labels. Information is that
of bits taken one by one (BICM), as a binary code sees them:

    MI = bits - sum over bits of E[-log2 P(bit)]

A code word lives in one sector, so bad sectors decide the rate of the code: every figure comes with
its spread over sectors, and with the standard error that their number leaves.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32] | NDArray[np.float64]

_GOLDEN = (5**0.5 - 1) / 2

# Sets of sectors that are drawn for a standard error.
_DRAWS = 400


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error over sectors."""

    value: float
    error: float


@dataclass(frozen=True)
class Score:
    """A decoder on a set of sectors."""

    sectors: int
    voxels: int
    temperature: float
    ser: Estimate
    ser_p50: Estimate
    ser_p90: Estimate
    ber: Estimate
    mi: Estimate
    # The tenth percentile of sectors, and the mean of the worst tenth.
    mi_p10: Estimate
    mi_worst: Estimate
    # Share of sectors below 0.9 of all bits.
    poor: float

    def json(self) -> dict[str, Any]:
        """Plain numbers."""
        return asdict(self)


def gray(symbols: int) -> NDArray[np.int64]:
    """Gray labels of the symbols: 0, 1, 3, 2, 6, 7, 5, 4."""
    numbers = np.arange(symbols)
    return numbers ^ (numbers >> 1)


def bits(symbols: int) -> NDArray[np.bool_]:
    """Bits of the labels, the highest first: `[symbols, bits]`."""
    places = np.arange((symbols - 1).bit_length())[::-1]
    labels: NDArray[np.bool_] = (gray(symbols)[:, None] >> places) & 1 == 1
    return labels


def log_softmax(logits: Floats) -> NDArray[np.float32]:
    """Normalized log-probabilities."""
    shifted = logits - logits.max(-1, keepdims=True)
    normalized: NDArray[Any] = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return normalized.astype(np.float32)


def bit_loss(logits: Floats, symbols: NDArray[Any], temperature: float) -> NDArray[np.float64]:
    """-log2 P of each voxel's bits, summed over the bits: `symbols.shape`."""
    logp = log_softmax(logits / np.float32(temperature))
    count = logits.shape[-1]
    p = np.exp(logp)
    loss = np.zeros(symbols.shape)
    for labels in bits(count).T:
        one, zero = p[..., labels].sum(-1), p[..., ~labels].sum(-1)
        truth = np.where(labels[symbols], one, zero)
        # Single precision ends at 2^-126; a demapper that is surer and wrong is not distinguished.
        loss -= np.log2(np.maximum(truth, 2.0**-126), dtype=np.float64)
    return loss


def fit_temperature(logits: Floats, symbols: NDArray[Any]) -> float:
    """Find the temperature with the most information, from 0.2 to 5, by golden section."""

    def loss(x: float) -> float:
        return float(bit_loss(logits, symbols, float(np.exp(x))).mean())

    low, high = np.log(0.2), np.log(5.0)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    while high - low > 0.02:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = loss(right)
    return float(np.exp((low + high) / 2))


def score(logits: Floats, symbols: NDArray[Any], temperature: float = 1.0) -> Score:
    """Score `[sector, ..., symbol]` logits; the temperature was fitted on other sectors."""
    if logits.shape[:-1] != symbols.shape:
        raise AssertionError(f"{logits.shape} are no logits of {symbols.shape}")
    count = logits.shape[-1]
    labels = bits(count)
    within = tuple(range(1, symbols.ndim))
    hard = logits.argmax(-1)
    ser = sector_errors(logits, symbols)
    ber = (labels[hard] != labels[symbols]).mean((*within, -1))
    mi = sector_bits(logits, symbols, temperature)
    worst = max(1, len(mi) // 10)
    return Score(
        sectors=len(symbols),
        voxels=symbols.size,
        temperature=temperature,
        ser=_mean(ser),
        ser_p50=_drawn(ser, lambda v: np.quantile(v, 0.5, axis=-1)),
        ser_p90=_drawn(ser, lambda v: np.quantile(v, 0.9, axis=-1)),
        ber=_mean(ber),
        mi=_mean(mi),
        mi_p10=_drawn(mi, lambda v: np.quantile(v, 0.1, axis=-1)),
        mi_worst=_drawn(mi, lambda v: np.sort(v, axis=-1)[..., :worst].mean(-1)),
        poor=float((mi < 0.9 * labels.shape[1]).mean()),
    )


def sector_errors(logits: Floats, symbols: NDArray[Any]) -> NDArray[np.float64]:
    """Symbol error rate of each sector."""
    rates: NDArray[np.float64] = (logits.argmax(-1) != symbols).mean(tuple(range(1, symbols.ndim)))
    return rates


def sector_bits(logits: Floats, symbols: NDArray[Any], temperature: float) -> NDArray[np.float64]:
    """Bits of information of a voxel, in each sector."""
    within = tuple(range(1, symbols.ndim))
    # Sector by sector: logits of all of them at once would be several copies of gigabytes.
    losses = [bit_loss(own, known, temperature) for own, known in zip(logits, symbols, strict=True)]
    information: NDArray[np.float64] = bits(logits.shape[-1]).shape[1] - np.stack(losses).mean(
        within
    )
    return information


def confusion(logits: Floats, symbols: NDArray[Any]) -> NDArray[np.int64]:
    """Count voxels by symbol written (row) and read (column)."""
    count = logits.shape[-1]
    pairs = symbols.astype(np.int64) * count + logits.argmax(-1)
    return np.bincount(pairs.ravel(), minlength=count * count).reshape(count, count)


def _mean(values: NDArray[np.float64]) -> Estimate:
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return Estimate(float(values.mean()), float(error))


def _drawn(
    values: NDArray[np.float64], statistic: Callable[[NDArray[np.float64]], Any]
) -> Estimate:
    """Find a statistic, and its error by drawing the sectors again."""
    random = np.random.default_rng(0)
    samples = values[random.integers(len(values), size=(_DRAWS, len(values)))]
    return Estimate(float(statistic(values)), float(statistic(samples).std(ddof=1)))
