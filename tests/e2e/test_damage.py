"""Damage up to the limit of every layer of code gives all bytes back; one more, an error.

Platter files are edited from outside, while the archive does not run, by a reader and writer made
from the format's document.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from conftest import Start
from harness import (
    MIB,
    TINY_GEOMETRY,
    Server,
    is_restored,
    read,
    refused,
    restore,
    seed,
    wait_restored,
    wait_until,
)
from platter import Platter

BUCKET = "damage"
OBJECTS = 60
INFORMATION = TINY_GEOMETRY["set_information_platters"]
REDUNDANCY = TINY_GEOMETRY["set_redundancy_platters"]
SECTORS = TINY_GEOMETRY["track_redundancy_sectors"]
TRACKS = TINY_GEOMETRY["group_redundancy_tracks"]

Damage = Callable[[list[Platter], random.Random], None]


def archive(server: Server, rng: random.Random) -> dict[str, bytes]:
    """Fill one platter-set with small objects and one that is larger than a platter."""
    bodies = {f"{at:03}": rng.randbytes(650 * at) for at in range(OBJECTS)}
    bodies["larger than a platter"] = rng.randbytes(700_000)
    s3 = server.s3()
    s3.create_bucket(Bucket=BUCKET)
    for key, body in bodies.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=body, StorageClass="DEEP_ARCHIVE")
    server.seal()
    return bodies


def load(server: Server) -> list[Platter]:
    """Every platter file, information first."""
    platters = [Platter(path) for path in sorted(server.platters.glob("*.glass"))]
    return sorted(platters, key=lambda p: (not p.is_information, p.header["role"]["index"]))


def check_everything_returns(server: Server, bodies: dict[str, bytes]) -> None:
    """Restore all, compare all."""
    s3 = server.s3()
    for key in bodies:
        assert restore(s3, BUCKET, key) == 202
    wait_restored(s3, BUCKET)
    for key, body in bodies.items():
        assert read(s3, BUCKET, key) == body, key


def lose(platters: list[Platter]) -> None:
    """Remove platter files."""
    for platter in platters:
        platter.path.unlink()


def sectors_of_every_track(platters: list[Platter], rng: random.Random) -> None:
    """As many sectors of each track as its own code corrects."""
    for platter in platters:
        platter.spoil_sectors(SECTORS, rng)
        platter.save()


def tracks_of_every_group(platters: list[Platter], rng: random.Random) -> None:
    """As many whole tracks of each large group as its code corrects."""
    for platter in platters:
        platter.spoil_tracks(TRACKS, rng)
        platter.save()


def information_platters(platters: list[Platter], rng: random.Random) -> None:
    """As many information platters as the set's code corrects."""
    lose(rng.sample([p for p in platters if p.is_information], REDUNDANCY))


def any_platters_and_sectors(platters: list[Platter], rng: random.Random) -> None:
    """As many platters as the set's code corrects, and sectors of every track of the rest."""
    lost = rng.sample(platters, REDUNDANCY)
    lose(lost)
    sectors_of_every_track([p for p in platters if p not in lost], rng)


def tracks_beyond_the_group(platters: list[Platter], rng: random.Random) -> None:
    """More tracks of one platter than its groups correct: the set gives them back."""
    platters[0].spoil_tracks(TRACKS + 1, rng)
    platters[0].save()


@pytest.mark.parametrize(
    "damage",
    [
        sectors_of_every_track,
        tracks_of_every_group,
        information_platters,
        any_platters_and_sectors,
        tracks_beyond_the_group,
    ],
)
def test_all_bytes_return(start: Start, damage: Damage) -> None:
    """At the limit of each layer, nothing is lost."""
    rng = random.Random(seed())
    server = start({"geometry": TINY_GEOMETRY})
    bodies = archive(server, rng)
    server.stop()
    platters = load(server)
    assert sum(p.is_information for p in platters) == INFORMATION
    assert sum(not p.is_information for p in platters) == REDUNDANCY
    damage(platters, rng)
    server.start()
    check_everything_returns(server, bodies)
    status = server.status()
    repaired = [status[f"repaired_by_{layer}"] for layer in ("track", "group", "set")]
    assert any(repaired), status


def test_one_platter_too_many(start: Start) -> None:
    """Four platters of a set lost: objects there fail by name, all others return."""
    rng = random.Random(seed())
    server = start({"geometry": TINY_GEOMETRY})
    bodies = archive(server, rng)
    server.stop()
    platters = load(server)
    gone = platters[0]
    redundancy = [p for p in platters if not p.is_information]
    lose([gone, *redundancy])
    server.start()
    s3 = server.s3()
    for key in bodies:
        assert restore(s3, BUCKET, key) == 202

    def failures() -> dict[str, str]:
        return {row["key"]: row["error"] for row in server.status()["failed_restores"]}

    def returned() -> set[str]:
        return {key for key in bodies if is_restored(s3, BUCKET, key)}

    wait_until("all are tried", lambda: failures().keys() | returned() == bodies.keys())
    assert failures()
    assert returned()
    log = server.log.read_text(encoding="utf-8", errors="replace")
    for key, error in failures().items():
        assert "cross-platter" in error
        assert gone.header["platter"] in error
        assert error in log
        status, code = refused(lambda key=key: s3.get_object(Bucket=BUCKET, Key=key))
        assert (status, code) == (403, "InvalidObjectState")
    for key in returned():
        assert read(s3, BUCKET, key) == bodies[key], key

    # One of the four is found again: the requests are still there, and now they succeed.
    server.stop()
    redundancy[0].save()
    server.start()
    wait_restored(s3, BUCKET)
    for key, body in bodies.items():
        assert read(s3, BUCKET, key) == body, key
    assert failures() == {}


def test_simulated_failures(start: Start) -> None:
    """A medium that fails by seed and rate: sealing verifies, restoring corrects."""
    medium = {"seed": 7, "sector_failure_rate": 0.01, "track_failure_rate": 0.005}
    server = start({"medium": medium})
    s3 = server.s3()
    s3.create_bucket(Bucket=BUCKET)
    body = random.Random(1).randbytes(20 * MIB)
    s3.put_object(Bucket=BUCKET, Key="k", Body=body, StorageClass="DEEP_ARCHIVE")
    server.seal()
    restore(s3, BUCKET, "k")
    wait_until("the object is restored", lambda: is_restored(s3, BUCKET, "k"))
    assert read(s3, BUCKET, "k") == body
    status = server.status()
    assert status["repaired_by_track"] > 0, status
