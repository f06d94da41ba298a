"""The classical decoders: their parts against formulas, and the whole on easy glass."""

import numpy as np
import pytest

from fulgurite.lab import data, filters, linear
from fulgurite.lab.errors import LabError


def test_blur_keeps_constants_and_is_gaussian() -> None:
    assert np.allclose(filters.blur(np.full((2, 20, 30), 3.0), 2.0), 3.0, atol=1e-5)
    point = np.zeros((41, 41), np.float32)
    point[20, 20] = 1
    blurred = filters.blur(point, 2.0)
    assert blurred[20, 23] / blurred[20, 20] == pytest.approx(np.exp(-9 / 8), rel=1e-3)
    assert blurred.sum() == pytest.approx(1, rel=1e-3)


def test_demappers_know_their_noise() -> None:
    random = np.random.default_rng(1)
    symbols = random.integers(8, size=(100, 100))
    noise = random.normal(0, 0.1, (2, 100, 100))
    z = np.exp(2j * np.pi * symbols / 8) + noise[0] + 1j * noise[1]
    exact = np.abs(z[..., None] - np.exp(2j * np.pi * np.arange(8) / 8)) ** 2 / (-2 * 0.1**2)
    own = linear.own_demapper(z.astype(np.complex64))
    fitted = linear.Demapper.fit(z.astype(np.complex64), symbols).apply(z.astype(np.complex64))
    for found in (own, fitted):
        assert (found.argmax(-1) == exact.argmax(-1)).mean() > 0.995
    truth = np.take_along_axis(own, symbols[..., None], -1).mean()
    assert truth == pytest.approx(
        np.take_along_axis(fitted, symbols[..., None], -1).mean(), abs=0.01
    )


def test_decoders_read_easy_glass_in_order_of_quality() -> None:
    source = data.channel("easy", {"optics.focus_um": 0.1})
    decoders = linear.LinearDecoders(data.sectors(source, 64, 6, 1), 4)
    test = data.sectors(source, 64, 3, 2)
    inside = (slice(4, -4), slice(4, -4))
    errors = dict.fromkeys(linear.NAMES, 0.0)
    for image, symbols in zip(test.images, test.symbols, strict=True):
        decoded = decoders.decode(image, symbols)
        assert list(decoded) == list(linear.NAMES)
        for name, logits in decoded.items():
            assert np.allclose(np.exp(logits).sum(-1), 1, atol=1e-4)
            errors[name] += (logits.argmax(-1) != symbols)[inside].mean() / 3
    assert errors["a"] < 0.1
    assert errors["b"] < 0.03
    assert errors["b"] < errors["a"]
    assert errors["b2"] <= 1.3 * errors["b"]


def test_other_media_are_refused() -> None:
    with pytest.raises(LabError, match="birefringent"):
        linear.LinearDecoders(data.sectors(data.channel("phase"), 16, 1, 1), 4)
