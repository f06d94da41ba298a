"""Metrics against numbers worked out by hand."""

import math

import numpy as np
import pytest

from fulgurite.lab import metrics


def _entropy(p: float) -> float:
    return -p * math.log2(p) - (1 - p) * math.log2(1 - p)


def _all_symbols(sectors: int = 4) -> np.ndarray:
    return np.tile(np.arange(8), (sectors, 8)).reshape(sectors, 8, 8)


def test_gray_labels_of_neighbors_differ_in_one_bit() -> None:
    assert metrics.gray(8).tolist() == [0, 1, 3, 2, 6, 7, 5, 4]
    assert metrics.gray(4).tolist() == [0, 1, 3, 2]
    labels = metrics.bits(8)
    assert labels[5].tolist() == [True, True, True]
    assert all((labels[k] != labels[(k + 1) % 8]).sum() == 1 for k in range(8))


def test_uniform_decoder_has_zero_information() -> None:
    symbols = _all_symbols()
    score = metrics.score(np.zeros((*symbols.shape, 8), np.float32), symbols)
    assert score.mi.value == pytest.approx(0, abs=1e-6)
    # It says 0 every time: 7 of 8 are wrong, and on average half of the bits.
    assert score.ser.value == pytest.approx(7 / 8)
    assert score.ber.value == pytest.approx(1 / 2)
    assert score.poor == 1


def test_perfect_decoder_has_three_bits() -> None:
    symbols = _all_symbols()
    score = metrics.score(50 * np.eye(8, dtype=np.float32)[symbols], symbols)
    assert score.mi.value == pytest.approx(3, abs=1e-6)
    assert score.ser.value == score.ber.value == score.poor == 0


def test_neighbors_taken_for_each_other_cost_the_entropy_of_one_bit() -> None:
    """Nine of ten right, one its next neighbor, and the decoder knows that: one bit is unsure."""
    sent = np.repeat(np.arange(8), 10)
    seen = np.where(np.arange(80) % 10 == 0, (sent + 1) % 8, sent)
    logits = np.full((80, 8), -40.0, np.float32)
    rows = np.arange(80)
    logits[rows, seen] = math.log(0.9)
    logits[rows, (seen - 1) % 8] = math.log(0.1)
    score = metrics.score(logits[None], sent[None])
    assert score.ser.value == pytest.approx(0.1)
    assert score.ber.value == pytest.approx(0.1 / 3)
    assert score.mi.value == pytest.approx(3 - _entropy(0.1), abs=1e-5)


@pytest.mark.parametrize("by", [0.5, 1.0, 2.0])
def test_a_temperature_undoes_a_scale(by: float) -> None:
    random = np.random.default_rng(1)
    true = random.normal(0, 2, (50_000, 8)).astype(np.float32)
    chances = np.exp(metrics.log_softmax(true)).cumsum(1)
    symbols = (chances < random.random((len(true), 1))).sum(1).clip(0, 7)
    assert metrics.fit_temperature(true * by, symbols) == pytest.approx(by, rel=0.03)


def test_errors_of_a_mean_are_those_of_its_sectors() -> None:
    symbols = np.zeros((4, 10), int)
    logits = np.zeros((4, 10, 8), np.float32)
    logits[..., 0] = 1
    for sector in range(4):
        logits[sector, :sector, 1] = 2
    score = metrics.score(logits, symbols)
    assert score.ser.value == pytest.approx(0.15)
    assert score.ser.error == pytest.approx(math.sqrt(0.05 / 3) / 2)
    assert score.ser_p50.value == pytest.approx(0.15)
    assert 0 < score.ser_p50.error < 0.15
    assert metrics.sector_errors(logits, symbols).tolist() == pytest.approx([0, 0.1, 0.2, 0.3])
    assert metrics.confusion(logits, symbols)[0, :3].tolist() == [34, 6, 0]


def test_the_worst_tenth_is_its_mean() -> None:
    symbols = np.zeros((20, 4), int)
    logits = np.zeros((20, 4, 8), np.float32)
    logits[2:, :, 0] = 50
    score = metrics.score(logits, symbols)
    assert score.mi_worst.value == pytest.approx(0, abs=1e-6)
    assert score.mi.value == pytest.approx(2.7, abs=1e-5)
    assert score.poor == pytest.approx(0.1)


def test_mismatched_shapes_raise() -> None:
    with pytest.raises(AssertionError, match="no logits"):
        metrics.score(np.zeros((2, 4, 8), np.float32), np.zeros((2, 5), int))
