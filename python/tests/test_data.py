"""Sets, crops, and the symmetry that training uses."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fulgurite import channel as glass
from fulgurite.lab import data
from fulgurite.lab.errors import LabError


def test_rotation_moves_states_by_one_and_azimuths_by_two(clean: str) -> None:
    """As `the_azimuth_has_no_preferred_direction` in crates/platter, through the bindings."""
    seeds = {"place": 2, "platter": 3, "track": 4, "drive": 5, "read": 6}
    symbols = glass.symbols(clean, 32, 1)
    images = glass.sector(clean, symbols, **seeds).astype(float)
    for turns in range(4):
        turned, labels = data.turn(images, symbols, turns)
        made = glass.sector(clean, labels.astype(np.uint8), **seeds)
        # The noise of 10^6 electrons at 12 bits, twice.
        assert (turned - made).std() < 3
        assert turns == 0 or (images - made).std() > 100


def test_a_channel_is_a_preset_with_changes() -> None:
    nominal, changed = data.channel("nominal"), data.channel("nominal", {"optics.focus_um": 0.3})
    assert nominal.fingerprint != changed.fingerprint
    assert data.channel("nominal", {"optics.focus_um": 0.4}) == nominal
    assert (nominal.states, nominal.symbols, nominal.turns) == (4, 8, 4)
    phase = data.channel("phase")
    assert (phase.states, phase.symbols, phase.turns) == (1, 4, 1)
    with pytest.raises(LabError, match=r"no number optics\.fokus"):
        data.channel("nominal", {"optics.fokus": 1})
    with pytest.raises(LabError, match=r"optics\.focus_um is 9"):
        data.channel("nominal", {"optics.focus_um": 9})
    with pytest.raises(LabError, match="preset is vellum"):
        data.channel("vellum")


def test_a_set_is_made_in_parts_and_has_a_fingerprint() -> None:
    source = data.channel("nominal")
    made = data.sectors(source, 16, 10, 4)
    images, symbols = glass.sectors("nominal", 16, 10, 4)
    assert np.array_equal(made.images, images)
    assert np.array_equal(made.symbols, symbols)
    assert made.images.dtype == np.uint8
    assert made.fingerprint == data.sectors(source, 16, 10, 4).fingerprint
    assert made.fingerprint != made.part(0, 9).fingerprint


def test_pixels_above_eight_bits_are_kept() -> None:
    wide = data.sectors(data.channel("easy", {"camera.bits": 12}), 16, 1, 1)
    assert wide.images.dtype == np.uint16
    assert wide.images.max() > 255


def test_registering_puts_voxels_in_place() -> None:
    """The light of voxels has the period of their pitch; its phase is where they are."""
    moved = data.channel("easy", {"stage.shift_px": 0.9, "stage.warp_px": 0.0})
    tone = np.exp(2j * np.pi * (np.arange(192) - 1) / 3)

    def phases(images: NDArray[np.float32]) -> list[float]:
        light = (images[3] - images[1]) ** 2 + (images[0] - images[2]) ** 2
        return [abs(float(np.angle((light.sum(axis) * tone).sum()))) for axis in (0, 1)]

    before, after = [], []
    for seed in range(3, 7):
        image = data.sectors(moved, 64, 1, seed).images[0]
        before += phases(image.astype(np.float32))
        after += phases(data.registered(moved, image))
    assert max(after) < 0.3
    assert max(before) > 1


def test_crops_are_parts_of_registered_sectors_and_repeat_by_seed() -> None:
    made = data.sectors(data.channel("nominal"), 32, 2, 4)
    whole = np.stack([data.registered(made.channel, image) for image in made.images])
    whole = whole.astype(np.float16).astype(np.float32)
    pixels, labels = next(data.crops(made, 16, 5, 9))
    again, _ = next(data.crops(made, 16, 5, 9))
    assert np.array_equal(pixels, again)
    assert pixels.shape == (5, 4, 48, 48)
    assert labels.shape == (5, 16, 16)
    full, symbols = next(data.crops(made, 32, 1, 9))
    matches = [
        turns
        for index in range(2)
        for turns in range(4)
        if np.array_equal(full[0], data.turn(whole[index], symbols, turns)[0])
    ]
    assert len(matches) == 1
