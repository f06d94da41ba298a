"""The bindings: shapes, seeds, the same numbers as in Rust, errors."""

import json
from typing import Any

import numpy as np
import pytest

from fulgurite import channel as glass

_SEEDS = {"place": 2, "platter": 3, "track": 4, "drive": 5, "read": 6}


def test_presets_are_channels_with_stable_json() -> None:
    assert glass.presets() == ["nominal", "easy", "dense", "phase"]
    for preset in glass.presets():
        text = glass.channel_json(preset)
        assert glass.channel_json(text) == text
        assert json.loads(text)["voxels"]["pitch_um"] > 0


@pytest.mark.parametrize(("preset", "states", "symbols"), [("nominal", 4, 8), ("phase", 1, 4)])
def test_sectors_have_the_shapes_of_their_medium(preset: str, states: int, symbols: int) -> None:
    images, written = glass.sectors(preset, 32, 3, 1)
    assert images.shape == (3, states, 96, 96)
    assert images.dtype == np.uint16
    assert written.shape == (3, 32, 32)
    assert written.dtype == np.uint8
    assert set(np.unique(written)) == set(range(symbols))
    assert images.max() < 256


def test_images_are_those_of_the_rust_tests() -> None:
    """`images_are_the_same_on_every_machine` in crates/platter pins the same hashes."""
    pinned = {"nominal": "07937930b3692534", "phase": "e3dacbe9ada49c57"}
    for preset, expected in pinned.items():
        other = glass.symbols(preset, 32, 2)
        own = glass.symbols(preset, 32, 1)
        image = glass.sector(preset, own, **_SEEDS, neighbors=[(1, other), (2, other)])
        assert glass.fingerprint(image.astype("<u2").tobytes())[:16] == expected


def test_sectors_depend_only_on_seed_and_number() -> None:
    images, symbols = glass.sectors("nominal", 16, 4, 7)
    again, _ = glass.sectors("nominal", 16, 4, 7)
    part, part_symbols = glass.sectors("nominal", 16, 2, 7, 2)
    other, other_symbols = glass.sectors("nominal", 16, 4, 8)
    assert np.array_equal(images, again)
    assert np.array_equal(images[2:], part)
    assert np.array_equal(symbols[2:], part_symbols)
    assert not np.array_equal(symbols, other_symbols)
    assert len({glass.fingerprint(image.tobytes()) for image in (*images, *other)}) == 8


def test_population_selects_only_drives_and_platters() -> None:
    own, symbols = glass.sectors("nominal", 16, 2, 7)
    same, _ = glass.sectors("nominal", 16, 2, 7, population=7)
    other, other_symbols = glass.sectors("nominal", 16, 2, 7, population=8)
    few, _ = glass.sectors("nominal", 16, 2, 7, drives=1, platters=1)
    assert np.array_equal(own, same)
    assert np.array_equal(symbols, other_symbols)
    assert not np.array_equal(own, other)
    # Sector 0 has drive 0 either way.
    assert np.array_equal(own[0], few[0])
    assert not np.array_equal(own[1], few[1])


def test_faults_damage_a_sector() -> None:
    symbols = glass.symbols("nominal", 32, 1)
    read = json.dumps({"dead_columns": [5]})
    write = json.dumps({"lost_layer": True})
    whole = glass.sector("nominal", symbols, **_SEEDS)
    dead = glass.sector("nominal", symbols, **_SEEDS, read_faults=read)
    lost = glass.sector("nominal", symbols, **_SEEDS, write_faults=write)
    assert dead[:, :, 5].max() == 0
    assert np.array_equal(np.delete(dead, 5, 2), np.delete(whole, 5, 2))
    assert lost[0].std() < 0.7 * whole[0].std()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("vellum", 32, 1, 1), {}, "preset is vellum; it may be one of nominal"),
        (('{"medium": "silk"}', 32, 1, 1), {}, "channel: unknown variant `silk`"),
        (("nominal", 30, 1, 1), {}, "rows is 30; it may be a multiple of 4"),
        (("nominal", -4, 1, 1), {}, "side is -4"),
        (("nominal", 70_000, 1, 1), {}, "side is 70000"),
        (("nominal", 2048, 100_000, 1), {}, "request parts"),
        (("nominal", 32, 1, 1), {"drives": 0}, "drives is 0"),
        (("nominal", 32, 2, 1, 2**64 - 1), {}, "64 bits"),
    ],
)
def test_errors_are_those_of_rust(
    arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        glass.sectors(*arguments, **options)


def test_numbers_out_of_range_name_their_field() -> None:
    numbers = json.loads(glass.channel_json("nominal"))
    numbers["optics"]["aperture"] = 1.5
    with pytest.raises(ValueError, match=r"optics\.aperture is 1\.5; it may be 0\.05 to"):
        glass.channel_json(json.dumps(numbers))


def test_invalid_sectors_are_refused() -> None:
    symbols = glass.symbols("nominal", 32, 1)
    neighbor = glass.symbols("nominal", 16, 1)
    with pytest.raises(ValueError, match="the shape of the sector"):
        glass.sector("nominal", symbols, **_SEEDS, neighbors=[(1, neighbor)])
    with pytest.raises(ValueError, match="8 at voxel 0; it may be below 8"):
        glass.sector("nominal", np.full((16, 16), 8, np.uint8), **_SEEDS)
    with pytest.raises(ValueError, match="read_faults"):
        glass.sector("nominal", symbols, **_SEEDS, read_faults='{"dist": []}')
